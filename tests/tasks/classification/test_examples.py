import pytest

from bert_tf.data import label_names
from bert_tf.tasks.classification import examples as examples_module

COLUMNS = examples_module.Columns()
PAIRS = examples_module.Columns(
    text_column="first", text_b_column="second", label_column="same"
)


def test_examples_are_named_by_their_row_as_in_2018(write):
    path = write("a.tsv", "text\tlabel\nx\t1\ny\t0\n")
    assert examples_module.read_examples(path, COLUMNS, "dev") == [
        examples_module.InputExample(guid="dev-1", text_a="x", label="1"),
        examples_module.InputExample(guid="dev-2", text_a="y", label="0"),
    ]


def test_a_column_of_ids_names_the_examples(write):
    path = write("a.csv", "id,text,label\nq7,x,1\n")
    assert examples_module.read_examples(path, COLUMNS, "dev")[0].guid == "q7"


def test_rows_to_predict_need_no_labels_and_theirs_are_not_read(write):
    path = write("a.tsv", "text\tlabel\nx\tnonsense\n")
    (example,) = examples_module.read_examples(path, COLUMNS.without_label(), "test")
    assert example.label is None


def test_labels_are_those_of_the_training_file_sorted(write):
    path = write("a.tsv", "text\tlabel\nx\tsun\ny\train\nz\tsun\n")
    assert examples_module.TableProcessor({"train": path}).get_labels() == [
        "rain",
        "sun",
    ]


@pytest.mark.parametrize(
    "train_text, message",
    [
        ("text\tlabel\nx\tsun\ny\tsun\n", "all rows have the label 'sun'"),
        ("words\tlabel\nx\tsun\n", "no column 'text'; .* Choose columns with --text_"),
        (None, "pass --labels"),
    ],
)
def test_a_table_without_classes_is_refused(write, train_text, message):
    paths = {} if train_text is None else {"train": write("a.tsv", train_text)}
    with pytest.raises(ValueError, match=message):
        examples_module.TableProcessor(paths).get_labels()


def test_a_duplicate_id_is_refused_with_both_lines(write):
    path = write("a.csv", "id,text,label\nq7,x,1\nq8,y,1\nq7,z,0\n")
    with pytest.raises(ValueError, match=r"the id 'q7' occurs already in .*a\.csv:2"):
        examples_module.read_examples(path, COLUMNS, "dev")


def test_empty_texts_are_logged_and_kept(write, caplog):
    path = write("a.tsv", "first\tsecond\tsame\nx\t \t1\nx\ty\t1\n\ty\t1\n")
    assert len(examples_module.read_examples(path, PAIRS, "dev")) == 3
    [record] = caplog.records
    assert record.getMessage().endswith("a.tsv:2: a text is empty (2 in total).")


def test_classes_of_many_are_those_that_any_row_names(write):
    columns = examples_module.Columns(label_kind="multi_label", label_separator="|")
    path = write("a.tsv", "text\tlabel\nx\tsun|wind\ny\t\nz\train\n")
    processor = examples_module.TableProcessor({"train": path}, columns=columns)
    assert processor.get_labels() == ["rain", "sun", "wind"]
    path = write("b.tsv", "text\tlabel\nx\t\ny\t\n")
    processor = examples_module.TableProcessor({"train": path}, columns=columns)
    with pytest.raises(ValueError, match="the labels contain 0 different classes"):
        processor.get_labels()


@pytest.mark.parametrize("text_b, is_unused", [(None, True), ("text_b", False)])
def test_a_second_text_that_is_not_used_is_reported(write, caplog, text_b, is_unused):
    columns = examples_module.Columns(text_b_column=text_b)
    path = write("a.tsv", "text\ttext_b\tlabel\nx\tw\t1\ny\tz\t2\n")
    examples_module.TableProcessor({"train": path}, columns=columns).get_labels()
    assert ("pass --text_b_column=text_b" in caplog.text) is is_unused


def test_numbers_have_no_names(write):
    columns = examples_module.Columns(label_kind="regression")
    path = write("a.tsv", "text\tlabel\nx\t1.5\n")
    processor = examples_module.TableProcessor({"train": path}, columns=columns)
    assert processor.get_labels() == []
    path = write("b.tsv", "text\tlabel\nx\ta lot\n")
    with pytest.raises(ValueError, match=r"b\.tsv:2: the label 'a lot' is not a"):
        examples_module.TableProcessor(
            {"train": path}, columns=columns
        ).get_train_examples()


