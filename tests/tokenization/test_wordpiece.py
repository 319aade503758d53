import pytest

from bert_tf.tokenization import wordpiece

VOCAB = ["[UNK]", "un", "want", "##want", "##ed", "runn", "##ing", "a", "##a", "é"]


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("", []),
        ("unwanted running", ["un", "##want", "##ed", "runn", "##ing"]),
        ("unwantedX running", ["[UNK]", "runn", "##ing"]),  # The whole word.
        ("wanted", ["want", "##ed"]),
        ("ing", ["[UNK]"]),  # "##ing" does not begin a word.
        ("a" * 200, ["a"] + ["##a"] * 199),
        ("a" * 201, ["[UNK]"]),
        ("é", ["é"]),
        (b"\xc3\xa9\xff", ["é"]),
    ],
)
def test_the_longest_pieces_come_first(text, pieces):
    assert wordpiece.WordpieceTokenizer(VOCAB).tokenize(text) == pieces


def test_the_unknown_token_and_the_limit_can_be_given():
    tokenizer = wordpiece.WordpieceTokenizer(VOCAB, "?", 3)
    assert tokenizer.tokenize("aaa aaaa") == ["a", "##a", "##a", "?"]


@pytest.mark.parametrize(
    "word, pieces",
    [
        ("##a", ["##a"]),  # As a whole it is in the vocabulary.
        ("##aa", ["##a", "##a"]),
        ("##b", ["[UNK]"]),
        ("a##a", ["a", "####a"]),
        ("a#", ["[UNK]"]),
        ("a##", ["[UNK]"]),  # The piece "##" has nothing inside a word.
    ],
)
def test_marks_of_pieces_inside_words_may_be_text(word, pieces):
    vocab = ["[UNK]", "a", "##a", "####a", "##"]
    assert wordpiece.WordpieceTokenizer(vocab).tokenize_word(word) == pieces
