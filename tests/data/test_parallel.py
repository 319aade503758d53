import argparse
import os
import pathlib
import signal
import threading
import time

import pytest

from bert_tf import files
from bert_tf.data import parallel


def write(task, on_bytes):
    path, text = task
    if text == "bad":
        raise ValueError(f"{path}: bad text")
    if text == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    with files.complete_or_absent(path) as file:
        file.write(text)
        if text == "slow":
            time.sleep(600)
    on_bytes(10)


def _run(tmp_path, texts, workers):
    tasks = [(str(tmp_path / f"{n}.txt"), text) for n, text in enumerate(texts)]
    where = argparse.Namespace(runner=parallel.LOCAL, num_workers=workers)
    parallel.run(write, tasks, where, stage="work", num_bytes=10 * len(tasks))


@pytest.mark.parametrize("workers", [1, 2])
def test_all_tasks_are_done_and_their_bytes_reported_once_at_the_end(
    tmp_path, workers, reported
):
    _run(tmp_path, "abcdef", workers)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == list("abcdef")
    assert reported[0] == ("work", 0, 60 / 1e6)
    assert reported[-1] == ("work", 60 / 1e6, 60 / 1e6)
    assert sorted(set(reported)) == reported


def test_a_worker_that_is_killed_is_a_clear_error(tmp_path):
    with pytest.raises(OSError, match="A worker process was killed, possibly"):
        _run(tmp_path, ["a", "killed", "b"], 2)


def test_an_interrupted_run_ends_soon_and_leaves_no_half_files(tmp_path):
    def stop_when_begun():
        folder = pathlib.Path(tmp_path)
        while len(list(folder.glob(".*.partial"))) < 2:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop_when_begun, daemon=True)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path, ["slow"] * 4, 2)
    assert time.monotonic() - start < 500
    assert list(tmp_path.iterdir()) == []