@pytest.mark.parametrize(
    "label, message",
    [
        ("joy,anger", "there is no column 'joy,anger'; the columns are 'text', 'joy'"),
        ("Joy", "the columns are .* Did you mean 'joy'?"),
        ("joy", r"a\.jsonl:1: column 'joy' is \[1, 2\]; expected text or a number"),
    ],
)
def test_several_numbers_for_one_text_are_refused(write, label, message):
    columns = examples_module.Columns(label_kind="regression", label_column=label)
    path = write("a.jsonl", '{"text": "x", "joy": [1, 2], "anger": 2}\n')
    processor = examples_module.TableProcessor({"train": path}, columns=columns)
    with pytest.raises(ValueError, match=message):
        processor.get_train_examples()


SPELLINGS = "text\tlabel\na\tpraise\nb\tPraise\nc\tpraise \nd\tblame\n"


def test_labels_that_differ_only_in_spelling_are_refused(write):
    processor = examples_module.TableProcessor({"train": write("a.tsv", SPELLINGS)})
    message = r"spelling: 'praise' \(2\) and 'Praise' \(1\)\. Correct them, or list all"
    with pytest.raises(ValueError, match=message):
        processor.get_labels()


def test_a_missing_label_is_refused_unless_it_is_named_as_a_class(write):
    path = write("a.tsv", "text\tlabel\nx\tNone\ny\tsome\n")
    with pytest.raises(ValueError, match=r":2: the label 'None' stands for a missing"):
        examples_module.TableProcessor({"train": path}).get_labels()
    processor = examples_module.TableProcessor({"train": path}, labels=("None", "some"))
    assert len(processor.get_train_examples()) == 2


KNOWN = ("rain", "wind")


@pytest.mark.parametrize(
    "text, separator, names",
    [
        ("rain", None, ("rain",)),
        ("rain ", None, ("rain",)),
        ("rain,wind", None, ("rain,wind",)),  # One class with a comma in its name.
        ("rain, wind", ",", ("rain", "wind")),
        ("rain ; ;wind", ";", ("rain", "wind")),
        ("", ";", ()),  # None of the classes.
    ],
)
def test_a_cell_names_its_classes(text, separator, names):
    assert label_names.names_in(text, separator) == names


@pytest.mark.parametrize(
    "kind, text, message",
    [
        ("single_label", "", "the label is empty"),
        ("single_label", "snow", "the label 'snow' is not one of rain, wind"),
        ("multi_label", "rain,snow", "the label 'snow' is not one of rain, wind"),
        ("single_label", "Rain", "'Rain' is another spelling of 'rain'; correct"),
        ("single_label", "NaN", "the label 'NaN' stands for a missing value"),
        ("multi_label", "rain,null", "the label 'null' stands for a missing value"),
        ("multi_label", "rain,rain", "contains a class twice"),
        ("regression", "much", "the label 'much' is not a finite number"),
        ("regression", "nan", "is not a finite number"),
        ("regression", "inf", "is not a finite number"),
    ],
)
def test_a_label_that_cannot_be_is_refused(kind, text, message):
    separator = "," if kind == "multi_label" else None
    known = () if kind == "regression" else KNOWN
    with pytest.raises(ValueError, match=message):
        label_names.check_label(text, known, kind=kind, separator=separator)


@pytest.mark.parametrize(
    "labels, message",
    [
        (map(str, range(12)), "each of the 12 labels occurs once; .* --regression"),
        (["0.5", "1.25", "2", "2"], "all labels are numbers, such as 0.5; .*--labels"),
        (["sun", "sun", "sun\u200b", "rain"], r"'sun' \(2\) and 'sun\\u200b' \(1\)"),
        (["1", "2", "3", "1.0 a"], None),  # Stars are classes.
    ],
)
def test_labels_that_are_no_classes_are_refused(write, labels, message):
    rows = [f"x{number}\t{label}" for number, label in enumerate(labels)]
    path = write("a.tsv", "\n".join(["text\tlabel", *rows]) + "\n")
    processor = examples_module.TableProcessor({"train": path})
    if message is None:
        assert len(processor.get_labels()) == 4
        return
    with pytest.raises(ValueError, match=message):
        processor.get_labels()
