"""Results on other data have its name in theirs, so nothing is overwritten."""

import json
import os
import pathlib
import time
from concurrent import futures

import pytest

from bert_tf.training import result_files
from bert_tf.training import run_folder

RESULTS = "eval_results.txt"


@pytest.fixture
def write(tmp_path):
    """Writes a file, and returns its data set."""

    def write(name, text="text\tlabel\nwet\train\n"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return result_files.file_data_set(str(path))

    return write


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "run").mkdir()
    return str(tmp_path / "run")


def test_the_first_data_set_is_the_runs_own(run_dir, write):
    assert result_files.record_data_set(run_dir, RESULTS, write("dev.tsv")) == ""
    assert result_files.record_data_set(run_dir, RESULTS, write("news.tsv")) == "-news"
    # The same data again keeps its file.
    assert result_files.record_data_set(run_dir, RESULTS, write("dev.tsv")) == ""
    assert result_files.record_data_set(run_dir, RESULTS, write("news.tsv")) == "-news"


def test_data_that_the_training_named_is_the_runs_own_even_if_evaluated_later(run_dir):
    mnli, ax = result_files.DataSet(name="mnli"), result_files.DataSet(name="ax")
    result_files.claim(run_dir, {RESULTS: mnli}, is_new=True)
    assert result_files.record_data_set(run_dir, RESULTS, ax) == "-ax"
    assert result_files.record_data_set(run_dir, RESULTS, mnli) == ""
    result_files.claim(run_dir, {RESULTS: ax}, is_new=False)  # A resumed run.
    assert result_files.own_name(run_dir, RESULTS) == "mnli"


def test_processes_that_record_at_once_lose_nothing(run_dir, monkeypatch):
    sets = [result_files.DataSet(name=f"set{number}") for number in range(4)]
    read = result_files._read
    # Without a lock, all read before the first one writes.
    monkeypatch.setattr(
        result_files, "_read", lambda path: (read(path), time.sleep(0.05))[0]
    )
    with futures.ThreadPoolExecutor(len(sets)) as pool:
        suffixes = list(
            pool.map(
                lambda one: result_files.record_data_set(run_dir, RESULTS, one), sets
            )
        )
    assert sorted(suffixes).count("") == 1
    record = json.loads((pathlib.Path(run_dir) / "data_sets.json").read_text())
    assert {entry["name"] for entry in record.values()} == {one.name for one in sets}
    assert os.listdir(run_dir) == ["data_sets.json"]


@pytest.mark.parametrize("own", ["own/dev.tsv", "own/first.tsv"])
def test_files_of_the_same_name_with_different_content_are_distinguished(
    run_dir, write, own
):
    names = {
        result_files.with_suffix(
            RESULTS, result_files.record_data_set(run_dir, RESULTS, data_set)
        )
        for data_set in (write(own, "1"), write("a/dev.tsv", "2"), write("b/dev.tsv"))
    }
    assert len(names) == 3
    assert RESULTS in names
    assert all(name == RESULTS or "dev" in name for name in names)


def test_each_kind_of_result_has_its_own_data(run_dir, write):
    dev, test = write("dev.tsv"), write("test.tsv")
    assert result_files.record_data_set(run_dir, RESULTS, dev) == ""
    assert result_files.record_data_set(run_dir, "predictions.jsonl", test) == ""
    assert result_files.record_data_set(run_dir, "predictions.jsonl", dev) == "-dev"


@pytest.mark.parametrize(
    "flags, suffix",
    [
        ({"eval_file": "data/dev.tsv"}, ""),  # The old run names this data.
        ({"eval_file": "data/other.tsv"}, "-dev"),
        ({}, "-dev"),  # Unknown: what exists is not replaced.
    ],
)
def test_results_of_a_run_without_a_record_are_kept(run_dir, write, flags, suffix):
    with open(f"{run_dir}/{RESULTS}", "w") as file:
        file.write("eval_accuracy = 0.5\n")
    with open(f"{run_dir}/run.json", "w") as file:
        json.dump({"flags": flags}, file)
    assert result_files.record_data_set(run_dir, RESULTS, write("dev.tsv")) == suffix


def test_records_are_identified_by_names_and_sizes(run_dir, write):
    def records(text):
        path = write("heldout.tfrecord", text).paths
        return result_files.DataSet(name="heldout", paths=path, by_size=True)

    assert result_files.record_data_set(run_dir, RESULTS, records("123")) == ""
    assert result_files.record_data_set(run_dir, RESULTS, records("124")) == ""
    assert result_files.record_data_set(run_dir, RESULTS, records("1234")) != ""


def test_other_results_say_in_the_file_what_they_are_of(run_dir, write):
    folder = run_folder.RunFolder(run_dir)
    folder.write_eval_results({"eval_accuracy": 0.75}, write("dev.tsv"))
    folder.write_eval_results({"eval_accuracy": 0.25}, write("news 2.tsv"))
    with open(f"{run_dir}/{RESULTS}") as file:
        assert file.read() == "eval_accuracy = 0.75\n"
    with open(f"{run_dir}/eval_results-news_2.txt") as file:
        assert file.read() == "data_set = news 2\neval_accuracy = 0.25\n"


def test_workers_other_than_the_chief_record_nothing(run_dir, write):
    folder = run_folder.RunFolder(run_dir, is_written=False)
    assert folder.record_data_set(RESULTS, write("dev.tsv")) == ""
    assert result_files.own_name(run_dir, RESULTS) is None


@pytest.mark.parametrize("text", ["{", '{"eval_results.txt": "mnli"}'])
def test_a_damaged_record_is_named(run_dir, write, text):
    with open(f"{run_dir}/data_sets.json", "w") as file:
        file.write(text)
    with pytest.raises(ValueError, match=r"data_sets\.json"):
        result_files.record_data_set(run_dir, RESULTS, write("dev.tsv"))


@pytest.mark.parametrize(
    "run",
    [
        {"flags": []},
        {"training_data": {"name": "a"}},
        {"training_data": "a"},
        {"training_data": {"name": None, "checksum": None}},
        {"flags": {"train_file": {"a": 1}}},
        {"earlier": {}},
        {"earlier": [{"flags": {}}]},
        {"earlier": [{"until_step": 1, "flags": []}]},
    ],
)
def test_a_damaged_run_json_is_named(run_dir, write, run):
    with open(f"{run_dir}/run.json", "w") as file:
        json.dump(run, file)
    for read in (
        lambda: result_files.warn_if_trained_on(run_dir, write("dev.tsv")),
        run_folder.RunFolder(run_dir).earlier_settings,
    ):
        with pytest.raises(ValueError, match=r"run\.json has an unexpected value of"):
            read()
