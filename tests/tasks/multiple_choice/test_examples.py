"""Tables with a start and its endings, of every kind, and their faults."""

import pytest

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.tasks.multiple_choice import examples as examples_module

SWAG_HEADER = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
    "ending0,ending1,ending2,ending3,label\n"
)
OWN = "startphrase\tending0\tending1\tlabel\n"


def read(path, set_type="train", **columns):
    return examples_module.read_examples(
        path, examples_module.Columns(**columns), set_type
    )


def test_swags_table_as_it_is_published(write):
    row = '0,anet_1,3416,"He waits, then he","He waits, then",he,gold,sits.,runs.,eats.'
    path = write("train.csv", SWAG_HEADER + row + ',"says ""no"".",3\n')
    [example] = examples_module.read_examples(
        path, examples_module.LAYOUTS["SWAG"][1], "train"
    )
    assert example == examples_module.ChoiceExample(
        guid="train-1",
        start="He waits, then he",
        endings=("sits.", "runs.", "eats.", 'says "no".'),
        label=3,
    )


def test_codahs_table_has_tabs_and_no_header(write):
    path = write("dev.tsv", 'o\tHe "waits". He\tsits.\truns.\teats.\tgoes.\t2\n')
    [example] = examples_module.read_examples(
        path, examples_module.LAYOUTS["CODAH"][1], "dev"
    )
    assert (example.guid, example.start) == ("dev-1", 'He "waits". He')
    assert (example.endings[0], example.label) == ("sits.", 2)


def test_json_lines_may_hold_the_endings_as_a_list(write):
    row = {"startphrase": "He", "endings": ["sits", "runs"], "label": 1}
    [example] = read(write("a.jsonl", [row]))
    assert (example.endings, example.label) == (("sits", "runs"), 1)


def test_endings_are_in_the_order_of_their_numbers(write):
    names = "\t".join(f"ending{i}" for i in (10, *range(10)))
    texts = "\t".join(f"e{i}" for i in (10, *range(10)))
    path = write("a.tsv", f"startphrase\t{names}\tlabel\nHe\t{texts}\t10\n")
    [example] = read(path)
    assert example.endings == tuple(f"e{i}" for i in range(11))


def test_labels_may_have_another_name_and_ids_are_kept(write):
    path = write("a.csv", "id,startphrase,ending0,ending1,right\nx7,He,sits,runs,1\n")
    [example] = read(path, label_column="right")
    assert (example.guid, example.label) == ("x7", 1)


def test_a_file_to_predict_needs_no_labels(write):
    path = write("a.tsv", "startphrase\tending0\tending1\nHe\tsits\truns\n")
    columns = examples_module.Columns().without_label()
    [example] = examples_module.read_examples(path, columns, "test")
    assert (example.guid, example.label) == ("test-1", None)


@pytest.mark.parametrize(
    "content, message",
    [
        (OWN + "He\tsits\truns\t2\n", r"a\.tsv:2: the label is '2'; .* 0 to 1"),
        (OWN + "He\tsits\truns\t\n", r"a\.tsv:2: the label is ''"),
        (OWN + "He\tsits\truns\t0\n \ta\tb\t0\n", r":3: the start .* is empty"),
        (OWN + "He\tsits\t \t0\n", r"a\.tsv:2: ending 1 is empty"),
        (OWN + "He\tsits\truns\teats\t0\n", r"a\.tsv:2: expected 4 columns .*, got 5"),
        ("startphrase\tending0\nHe\tsits\n", r":1: there is no column 'label'"),
        ("startphrase\tending0\tlabel\nHe\tsits\t0\n", r":2: there are 1 endings"),
        (OWN, r"a\.tsv has no rows"),
        (
            "id\t" + OWN + "x\tHe\ta\tb\t0\ny\tHe\ta\tb\t0\nx\tShe\ta\tb\t0\n",
            r"a\.tsv:4: the id 'x' occurs already in .*a\.tsv:2",
        ),
    ],
)
def test_a_bad_row_is_refused_with_file_and_line(write, content, message):
    with pytest.raises(ValueError, match=message):
        read(write("a.tsv", content))


@pytest.mark.parametrize(
    "record, message",
    [
        ({"endings": ["a", "b", "c"]}, r":2: there are 3 endings, but expected 2"),
        ({"endings": "a"}, r":2: column 'endings' is \"a\"; expected a list"),
        ({"endings": ["a", ""]}, r":2: ending 1 is empty"),
    ],
)
def test_lists_of_endings_must_be_of_one_length(write, record, message):
    good = {"startphrase": "He", "label": 0, "endings": ["a", "b"]}
    bad = {"startphrase": "He", "label": 0} | record
    with pytest.raises(ValueError, match=message):
        read(write("a.jsonl", [good, bad]))


@pytest.mark.parametrize(
    "file, name", [("test.csv", "SWAG"), ("train.tsv", "CODAH"), ("a.tsv", None)]
)
def test_a_folder_shows_by_its_files_which_data_set_it_is(tmp_path, file, name):
    (tmp_path / file).touch()
    if name is None:
        with pytest.raises(ValueError, match="contains no data set"):
            examples_module.layout_of(str(tmp_path))
    else:
        layout = examples_module.layout_of(str(tmp_path))
        assert layout == examples_module.LAYOUTS[name]


def test_the_shared_files_are_read_whole(shared):
    folder = shared / "data" / "swag_like"
    names, columns = examples_module.layout_of(str(folder))
    counts = [
        len(examples_module.read_examples(str(folder / name), columns, "dev"))
        for name in names
    ]
    assert counts == [1665, 556, 555]


def test_labels_that_count_from_1_are_reported(write, choice_options, tmp_path, caplog):
    rows = "".join(f"He {number}\tsits\truns\t1\n" for number in range(20))
    path = write("a.tsv", OWN + rows)
    fine_tuning_run.prepare(choice_options(tmp_path / "run", train_file=path))
    assert "of the 20 labels is below 1, but they are counted from 0" in caplog.text
