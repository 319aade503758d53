"""Spans of words to mask: those of NumPy and those of the graph."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import graph_draws
from bert_tf.pretraining_data import graph_rows
from bert_tf.pretraining_data import vectorized_masks

ROWS, LENGTH = 4000, 400


@pytest.fixture(params=["vectorized", "tf_data"])
def chosen_of(request):
    def choose(num_wanted, word, sizes, is_candidate):
        keys = draws_module.row_keys(1, 0, np.arange(len(word)))
        num_wanted = np.full(len(word), num_wanted)
        if request.param == "vectorized":
            return vectorized_masks.choose_spans(
                word, sizes, is_candidate, num_wanted, draws_module.RowDraws(keys)
            )
        found = graph_rows.choose_spans(
            *(tf.constant(values, tf.int32) for values in (word, sizes)),
            tf.constant(is_candidate),
            tf.constant(num_wanted, tf.int32),
            graph_draws.GraphRowDraws(tf.constant(keys)),
        )
        return vectorized_masks.ChosenSpans(
            is_chosen=found.is_chosen.numpy(), first_place=found.first_place.numpy()
        )

    return choose


def words_of_two(rows, length):
    """Every word has two pieces."""
    word = np.tile(np.arange(length) // 2, (rows, 1))
    sizes = np.zeros((rows, length), np.int64)
    sizes[:, : length // 2] = 2
    return word, sizes


def test_lengths_are_geometric_up_to_ten_words(chosen_of):
    word, sizes = words_of_two(ROWS, LENGTH)
    is_candidate = np.ones((ROWS, LENGTH), bool)
    # So few that spans seldom meet, and the first one is never cut short.
    chosen = chosen_of(20, word, sizes, is_candidate)
    lengths = []
    for row in range(ROWS):
        places = np.flatnonzero(chosen.is_chosen[row])
        counts = np.unique(chosen.first_place[row, places], return_counts=True)[1]
        assert (counts % 2 == 0).all()  # Whole words.
        lengths += [count // 2 for count in counts]
    # The rest of the last span of a row is shorter; long spans are too rare here.
    shares = np.bincount(lengths, minlength=11)[1:] / len(lengths)
    p = vectorized_masks.LENGTH_PARAMETER
    ratios = shares[1:4] / shares[:3]
    assert shares.argmax() == 0
    np.testing.assert_allclose(ratios, 1 - p, atol=0.15)
    assert max(lengths) == vectorized_masks.MAX_WORDS
    assert (chosen.is_chosen.sum(axis=1) == 20).all()


def test_a_span_ends_with_its_segment_and_leaves_no_word_split(chosen_of):
    # [CLS] 0 0 1 [SEP] 2 3 3 3 [SEP]: words of 2, 1, 1 and 3 pieces.
    word = np.array([[0, 0, 0, 1, 1, 2, 3, 3, 3, 3]] * ROWS)
    sizes = np.zeros((ROWS, 10), np.int64)
    sizes[:, :4] = [2, 1, 1, 3]
    is_candidate = np.ones((ROWS, 10), bool)
    is_candidate[:, [0, 4, 9]] = False
    chosen = chosen_of(4, word, sizes, is_candidate)
    taken = {tuple(np.flatnonzero(row)) for row in chosen.is_chosen}
    assert taken == {(1, 2, 3, 5), (3, 6, 7, 8), (5, 6, 7, 8)}
    # Word 1 may go on with a span of word 0, word 2 after the [SEP] may not.
    firsts = {
        tuple(first[is_chosen])
        for first, is_chosen in zip(chosen.first_place, chosen.is_chosen, strict=True)
    }
    assert firsts == {
        (1, 1, 1, 5),
        (1, 1, 3, 5),
        (3, 6, 6, 6),
        (5, 5, 5, 5),
        (5, 6, 6, 6),
    }


def test_rows_without_candidates_have_no_spans(chosen_of):
    word, sizes = words_of_two(2, 8)
    chosen = chosen_of(4, word, 0 * sizes, np.zeros((2, 8), bool))
    assert not chosen.is_chosen.any()
