import collections

import pytest

from bert_tf.tokenization import full
from bert_tf.tokenization import learning
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import workflow as tokenization_workflow

pytest.importorskip("tokenizers")

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.mark.parametrize(
    "do_lower_case, expected",
    [
        (True, {"cafe": 3, "中": 1, "文": 1, ".": 1, "a": 1}),
        (False, {"Café": 1, "café": 2, "中": 1, "文": 1, ".": 1, "A": 1}),
    ],
)
def test_words_are_counted_as_the_tokenizer_cuts_them(
    tmp_path, do_lower_case, expected
):
    text = "Café café café.\n\n中文 A\x00\n"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    counts = learning.count_words(
        [str(tmp_path / "*.txt")],
        do_lower_case=do_lower_case,
    )
    assert counts == expected


def test_special_and_unused_tokens_are_where_the_release_has_them():
    tokens = learning.vocabulary_from_counts({"a": 2}, vocab_size=4606).tokens
    assert tokens[:2] == ("[PAD]", "[unused0]")
    assert tokens[99:105] == (
        "[unused98]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "[unused99]",
    )
    assert tokens[154:] == ("[unused149]", "a", "##a")


def test_every_character_has_both_forms_where_it_can_have_them():
    counts = {"ab": 9, "c": 5, ".": 3, "中": 2}
    vocabulary = learning.vocabulary_from_counts(counts, vocab_size=19)
    assert vocabulary.tokens == (
        *SPECIAL, ".", "a", "b", "c", "中", "##a", "##b", "##c", "ab"
    )  # fmt: skip


def test_rare_characters_are_left_out_as_far_as_coverage_allows(monkeypatch):
    monkeypatch.setattr(learning, "_CHARACTER_COVERAGE", 0.98)
    counts = {"aa": 90, "ab": 8, "ac": 1, "ad": 1}
    vocabulary = learning.vocabulary_from_counts(counts, vocab_size=40)
    characters = [token for token in vocabulary if len(token) == 1]
    assert characters == ["a", "b"]
    measured = tokenization_workflow.measure_coverage(vocabulary, counts)
    assert (measured.num_words, measured.num_pieces) == (100, 100)
    assert measured.num_unknown == 2
    assert str(measured) == (
        "100 words, 1.0000 pieces per word, 2.0000% of the pieces are [UNK]"
    )


def test_frequent_pieces_are_learned_first():
    counts = collections.Counter(low=50, lower=20, newer=40)
    vocabulary = learning.vocabulary_from_counts(counts, vocab_size=21)
    # After 6 special or unused tokens and 6 characters in two forms: "l" and "##o" meet
    # 70 times, and so do "lo" and "##w"; "##e" and "##r" 60 times.
    assert vocabulary.tokens[18:] == ("lo", "low", "##er")


def test_a_learned_vocabulary_leaves_nothing_of_its_text_unknown(sample_data):
    path = sample_data / "corpus.txt"
    vocabulary = learning.learn_vocabulary(str(path), vocab_size=2000)
    tokenizer = full.FullTokenizer(vocabulary)
    pieces = tokenizer.tokenize(path.read_text(encoding="utf-8"))
    assert pieces.count("[UNK]") <= len(pieces) / 10_000


def test_a_size_that_the_characters_do_not_fit_into_is_refused():
    with pytest.raises(ValueError, match="--vocab_size=8 is too small: the 5 special"):
        learning.vocabulary_from_counts({"abc": 1}, vocab_size=8)


def test_text_without_words_is_refused(tmp_path):
    (tmp_path / "text.txt").write_text("\n \n\u200d\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"There are no words in .*text\.txt"):
        learning.count_words(str(tmp_path / "text.txt"))


def test_words_take_the_place_of_unused_tokens():
    vocabulary = vocabulary_module.Vocabulary(
        [*SPECIAL, "[unused0]", "the", "[unused1]"]
    )
    filled = learning.fill_unused(vocabulary, ["The", "", "Naïve\n", "##ing"])
    assert filled.tokens == (*SPECIAL, "naive", "the", "##ing")
    assert full.FullTokenizer(filled).tokenize("naïve the") == ["naive", "the"]


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["a", "b"], "words: 2 words are new to the vocabulary, which has only 1"),
        (["a", "new york"], "Word 1: the tokenizer splits 'new york' into 2 words"),
        (["[MASK]x"], "Word 0: .* into 4 words"),
        (["\u0301"], "Word 0: .* into 0 words"),
    ],
)
def test_words_that_cannot_be_filled_in_are_refused(words, sentence):
    vocabulary = vocabulary_module.Vocabulary([*SPECIAL, "[unused0]"])
    with pytest.raises(ValueError, match=sentence):
        learning.fill_unused(vocabulary, words)


def test_the_released_vocabulary_s_pieces_a_word_are_reached(shared):
    text = str(shared / "data" / "corpus" / "wiki_sentences.train.txt")
    path = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    counts = learning.count_words(text)
    vocabulary = learning.vocabulary_from_counts(counts, vocab_size=30522)
    ours = tokenization_workflow.measure_coverage(vocabulary, counts)
    released = tokenization_workflow.measure_coverage(
        vocabulary_module.Vocabulary.load(path), counts
    )
    assert len(vocabulary) == 30522
    assert ours.num_pieces < released.num_pieces
    assert ours.num_unknown < ours.num_pieces / 10_000
