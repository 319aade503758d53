"""exports: what a killed run may continue, and the table of its turns."""

import argparse
import importlib
import json
import sys

import pytest

TURNS = [
    {"task": "sst", "title": "ONNX", "round": 0, "bytes": 5e6, "speeds": [1, 2]},
    {"task": "sst", "title": "ONNX", "round": 1, "speeds": [3]},
]


@pytest.fixture
def exports(monkeypatch, request):
    pytest.importorskip("scipy", reason="benchmarks need scipy")
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    yield importlib.import_module("exports")
    sys.modules.pop("exports")


@pytest.fixture
def journal(exports, tmp_path):
    """A journal of two turns, the last line of which is incomplete."""
    path = tmp_path / "turns.jsonl"
    assert exports.earlier_turns(path, {"num_texts": 4}) == []
    with path.open("a") as file:
        file.write("".join(json.dumps(turn) + "\n" for turn in TURNS) + '{"task": "s')
    return path


def test_a_killed_run_continues_without_its_incomplete_line(exports, journal):
    for _ in range(2):
        assert exports.earlier_turns(journal, {"num_texts": 4}) == TURNS
    assert journal.read_text().endswith("}\n")


def test_turns_with_other_settings_are_refused(exports, journal):
    before = journal.read_text()
    with pytest.raises(SystemExit, match=r"other arguments.*another --work_dir"):
        exports.earlier_turns(journal, {"num_texts": 5})
    assert journal.read_text() == before


def test_the_files_of_a_run_are_among_the_settings(exports, tmp_path):
    flags = [f"{task}_{end}" for task in exports.TASKS for end in exports.INPUTS]
    args = argparse.Namespace(**dict.fromkeys(flags), small_runs=None, num_texts=4)
    args.sst_run, args.num_rounds, args.work_dir = str(tmp_path), 3, None
    (tmp_path / "model.ckpt-1.index").write_text("a")
    before = exports.settings_of(args)
    args.num_rounds = 5  # More turns of the same.
    assert exports.settings_of(args) == before
    (tmp_path / "model.ckpt-1.index").write_text("ab")
    assert exports.settings_of(args) != before


def test_speeds_of_other_tasks_are_left_out(exports):
    other = {"task": "squad", "title": "ONNX", "round": 0, "speeds": [900]}
    row = exports.row_of("ONNX", [*TURNS, other], ["sst", "squad"])
    assert row == ["ONNX", "5.0", "2 (1 to 3)", None, None]
