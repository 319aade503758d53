"""Results on other data have its name in theirs, so nothing is overwritten."""

import json

import pytest

from bert_tf.training import run_file
from bert_tf.training import run_folder

RESULTS = "eval_results.txt"


@pytest.fixture
def write(tmp_path):
    """Writes a file, and returns its data set."""

    def write(name, text="text\tlabel\nwet\train\n", **values):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return run_file.DataSet(name=run_file.stem(name), paths=(str(path),), **values)

    return write


@pytest.fixture
def run_dir(tmp_path):
    """Creates the folder of a run whose command names data: run_dir(RESULTS=dev)."""

    def create(**results):
        (tmp_path / "run").mkdir()
        names = {"dev": RESULTS, "test": "predictions.jsonl"}
        record = {
            names[part]: run_file.entry(data_set, may_be_missing=True)
            for part, data_set in results.items()
        }
        (tmp_path / "run" / "run.json").write_text(json.dumps({"results": record}))
        return str(tmp_path / "run")

    return create


def test_results_on_other_data_than_the_command_names_have_its_name(run_dir, write):
    run = run_dir(dev=write("dev.tsv"), test=write("test.tsv"))
    for file_name, data_set, suffix in (
        (RESULTS, write("dev.tsv"), ""),
        (RESULTS, write("news 2.tsv"), "-news_2"),
        (RESULTS, write("test.tsv"), "-test"),
        ("predictions.jsonl", write("test.tsv"), ""),
        ("predictions.jsonl", write("dev.tsv"), "-dev"),
        ("other.txt", write("dev.tsv"), ""),  # The command names no data for it.
    ):
        assert run_folder.RunFolder(run).suffix_of(file_name, data_set) == suffix


def test_data_that_does_not_exist_while_training_is_known_by_its_name(run_dir, write):
    later = run_file.file_data_set("/not/yet/dev.tsv")
    run = run_dir(dev=later)
    assert run_folder.RunFolder(run).suffix_of(RESULTS, write("dev.tsv")) == ""
    assert run_folder.RunFolder(run).suffix_of(RESULTS, write("ax.tsv")) == "-ax"


def test_records_are_identified_by_names_and_sizes(run_dir, write):
    run = run_dir(dev=write("heldout.tfrecord", "123", by_size=True))
    same = write("heldout.tfrecord", "124", by_size=True)
    assert run_folder.RunFolder(run).suffix_of(RESULTS, same) == ""
    longer = write("heldout.tfrecord", "1234", by_size=True)
    assert run_folder.RunFolder(run).suffix_of(RESULTS, longer) != ""


def test_other_results_say_in_the_file_what_they_are_of(run_dir, write):
    run = run_dir(dev=write("dev.tsv"))
    folder = run_folder.RunFolder(run)
    folder.write_eval_results({"eval_accuracy": 0.75}, write("dev.tsv"))
    folder.write_eval_results({"eval_accuracy": 0.25}, write("news 2.tsv"))
    with open(f"{run}/{RESULTS}") as file:
        assert file.read() == "eval_accuracy = 0.75\n"
    with open(f"{run}/eval_results-news_2.txt") as file:
        assert file.read() == "data_set = news 2\neval_accuracy = 0.25\n"


@pytest.mark.parametrize(
    "run",
    [
        {"flags": []},
        {"training_data": {"name": "a"}},
        {"training_data": "a"},
        {"training_data": {"name": None, "checksum": None}},
        {"flags": {"train_file": {"a": 1}}},
        {"results": {"eval_results.txt": "mnli"}},
    ],
)
def test_a_damaged_run_json_is_named(tmp_path, write, run):
    (tmp_path / "run.json").write_text(json.dumps(run))
    with pytest.raises(ValueError, match=r"run\.json has an unexpected value of"):
        run_folder.RunFolder(str(tmp_path)).suffix_of(RESULTS, write("dev.tsv"))
