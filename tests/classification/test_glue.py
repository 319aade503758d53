import pytest

from bert_tf.classification import glue

# The first lines of each task's files, in the form that GLUE hands them out.
FILES = {
    "cola": {
        "train": "gj04\t1\t\tHe slept.\nbc01\t0\t*\tHim slept.\n",
        "dev": "gj04\t0\t*\tSlept he the.\n",
        "test": "index\tsentence\n0\tShe slept.\n",
    },
    "mrpc": {
        "train": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        '1\t7\t8\tHe said "yes.\tYes, he said.\n',
        "dev": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tA.\tB.\n",
        "test": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tC.\tD.\n",
    },
    "sst-2": {
        "train": "sentence\tlabel\na fine film \t1\n",
        "dev": "sentence\tlabel\ndull \t0\n",
        "test": "index\tsentence\n0\tuneasy mishmash .\n",
    },
}


@pytest.fixture
def folder_of(tmp_path):
    def write_files(task_name):
        for set_type, text in FILES[task_name].items():
            (tmp_path / f"{set_type}.tsv").write_text(text, encoding="utf-8")
        return str(tmp_path)

    return write_files


@pytest.mark.parametrize(
    "task_name, train, dev, test",
    [
        (
            "cola",
            ("train-0", "He slept.", None, "1"),  # No header: rows from 0.
            ("dev-0", "Slept he the.", None, "0"),
            ("test-1", "She slept.", None, None),
        ),
        (
            "mrpc",
            ("train-1", 'He said "yes.', "Yes, he said.", "1"),
            ("dev-1", "A.", "B.", "0"),
            ("test-1", "C.", "D.", None),
        ),
        (
            "sst-2",
            ("train-1", "a fine film ", None, "1"),
            ("dev-1", "dull ", None, "0"),
            ("test-1", "uneasy mishmash .", None, None),
        ),
    ],
)
def test_a_task_reads_its_files(folder_of, task_name, train, dev, test):
    folder = folder_of(task_name)
    processor = glue.PROCESSORS[task_name]()
    firsts = [
        processor.get_train_examples(folder)[0],
        processor.get_dev_examples(folder)[0],
        processor.get_test_examples(folder)[0],
    ]
    assert [(e.guid, e.text_a, e.text_b, e.label) for e in firsts] == [train, dev, test]
    assert processor.get_labels() == ["0", "1"]


@pytest.mark.parametrize(
    "line, message",
    [
        ("gj04\t2\t\tHe slept.\n", r"train\.tsv:1: the label '2' is not one of 0, 1"),
        ("gj04\t1\tHe slept.\n", r"train\.tsv:1: expected 4 columns .*, got 3"),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_line(tmp_path, line, message):
    (tmp_path / "train.tsv").write_text(line)
    with pytest.raises(ValueError, match=message):
        glue.ColaProcessor().get_train_examples(str(tmp_path))


@pytest.mark.parametrize(
    "task_name, folder, counts",
    [
        ("cola", "CoLA", (8551, 1043, 1063)),
        ("mrpc", "MRPC", (3668, 408, 1725)),
        ("sst-2", "SST-2", (67349, 872, 1821)),
    ],
)
def test_the_real_files_have_the_published_numbers_of_examples(
    shared, task_name, folder, counts
):
    folder = str(shared / "data" / "glue" / folder)
    processor = glue.PROCESSORS[task_name]()
    found = [
        len(processor.get_train_examples(folder)),
        len(processor.get_dev_examples(folder)),
        len(processor.get_test_examples(folder)),
    ]
    assert tuple(found) == counts
