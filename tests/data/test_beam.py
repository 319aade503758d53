"""Beam's runners do what local processes do. Skipped if apache-beam is missing.

`make test-beam` runs them in their own environment.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MULTI_PROCESSING = "--direct_num_workers=2 --direct_running_mode=multi_processing"


@pytest.fixture
def beam():
    return pytest.importorskip(
        "apache_beam", reason="apache-beam is not installed: requirements/beam.txt"
    )


# Workers import it by its name. A worker that dies has written half of a part.
DYING = """
import os, pathlib, signal

from bert_tf.preparation import documents, workflow
from bert_tf.pretraining_data import shard_tasks

FOLDER = pathlib.Path(os.environ["FOLDER"])

def note(name):
    with open(FOLDER / "done.txt", "a") as file:
        file.write(f"{name} {os.getpid()}\\n")

def dies_at(name):
    marker = FOLDER / f"{name}.died"
    dying = os.environ["DIES"].removeprefix("all-of-").split(",")
    if name not in dying or marker.exists():
        return False
    marker.touch()
    return True

def die():
    # This runner waits for ever for a lost worker: what is killed is all of the run.
    everything = os.environ["DIES"].startswith("all-of-")
    kill = os.killpg if everything else os.kill
    kill(os.getpgrp() if everything else os.getpid(), signal.SIGKILL)

def read_one_and_die(*arguments):
    yield next(documents.read_all(*arguments))
    die()

documents.read_all = documents.read

def extract(task, on_bytes):
    name = f"part-{int(os.path.basename(task.text_path)[:6])}"
    note(name)
    documents.read = read_one_and_die if dies_at(name) else documents.read_all
    workflow.extract_all(task, on_bytes)

def do(task, on_bytes):
    name = f"shard-{task.index}"
    note(name)
    if dies_at(name):
        shard_tasks.finish = lambda *arguments: die()
    shard_tasks.do_all_of_it(task, on_bytes)

workflow.extract_all = workflow.extract
shard_tasks.do_all_of_it = shard_tasks.sample
"""
PROGRAM = """
import contextlib, os, sys

import dying
from bert_tf.preparation import inputs, options, workflow
from bert_tf.pretraining_data import shard_tasks
from bert_tf.pretraining_data import options as data_options
from bert_tf.pretraining_data import workflow as data_workflow

def main():
    runner, pipeline_options, folder, vocab_file = sys.argv[1:]
    inputs._UNIT_BYTES = 3000
    if runner != "local":
        workflow.extract, shard_tasks.sample = dying.extract, dying.do
    with contextlib.ExitStack() as stack:
        if runner == "DaskRunner":
            from dask import distributed
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    2, threads_per_worker=1, dashboard_address=None
                )
            )
            pipeline_options = f"--dask_client_address={cluster.scheduler_address}"
        where = dict(runner=runner, pipeline_options=pipeline_options)
        print(workflow.prepare_corpus(options.PrepareCorpusOptions(
            input_file=f"{folder}/in", output_dir=f"{folder}/{runner}/text",
            **where,
        )))
        print(data_workflow.create_data(data_options.CreatePretrainingDataOptions(
            input_file=f"{folder}/{runner}/text/corpus-*.txt",
            output_file=[f"{folder}/{runner}/{n}.tfrecord" for n in range(2)],
            vocab_file=vocab_file, max_seq_length=32, max_predictions_per_seq=5,
            dupe_factor=2, shard_mb=0.004, **where,
        )))

if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(1)
"""


@pytest.fixture
def run(golden, tmp_path):
    """Runs both tools' work on a runner; returns (exit code, output, files)."""
    (tmp_path / "in").mkdir()
    for n in range(12):
        lines = [f"File {n} says {m} to us. It goes on here." for m in range(20)]
        (tmp_path / "in" / f"{n:02d}.txt").write_text("\n".join(lines) + "\nThe end.\n")
    (tmp_path / "dying.py").write_text(DYING)
    (tmp_path / "program.py").write_text(PROGRAM)

    def program(runner, pipeline_options="", dies=""):
        done = subprocess.run(
            [
                sys.executable,
                tmp_path / "program.py",
                runner,
                pipeline_options,
                tmp_path,
                golden / "vocab.txt",
            ],
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
                "FOLDER": str(tmp_path),
                "DIES": dies,
            },
            capture_output=True,
            text=True,
            timeout=500,
            start_new_session=True,
        )
        return done.returncode, done.stdout + done.stderr, _contents(tmp_path / runner)

    return program


