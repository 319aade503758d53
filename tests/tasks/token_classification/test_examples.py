import pytest

from bert_tf.tasks.token_classification import column_files
from bert_tf.tasks.token_classification import examples

CONLL = """\
-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O


Peter NNP B-NP B-PER
-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP B-LOC
"""


@pytest.fixture
def write(tmp_path):
    def write(content, name="train.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def test_sentences_end_at_blank_lines_and_at_documents(write):
    sentences = examples.read_sentences(write(CONLL), examples.Columns(tag=3))
    assert sentences == [
        examples.Sentence(
            words=("EU", "rejects"), tags=("B-ORG", "O"), document=1, lines=(3, 4)
        ),
        examples.Sentence(words=("Peter",), tags=("B-PER",), document=1, lines=(7,)),
        examples.Sentence(
            words=("BRUSSELS",), tags=("B-LOC",), document=2, lines=(10,)
        ),
    ]
    assert examples.has_documents(sentences)


@pytest.mark.parametrize(
    "content, columns, words, tags",
    [
        ("EU B-ORG\n", {"tag": 1}, ("EU",), ("B-ORG",)),
        ("EU  \t B-ORG \n", {"tag": 1}, ("EU",), ("B-ORG",)),
        ("New York\tB-LOC\n", {"tag": 1}, ("New York",), ("B-LOC",)),  # Tabs.
        ("1\tEU\tB-ORG\tx\n", {"word": 1, "tag": 2}, ("EU",), ("B-ORG",)),
        ("a\u00a0b O\n", {"tag": 1}, ("a\u00a0b",), ("O",)),  # No column ends there.
        ("\ufeffEU O\r\n\r\n", {"tag": 1}, ("EU",), ("O",)),
        ("EU NNP\n", {"tag": 2}, ("EU",), None),  # No such column: to be predicted.
        ("EU\n", {"tag": 1}, ("EU",), None),
    ],
)
def test_words_and_tags_are_in_their_columns(write, content, columns, words, tags):
    [sentence] = examples.read_sentences(write(content), examples.Columns(**columns))
    assert (sentence.words, sentence.tags) == (words, tags)
    assert not examples.has_documents([sentence])


@pytest.mark.parametrize(
    "content, message",
    [
        (
            "EU B-ORG\nrejects\n",
            r"train\.txt:2: expected 2 columns as in line 1, got 1",
        ),
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


def test_the_last_column_has_the_tags_by_default(write):
    path = write(CONLL)
    assert examples.resolved_columns(path, examples.Columns()).tag == 3
    assert examples.resolved_columns(path, examples.Columns(tag=1)).tag == 1


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


def test_tags_that_break_their_scheme_are_refused_with_their_line(write):
    path = write("EU B-ORG\n\na O\nb I-PER\n")
    sentences = examples.read_sentences(path, examples.Columns(tag=1))
    with pytest.raises(ValueError, match=r"train\.txt:4: 'I-PER' does not continue"):
        examples.check_tags(path, sentences, "iob2")
    examples.check_tags(path, sentences, "none")
    untagged = examples.read_sentences(path, examples.Columns(tag=2))
    with pytest.raises(ValueError, match=r"train\.txt has no column of tags"):
        examples.check_tags(path, untagged, "none")


def test_an_entity_that_the_sentence_cuts_off_is_at_its_last_line(write):
    path = write("EU B-ORG\nb I-ORG\n\nc O\n")
    sentences = examples.read_sentences(path, examples.Columns(tag=1))
    with pytest.raises(ValueError, match=r"train\.txt:2: the sentence ends inside"):
        examples.check_tags(path, sentences, "iobes")


def test_a_tag_that_the_model_has_not_is_refused_with_its_line(write):
    path = write("EU B-ORG\n\na O\nb B-PER\n")
    sentences = examples.read_sentences(path, examples.Columns(tag=1))
    examples.check_known(path, sentences, ["O", "B-ORG", "B-PER"])
    with pytest.raises(ValueError, match=r"train\.txt:4: the tag 'B-PER' is not one"):
        examples.check_known(path, sentences, ["O", "B-ORG"])


@pytest.mark.parametrize(
    "text, column, changed",
    [
        ("EU  NNP\tO ", 2, "EU  NNP\tX "),  # Spaces stay as they are.
        ("EU NNP O", 1, "EU X O"),
        ("EU", 1, "EU X"),
        ("New York\tO", 1, "New York\tX"),
        ("New York", 1, "New York X"),
    ],
)
def test_a_tag_is_put_into_its_column(write, text, column, changed):
    # A tab makes the file one with tabs, unless a line without comes first.
    before = "a b c\n" if text.startswith("EU  ") else ""
    *_, line = column_files.read_lines(write(before + text + "\n"))
    if text == "New York":
        line = column_files.Line(number=1, text=text, cells=("New York",))
    assert line.with_cell(column, "X") == changed
