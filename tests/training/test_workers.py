"""How several workers find each other, agree and save."""

import socket
import threading

import numpy as np
import pytest

from bert_tf.checkpoints.release import bundle
from bert_tf.training import options as training_options
from bert_tf.training import saving
from bert_tf.training import workers


class Meeting(workers.Workers):
    """A worker in a thread. A barrier replaces the collective operations."""

    def __init__(self, index, barrier, values):
        self.count, self.index = barrier.parties, index
        self._barrier = barrier
        self._values = values

    def gather(self, value):
        self._values[self.index] = value
        self._barrier.wait(timeout=20)
        found = np.array(self._values, np.float64)
        self._barrier.wait(timeout=20)
        return found


def together(work, count=2):
    """Runs work(worker) in `count` threads; returns the results or exceptions."""
    barrier, values = threading.Barrier(count), [0.0] * count
    results = [None] * count

    def run(index):
        try:
            results[index] = work(Meeting(index, barrier, values))
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def writer_of(worker, folder):
    """Returns a checkpoint writer without a model; see `one_number`."""
    record = training_options.CheckpointOptions(output_dir=str(folder))
    return saving.CheckpointWriter(None, None, record, worker)


@pytest.fixture
def one_number(monkeypatch):
    def copies(model, optimizer, step, train_seconds=None):
        return {"a": np.float32(step), "global_step": np.int64(step)}

    monkeypatch.setattr(saving, "copy_state", copies)


@pytest.fixture
def free_port():
    with socket.create_server(("localhost", 0)) as listener:
        return listener.getsockname()[1]


def test_workers_agree_on_the_chiefs_numbers_and_on_any_flag():
    def work(worker):
        return worker.broadcast_from_chief(10.0 + worker.index), worker.any_worker(
            worker.index == 1
        )

    assert together(work) == [(10.0, True), (10.0, True)]


def test_a_worker_that_differs_is_refused_by_all():
    values = ("content", "content", "older content")

    def work(worker):
        worker.check_same("--num_train_steps", 50)
        worker.check_same("the training data", values[worker.index])

    for error in together(work, 3):
        assert isinstance(error, ValueError)
        assert "Worker 2 differs from worker 0 in the training data" in str(error)


def test_the_chief_writes_and_it_counts_once_all_have_met(tmp_path, one_number):
    met = threading.Event()

    def work(worker):
        writer = writer_of(worker, tmp_path)
        writer.save(3)
        if worker.index == 1:
            written = tmp_path / "model.ckpt-3.index"
            while not written.exists():
                pass
            # The files are complete, but this worker has not reached the barrier.
            assert bundle.latest(tmp_path) is None
            met.set()
        writer.finish()
        return met.is_set()

    assert together(work) == [True, True]
    assert bundle.latest(tmp_path).endswith("model.ckpt-3")


def test_all_workers_end_where_the_chief_cannot_write(tmp_path, one_number):
    def work(worker):
        folder = tmp_path / "file" if worker.is_chief else tmp_path
        with writer_of(worker, folder) as writer:
            writer.save(3)

    (tmp_path / "file").write_text("No folder.")
    chief, worker = together(work)
    assert isinstance(chief, OSError)
    assert "The chief could not write the checkpoint of step 3" in str(worker)


def test_the_run_goes_on_while_a_checkpoint_is_written(
    tmp_path, one_number, monkeypatch
):
    may_write, write_parts = threading.Event(), bundle.write_parts

    def slowly(*arguments):
        assert may_write.wait(20)
        write_parts(*arguments)

    monkeypatch.setattr(saving.bundle, "write_parts", slowly)
    writer = writer_of(workers.Workers(None), tmp_path)
    writer.save(5)
    writer.check()
    assert bundle.latest(tmp_path) is None
    may_write.set()
    writer.finish()
    assert bundle.latest(tmp_path).endswith("model.ckpt-5")


def test_a_full_disk_ends_the_run_at_its_next_look(tmp_path, one_number, monkeypatch):
    def fail(*unused):
        raise OSError("The checkpoint run/model.ckpt-6 cannot be written: disk full")

    writer = writer_of(workers.Workers(None), tmp_path)
    writer.save(5)
    writer.finish()
    monkeypatch.setattr(saving.bundle, "write_parts", fail)
    writer.save(6)
    writer._thread.join()
    with pytest.raises(OSError, match="disk full"):
        writer.check()
    assert bundle.latest(tmp_path).endswith("model.ckpt-5")


def test_workers_wait_for_each_other(free_port):
    hosts = [f"localhost:{free_port}", "localhost:2", "localhost:3"]
    order = []

    def work(index):
        workers.wait_for_all(hosts, index, seconds=30)
        order.append(index)

    late = threading.Thread(target=work, args=(0,))
    early = [threading.Thread(target=work, args=(i,)) for i in (2, 1)]
    for thread in early:
        thread.start()
    assert order == []
    late.start()
    for thread in [late, *early]:
        thread.join(30)
    assert sorted(order) == [0, 1, 2]


@pytest.mark.parametrize(
    "index, message",
    [
        (0, r"Worker 1 \(localhost:2\) did not connect; start all 2 workers"),
        (1, r"Worker 0 \(localhost:\d+\) does not answer; start all workers"),
    ],
)
def test_a_worker_that_does_not_come_is_named(free_port, index, message):
    hosts = [f"localhost:{free_port}", "localhost:2"]
    with pytest.raises(OSError, match=message):
        workers.wait_for_all(hosts, index, seconds=0.1)


@pytest.mark.parametrize(
    "tf_config, message",
    [
        ("{}", "requires the environment variable TF_CONFIG with cluster and task"),
        (
            '{"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]},'
            ' "task": {"type": "evaluator", "index": 0}}',
            "task 0 of 'evaluator'; expected one of the 1 workers",
        ),
        (
            '{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}',
            "'a' has no port",
        ),
    ],
)
def test_a_tf_config_that_names_no_worker_is_refused(monkeypatch, tf_config, message):
    monkeypatch.setenv("TF_CONFIG", tf_config)
    with pytest.raises(ValueError, match=message):
        workers.create_strategy()
