"""The table of signatures in docs/signatures.md is that of the code."""

import pathlib
import re

import pytest
import tensorflow as tf

from bert_tf.serving import saved_signatures

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "signatures.md"
MODELS = {
    "single": "classifier",
    "pair": "classifier of pairs",
    "choice": "multiple choice",
    "squad": "question answering",
    "tags": "token classification",
    "masks": "masked words",
}


def in_cell(text):
    """Returns the name, type and rank of each tensor in a cell of the table."""
    found = re.findall(r"`(\w+)` (\w+) \[(.*?)\]", text)
    return {(name, dtype, len(shape.split(","))) for name, dtype, shape in found}


def of_code(tensors):
    return {
        (name, tf.as_dtype(info.dtype).name, len(info.tensor_shape.dim))
        for name, info in tensors.items()
    }


@pytest.mark.parametrize("kind", MODELS)
def test_the_table_of_signatures_is_that_of_the_code(exports, kind):
    table = {}
    for line in DOCS.read_text(encoding="utf-8").split("\n"):
        if line.startswith(f"| {MODELS[kind]} | `"):
            _, _, name, inputs, outputs, _ = line.split("|")
            table[name.strip(" `")] = in_cell(inputs), in_cell(outputs)
    signatures = saved_signatures.read(exports[kind][1]).values()
    assert table == {
        one.name: (of_code(one.definition.inputs), of_code(one.definition.outputs))
        for one in signatures
    }
