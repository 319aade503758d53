"""--cache_dir: remote examples are copied once, and read like local files."""

import collections
import logging
import os

import pytest

from bert_tf import files
from bert_tf.data import local_copies
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.training import run_folder
from tests.data import store_double


@pytest.fixture
def store(tmp_path, monkeypatch):
    store = store_double.ObjectStore(tmp_path / "bucket")
    (tmp_path / "bucket" / "a").mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "bucket" / "a" / name).write_bytes(name.encode() * 3_000_000)
    (tmp_path / "bucket" / "a" / "one.index.npz").write_bytes(b"side file")
    monkeypatch.setattr(files, "_gfile", lambda: store)
    return store


PATHS = ["store://a/one", "store://a/two"]


def read_since(store, place):
    """Returns how often each file was read since a number of requests."""
    read = [path for operation, path in store.requests[place:] if operation == "read"]
    return collections.Counter(read)


def test_files_are_copied_once_with_their_side_files(store, tmp_path):
    cache = str(tmp_path / "cache")
    copies = local_copies.local_copies([*PATHS, "here"], cache)
    assert [os.path.basename(path) for path in copies] == ["one", "two", "here"]
    for path, name in zip(copies, ("one", "two"), strict=False):
        with open(path, "rb") as file:
            assert file.read() == name.encode() * 3_000_000
    assert os.path.exists(copies[0] + ".index.npz")
    place = len(store.requests)
    assert local_copies.local_copies([*PATHS, "here"], cache) == copies
    assert not read_since(store, place)


def test_a_changed_file_is_copied_again(store, tmp_path):
    cache = str(tmp_path / "cache")
    local_copies.local_copies(PATHS, cache)
    changed = tmp_path / "bucket" / "a" / "one"
    changed.write_bytes(b"new" * 3_000_000)
    os.utime(changed, (2e9, 2e9))
    (tmp_path / "bucket" / "a" / "one.index.npz").unlink()
    place = len(store.requests)
    copy, _ = local_copies.local_copies(PATHS, cache)
    assert set(read_since(store, place)) == {"store://a/one"}
    with open(copy, "rb") as file:
        assert file.read(3) == b"new"
    # The old side file would describe other records.
    assert not os.path.exists(copy + ".index.npz")


def test_a_file_that_changes_while_it_is_copied_leaves_no_copy(
    store, tmp_path, monkeypatch
):
    request = store.request

    def changes_its_time(operation, path, num_bytes=0):
        if operation == "read" and path == "store://a/two":
            os.utime(tmp_path / "bucket" / "a" / "two", (1e9, 1e9))
        return request(operation, path, num_bytes)

    monkeypatch.setattr(store, "request", changes_its_time)
    with pytest.raises(OSError, match=r"^store://a/two changed while it was copied"):
        local_copies.local_copies(PATHS, str(tmp_path / "cache"))
    assert not list((tmp_path / "cache").rglob("*two*"))


def test_a_remote_cache_is_refused(store):
    with pytest.raises(ValueError, match="--cache_dir=store://c: expected a local fol"):
        local_copies.local_copies(PATHS, "store://c")


def losses(tmp_path, golden, name, input_file, **options):
    output_dir = tmp_path / name
    recorded = golden / "model"
    pretraining_workflow.train(
        pretraining_options.RunPretrainingOptions(
            input_file=input_file,
            output_dir=str(output_dir),
            bert_config_file=str(recorded / "bert_config.json"),
            max_seq_length=64,
            max_predictions_per_seq=10,
            train_batch_size=4,
            num_train_steps=3,
            num_warmup_steps=1,
            log_every_steps=1,
            **options,
        )
    )
    lines = run_folder.RunFolder(str(output_dir)).read_metrics()
    return [line["loss"] for line in lines]


def test_a_run_reads_copies_as_it_reads_local_files(
    tmp_path, golden, monkeypatch, caplog
):
    store = store_double.ObjectStore(golden / "model")
    monkeypatch.setattr(files, "_gfile", lambda: store)
    local = losses(tmp_path, golden, "local", str(golden / "model/examples.tfrecord"))
    with caplog.at_level(logging.INFO):
        copied = losses(
            tmp_path,
            golden,
            "copied",
            "store://examples.tfrecord",
            cache_dir=str(tmp_path / "cache"),
        )
    assert copied == local
    assert sum(read_since(store, 0).values()) < 5
    assert "Remote examples are read from their copies in" in caplog.text
