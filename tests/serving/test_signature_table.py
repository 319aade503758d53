"""The table of signatures in docs/signatures.md is that of the code."""

import pathlib
import re

import pytest

from tests import ring

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
    tensors = re.findall(r"`(\w+)` (\w+) \[(.*?)\]", text)
    return {(name, dtype, len(shape.split(","))) for name, dtype, shape in tensors}


def of_code(specs):
    return {(name, one.dtype.name, one.shape.rank) for name, one in specs.items()}


@pytest.mark.parametrize("kind", ring.quick("single", of=MODELS))
def test_the_table_of_signatures_is_that_of_the_code(signatures, kind):
    table = {}
    for line in DOCS.read_text(encoding="utf-8").split("\n"):
        if line.startswith(f"| {MODELS[kind]} | `"):
            _, _, name, inputs, outputs, _ = line.split("|")
            table[name.strip(" `")] = in_cell(inputs), in_cell(outputs)
    assert table == {
        name: (
            of_code(one.structured_input_signature[1]),
            of_code(one.structured_outputs),
        )
        for name, one in signatures[kind].items()
    }
