import collections

import pytest

from bert_tf.tokenization import full
from bert_tf.tokenization import learning
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

tokenizers = pytest.importorskip("tokenizers")

SPECIAL = vocabulary_module.SPECIAL_TOKENS


def pieces_of(vocabulary, counts):
    """Returns how often each word piece occurs, given how often each word does."""
    tokenizer = wordpiece.WordpieceTokenizer(vocabulary.ids, "[UNK]")
    pieces = collections.Counter()
    for word, count in counts.items():
        for piece in tokenizer.tokenize_word(word):
            pieces[piece] += count
    return pieces


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
    assert tokens[154:156] == ("[unused149]", "!")


@pytest.mark.parametrize("do_lower_case, num_letters", [(True, 26), (False, 52)])
def test_ascii_and_every_character_have_both_forms_if_possible(
    do_lower_case, num_letters
):
    vocabulary = learning.vocabulary_from_counts(
        {"中": 9, "ß": 2}, vocab_size=200, do_lower_case=do_lower_case
    )
    pieces = vocabulary.tokens[vocabulary.ids["!"] :]
    single, inside = pieces[: 42 + num_letters + 2], pieces[42 + num_letters + 2 :]
    ascii_characters = [chr(code) for code in range(33, 127)]
    if do_lower_case:
        ascii_characters = [c for c in ascii_characters if not c.isupper()]
    assert single == (*ascii_characters, "ß", "中")
    assert inside == tuple("##" + c for c in single if c.isalnum() and c != "中")


@pytest.mark.parametrize(
    "coverage, rare",
    [
        (0.98, []),
        (0.99, ["γ", "δ"]),  # One could be left out, but both are equally frequent.
    ],
)
def test_rare_characters_are_left_out_as_far_as_coverage_allows(
    monkeypatch, coverage, rare
):
    monkeypatch.setattr(learning, "_CHARACTER_COVERAGE", coverage)
    monkeypatch.setattr(learning, "_MAX_CHARACTERS_KEPT", 2)
    counts = {"αα": 90, "αβ": 8, "αγ": 1, "αδ": 1}
    vocabulary = learning.vocabulary_from_counts(counts, vocab_size=140)
    letters = [token for token in vocabulary if token in tuple("αβγδ")]
    assert letters == ["α", "β", *rare]
    assert pieces_of(vocabulary, counts)["[UNK]"] == 2 - len(rare)


def test_rare_characters_are_kept_if_the_text_has_few(monkeypatch):
    monkeypatch.setattr(learning, "_CHARACTER_COVERAGE", 0.5)
    vocabulary = learning.vocabulary_from_counts({"α": 99, "β": 1}, vocab_size=140)
    assert "β" in vocabulary


def test_frequent_pieces_are_learned_first():
    counts = collections.Counter(low=50, lower=20, newer=40)
    vocabulary = learning.vocabulary_from_counts(counts, vocab_size=117)
    # After 10 special or unused tokens and 104 forms of characters: "l" and "##o" meet
    # 70 times, and so do "lo" and "##w"; "##e" and "##r" 60 times.
    assert vocabulary.tokens[114:] == ("lo", "low", "##er")


def test_a_learned_vocabulary_leaves_nothing_of_its_text_unknown(sample_data):
    path = sample_data / "corpus.txt"
    vocabulary = learning.learn_vocabulary(str(path), vocab_size=2000)
    tokenizer = full.FullTokenizer(vocabulary)
    pieces = tokenizer.tokenize(path.read_text(encoding="utf-8"))
    assert pieces.count("[UNK]") <= len(pieces) / 10_000


def test_a_size_that_the_characters_do_not_fit_into_is_refused():
    vocabulary = learning.vocabulary_from_counts({"abc": 1}, vocab_size=114)
    assert len(vocabulary) == 114
    with pytest.raises(ValueError, match="--vocab_size=113 is too small: the 10 spec"):
        learning.vocabulary_from_counts({"abc": 1}, vocab_size=113)


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


@pytest.mark.slow
def test_a_vocabulary_compares_with_the_release_s_and_hugging_face_s(shared):
    folder = shared / "data" / "corpus"
    text = str(folder / "wiki_sentences.train.txt")
    counts = learning.count_words(text)
    new_counts = learning.count_words(str(folder / "wiki_sentences.heldout.txt"))
    ours = learning.vocabulary_from_counts(counts, vocab_size=30522)
    assert len(ours) == 30522
    path = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    released = vocabulary_module.Vocabulary.load(path)
    trained = tokenizers.BertWordPieceTokenizer()
    trained.train([text], vocab_size=30522, show_progress=False)
    theirs = vocabulary_module.Vocabulary(trained.get_vocab())
    pieces = pieces_of(ours, counts)
    assert pieces.total() < pieces_of(released, counts).total()
    assert pieces["[UNK]"] < sum(counts.values()) / 10_000
    unknown = pieces_of(ours, new_counts)["[UNK]"]
    assert unknown <= pieces_of(theirs, new_counts)["[UNK]"]
