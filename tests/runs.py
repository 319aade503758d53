"""Runs and answers as tests read and compare them, and flags as a command line has."""

import json
import pathlib
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints.release import bundle
from bert_tf.data import tfrecord


def flags_of(values):
    """Returns ["--name=value", ...]; None leaves a flag out."""
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def metrics(folder):
    """Returns the lines of metrics.jsonl."""
    return json_lines(pathlib.Path(folder) / "metrics.jsonl")


def json_lines(path):
    """Returns the values of a file of JSON lines."""
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def scores(folder):
    """Returns the scores in eval_results.txt by name."""
    lines = (pathlib.Path(folder) / "eval_results.txt").read_text().splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


def tensors(folder):
    """Returns {name: array} of the last checkpoint, slots and step included."""
    prefix = bundle.latest(str(folder))
    return bundle.read(prefix, sorted(bundle.read_names_and_shapes(prefix)))


def columns(path):
    """Returns {name: array [records, length]} of a file of records."""
    records = tfrecord.RecordFiles([path])
    rows = [records.decoded(row) for row in range(records.num_records)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def assert_same_batches(batches, expected):
    """Checks that two lists of batches are equal in every bit."""
    for batch, other in zip(batches, expected, strict=True):
        assert batch.keys() == other.keys()
        for name, values in other.items():
            np.testing.assert_array_equal(batch[name], values, err_msg=name)


def assert_same_tensors(folder, other):
    """Checks that the last checkpoints of two runs are equal in every bit."""
    actual, expected = tensors(folder), tensors(other)
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)


def assert_near_tensors(actual, expected, relative):
    """Checks that tensors are equal up to an error relative to each one's largest."""
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        scale = max(np.max(np.abs(array)), 1e-3)
        assert np.max(np.abs(actual[name] - array)) <= relative * scale, name


def copy_stopped(source, target, *, step, last_step):
    """Copies a run as it was after `step`, without its last checkpoint."""
    target.mkdir()
    for path in source.glob("*"):
        if path.is_file() and f"-{last_step}" not in path.name:
            shutil.copy(path, target)
    text = f'model_checkpoint_path: "model.ckpt-{step}"\n'
    (target / "checkpoint").write_text(text)
    return target


def assert_rate_follows_time(lines, *, warmup):
    """Checks a run of about 20 steps whose rate rises, then falls with the time."""
    rates = [line["learning_rate"] for line in lines]
    assert 10 < len(lines) < 40
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert top / len(rates) == pytest.approx(warmup, abs=0.1)


def assert_close(answer, expected, *, absolute=1e-5):
    """Compares answers, or lists of them; numbers may differ by rounding."""
    if isinstance(expected, dict):
        assert list(answer) == list(expected)
        for name in expected:
            assert_close(answer[name], expected[name], absolute=absolute)
    elif isinstance(expected, list | tuple):
        assert len(answer) == len(expected)
        for one, other in zip(answer, expected, strict=True):
            assert_close(one, other, absolute=absolute)
    elif isinstance(expected, float | np.floating):
        assert answer == pytest.approx(expected, abs=absolute)
    else:
        assert answer == expected