def _contents(folder):
    """Returns name -> bytes; the report's fingerprint knows names of files alone."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        # The side file of records is a zip, which has the time in it.
        if path.is_file() and path.suffix != ".npz"
    }


def _processes(tmp_path, prefix):
    lines = (tmp_path / "done.txt").read_text().splitlines()
    return {line.split()[1] for line in lines if line.startswith(prefix)}


@pytest.mark.parametrize(
    "runner, pipeline_options, dies",
    [
        ("FnApiRunner", MULTI_PROCESSING, ""),
        # Each stage loses a worker in the middle of its work, and does it again.
        ("DaskRunner", "", "part-1,shard-2"),
    ],
)
def test_runners_write_what_one_process_writes(
    beam, run, tmp_path, runner, pipeline_options, dies
):
    if runner == "DaskRunner":
        pytest.importorskip("distributed", reason="dask is not installed")
    code, output, expected = run("local")
    assert code == 0, output
    assert len([name for name in expected if name.startswith("text/corpus")]) > 2
    code, output, found = run(runner, pipeline_options, dies)
    assert code == 0, output
    assert list(found) == list(expected)  # No half files either.
    for name, data in expected.items():
        assert found[name] == data, name
    for prefix in ("part-", "shard-"):
        assert len(_processes(tmp_path, prefix)) >= 2
    for name in filter(None, dies.split(",")):
        assert (tmp_path / f"{name}.died").exists()


def test_a_run_that_is_killed_goes_on_with_what_is_done(beam, run, tmp_path):
    _, _, expected = run("local")
    code, _, found = run("FnApiRunner", MULTI_PROCESSING, "all-of-shard-2")
    assert code == -signal.SIGKILL
    assert any(name.endswith(".part") for name in found)
    assert not any(name.endswith(".tfrecord") for name in found)
    (tmp_path / "done.txt").unlink()
    code, output, found = run("FnApiRunner", MULTI_PROCESSING)
    assert code == 0, output
    # What a killed process had begun has a hidden name, and no run is known to own it.
    found = {name: data for name, data in found.items() if name[0] != "."}
    assert found == expected
    # The text was there, and is made again; at least a shard's records were done.
    assert "of them from an earlier run" in output


def test_a_mistake_is_one_clear_line_on_a_runner_too(
    beam, run_tool_process, golden, tmp_path
):
    path = tmp_path / "a.txt"
    path.write_bytes(b"Some text.\n\n" * 60 + b"\xff.\n")
    result = run_tool_process(
        "create_pretraining_data",
        f"--input_file={path}",
        f"--output_file={tmp_path / 'out'}",
        f"--vocab_file={golden / 'vocab.txt'}",
        "--shard_mb=0.0001",
        "--runner=FnApiRunner",
        exit_code=1,
    )
    assert f"{path}:" in result.refusal
    assert "not UTF-8" in result.refusal


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--pipeline_options=--x=1"], "--pipeline_options needs --runner with"),
        (["--runner=FlinkRunner", "--num_workers=3"], "--num_workers needs --runner"),
    ],
)
def test_flags_of_another_place_are_wrong_usage(run_tool, flags, message):
    result = run_tool(
        "prepare_corpus", "--input_file=x", "--output_dir=y", *flags, exit_code=2
    )
    assert message in result.stderr


def test_a_missing_beam_is_reported(run_tool, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "Text."}))
    result = run_tool(
        "prepare_corpus",
        f"--input_file={path}",
        f"--output_dir={tmp_path / 'out'}",
        "--runner=DirectRunner",
        exit_code=1,
    )
    assert "pip install 'bert_tf[beam]'" in result.stderr
