"""Tagged sentences in memory."""

import math

import pytest

from bert_tf.tasks.token_classification import records


def words_of(*sentences):
    """Returns a table with one word per row, of the given values of `sentence`."""
    return [{"sentence": value, "word": "wet", "tag": "O"} for value in sentences]


def test_rows_of_words_are_grouped_by_sentence():
    found = records.sentences_of(words_of("a", "a", "b", 3, 3))
    assert [len(words) for words, _ in found] == [2, 1, 2]


@pytest.mark.parametrize("missing", [None, math.nan, ""])
def test_each_row_of_a_word_must_name_its_sentence(missing):
    # Many published tables name a sentence only in the row of its first word.
    with pytest.raises(ValueError, match=r"Row 2 has no 'sentence'; .*ffill\(\)"):
        records.sentences_of(words_of("Sentence: 1", missing, "Sentence: 2"))


def test_the_words_of_a_sentence_must_be_consecutive():
    with pytest.raises(ValueError, match="Row 3 continues sentence '1' after another"):
        records.sentences_of(words_of(1, 2, 1))
