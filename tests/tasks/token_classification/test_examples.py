import functools

import pytest

from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import schemes

LABELS = ("O", "B-ORG", "I-ORG", "I-PER")
CONLL = """\
-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O


Peter NNP B-NP B-PER
-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP B-LOC
"""


@pytest.fixture
def write(write):
    """Writes a column file and returns its path."""
    return functools.partial(write, "train.txt")


def test_sentences_end_at_blank_lines_and_at_documents(write):
    path = write(CONLL)
    sentences = examples.read_sentences(path, examples.Columns(tag=3))
    assert [
        (one.words, one.tags, one.document, one.path, one.lines) for one in sentences
    ] == [
        (("EU", "rejects"), ("B-ORG", "O"), 1, path, (3, 4)),
        (("Peter",), ("B-PER",), 1, path, (7,)),
        (("BRUSSELS",), ("B-LOC",), 2, path, (10,)),
    ]


@pytest.mark.parametrize(
    "content, expected",
    [
        # As many columns as the words have, but "3" is no tag; as in MultiCoNER.
        ("# 3\nEU O\nwon O\n\n# 4\nBo O\n", [("EU", "won"), ("Bo",)]),
        ("# id = 1\n# text = EU won\nEU\tO\nwon\tO\n", [("EU", "won")]),  # CoNLL-U.
        ("# O\n1 O\n\n#\tO\nBo O\n", [("#", "1"), ("#", "Bo")]),  # A word.
        ("EU O\n# O\n\n# EU won\n\nBo O\n", [("EU", "#"), ("Bo",)]),
        ("# O\n", [("#",)]),
    ],
)
def test_comments_before_the_first_word_of_a_sentence_are_skipped(
    write, tmp_path, content, expected, caplog
):
    path = write(content)
    caplog.set_level("INFO")
    sentences = examples.read_sentences(path, examples.Columns(tag=1))
    assert [one.words for one in sentences] == expected
    assert {tag for one in sentences for tag in one.tags} == {"O"}
    num_comments = sum(line.is_comment for line in examples.read_lines(path))
    said = f"{path}: Skipped {num_comments} comment lines"
    assert (said in caplog.text) is (num_comments > 0)


@pytest.mark.parametrize(
    "content, columns, words, tags",
    [
        ("EU B-ORG\n", {"tag": 1}, ("EU",), ("B-ORG",)),
        ("EU  \t B-ORG \n", {"tag": 1}, ("EU",), ("B-ORG",)),
        ("New York\tB-LOC\n", {"tag": 1}, ("New York",), ("B-LOC",)),  # Tabs.
        ("1\tEU\tB-ORG\tx\n", {"word": 1, "tag": 2}, ("EU",), ("B-ORG",)),
        ("a\u00a0b O\n", {"tag": 1}, ("a\u00a0b",), ("O",)),  # No column ends there.
        ("\ufeffEU O\r\n\r\n", {"tag": 1}, ("EU",), ("O",)),
        ("# B-TAG\n1 O\n", {"tag": 1}, ("#", "1"), ("B-TAG", "O")),  # No comment.
        ("EU NNP\n", {"tag": 2}, ("EU",), None),  # No such column: to be predicted.
        ("EU\n", {"tag": 1}, ("EU",), None),
    ],
)
def test_words_and_tags_are_in_their_columns(write, content, columns, words, tags):
    [sentence] = examples.read_sentences(write(content), examples.Columns(**columns))
    assert (sentence.words, sentence.tags) == (words, tags)
    assert sentence.document == 0


@pytest.mark.parametrize(
    "content, message",
    [
        ("EU B-ORG\nrejects\n", r"train\.txt:2: expected 2 columns as in line 1, got"),
        ("EU O\n# a comment\n", "2: expected 2 columns .* Comments are allowed only"),
        ("\nEU O\na b O\n", r"train\.txt:3: expected 2 columns as in line 2, got 3"),
        ("EU\tO\n\tO\n", r"train\.txt:2: column 0, counted from 0, is empty"),
        (b"EU O\n\xff O\n", r"train\.txt:2: not UTF-8"),
        ("", r"train\.txt has no words"),
        ("-DOCSTART- O\n\n", r"train\.txt has no words"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_line(write, content, message):
    with pytest.raises(ValueError, match=message):
        examples.read_sentences(write(content), examples.Columns(tag=1))


@pytest.mark.parametrize(
    "content, columns, message",
    [
        ("EU\n", {}, "has 1 column; expected words in column 0 and tags in another"),
        ("EU O\n", {"tag": 4}, "has 2 columns; .* tags in column 4"),
        ("EU O\n", {"word": 1}, "words in column 1 and tags in another"),
        ("EU O\n", {"word": 2, "tag": 1}, "words in column 2"),
    ],
)
def test_columns_that_a_file_has_not_are_refused(write, content, columns, message):
    with pytest.raises(ValueError, match=message):
        examples.resolved_columns(write(content), examples.Columns(**columns))
    with pytest.raises(ValueError, match="expected words in column 9, counted from 0"):
        examples.read_sentences(write(content), examples.Columns(word=9, tag=1))


@pytest.mark.parametrize(
    "content, tag, scheme, labels, message",
    [
        ("EU B-ORG\n\na O\nb I-PER\n", 1, "iob2", LABELS, ":4: 'I-PER' cannot start"),
        ("EU B-ORG\n\na O\nb I-PER\n", 1, "none", LABELS, None),
        ("EU B-ORG\nb I-ORG\n\nc O\n", 1, "iobes", LABELS, ":2: the sentence ends"),
        ("EU B-ORG\n", 2, "none", LABELS, " has no column of tags"),
        ("EU B-ORG\n\na O\nb B-PER\n", 1, "iob2", ("O", "B-ORG", "B-PER"), None),
        ("EU O\n\na O\nb B-PER\n", 1, "iob2", LABELS, ":4: the tag 'B-PER' is not"),
    ],
)
def test_tags_follow_their_scheme_and_are_those_of_the_model(
    write, content, tag, scheme, labels, message
):
    path = write(content)
    sentences = examples.read_sentences(path, examples.Columns(tag=tag))
    if message is None:
        schemes.check_tags(path, sentences, scheme, labels)
        return
    with pytest.raises(ValueError, match=f"train.txt{message}"):
        schemes.check_tags(path, sentences, scheme, labels)
