"""Run folders as tests read and compare them, and flags as a command line has them."""

import json
import pathlib

import numpy as np

from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import rotation


def flags_of(values):
    """Returns ["--name=value", ...]; None leaves a flag out."""
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def metrics(folder):
    """Returns the lines of metrics.jsonl."""
    lines = (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def scores(folder):
    """Returns the scores in eval_results.txt by name."""
    lines = (pathlib.Path(folder) / "eval_results.txt").read_text().splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


def tensors(folder):
    """Returns {name: array} of the last checkpoint, slots and step included."""
    prefix = rotation.latest(str(folder))
    return bundle.read(prefix, sorted(bundle.read_names_and_shapes(prefix)))


def assert_same_tensors(folder, other):
    """Checks that the last checkpoints of two runs are equal in every bit."""
    actual, expected = tensors(folder), tensors(other)
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)
