"""The table of signatures in docs/signatures.md has the names that the code exports."""

import pathlib
import re

import pytest

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


@pytest.mark.parametrize("kind", MODELS)
def test_the_table_of_signatures_is_that_of_the_code(exports, kind):
    rows = [
        [set(re.findall(r"`(\w+)`", cell)) for cell in line.split("|")[2:5]]
        for line in DOCS.read_text(encoding="utf-8").split("\n")
        if line.startswith(f"| {MODELS[kind]} | `")
    ]
    assert len(rows) > 1
    for one in saved_signatures.read(exports[kind][1]).values():
        definition = one.definition
        assert [{one.name}, {*definition.inputs}, {*definition.outputs}] in rows
