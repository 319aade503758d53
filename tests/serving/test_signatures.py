"""Signatures are those of the documentation, and compute any request in parts."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.data import packing
from bert_tf.serving import row_signatures
from bert_tf.serving.signatures import apply_in_parts
from bert_tf.serving.signatures import real_mask
from tests import ring
from tests import runs

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "signatures.md"
MODELS = {
    "single": "classifier",
    "pair": "classifier of pairs",
    "choice": "multiple choice",
    "squad": "question answering",
    "tags": "token classification",
    "masks": "masked words",
}
SHORT, LONG = "the [MASK]", "the [MASK] rain in spain " * 2


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


@pytest.mark.parametrize("kind", ring.quick("single", of=MODELS))
def test_ids_are_the_same_under_any_padding(signatures, golden, kind):
    functions = signatures[kind]
    tokenizer = bert_tf.FullTokenizer(str(golden / "vocab.txt"), do_lower_case=True)
    alone = packing.pack(tokenizer, [SHORT], max_seq_length=16)
    length = int(alone["input_mask"].sum())
    alone = {name: rows[:, :length] for name, rows in alone.items()}
    longer = packing.pack(tokenizer, [LONG], max_seq_length=16)
    expected = functions["ids"](**as_tensors(alone))

    def padded(rows, name, of_server):
        # A server repeats the first value of each input.
        value = rows[0, 0] if of_server else 0
        missing = longer[name].shape[1] - length
        rows = np.pad(rows, [[0, 0], [0, missing]], constant_values=value)
        return np.concatenate([rows, longer[name]])

    for of_server in (False, True):
        batch = {name: padded(rows, name, of_server) for name, rows in alone.items()}
        if of_server:
            assert batch["input_mask"].all()
        outputs = functions["ids"](**as_tensors(batch))
        for name, values in expected.items():
            row = outputs[name][:1]
            if values.shape.rank > 1:
                row = row[:, : values.shape[1]]
            runs.assert_close(row.numpy().tolist(), values.numpy().tolist())


def test_a_mask_in_the_middle_of_a_row_is_kept():
    ids = tf.constant([[2, 5, 2, 0, 3, 2, 0, 2], [2, 2, 2, 2, 2, 2, 2, 2]])
    mask = tf.constant([[1, 0, 1, 1, 1, 1, 1, 1], [1] * 8])
    assert real_mask(ids, mask, cls_id=2, pad_id=0).numpy().tolist() == [
        [1, 0, 1, 1, 1, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 0],
    ]
    # A vocabulary without [PAD]: 0 is a word.
    mask = real_mask(ids, mask, cls_id=2, pad_id=None)
    assert mask[0].numpy().tolist() == [1, 0, 1, 1, 1, 1, 1, 0]


def test_endings_that_a_server_repeats_are_absent():
    endings = [
        ["yes", "no", "", ""],
        ["yes", "no", "yes", "yes"],  # Padded by the server.
        ["yes", "no", "", "yes"],  # By the client, then by the server.
        ["yes", "yes, but", "no", "maybe"],
        ["no", "yes", "no", "yes"],
    ]
    is_absent = row_signatures.is_absent(tf.constant(endings)).numpy().tolist()
    assert is_absent == [[False, False, True, True]] * 3 + [[False] * 4] * 2


@pytest.mark.parametrize("kind", ring.quick("single", of=MODELS))
def test_no_rows_give_no_rows(signatures, kind):
    for name, function in signatures[kind].items():
        inputs = {
            key: tf.zeros([size or 0 for size in spec.shape], spec.dtype)
            for key, spec in function.structured_input_signature[1].items()
        }
        assert {rows.shape[0] for rows in function(**inputs).values()} == {0}, name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pair", "choice", "squad"])
@pytest.mark.parametrize("counts", [(1, 2), (2, 1)])
def test_inputs_with_different_numbers_of_rows_are_refused(signatures, kind, counts):
    function = signatures[kind]["serving_default"]
    specs = function.structured_input_signature[1]
    inputs = {
        name: tf.fill([count, 2][: specs[name].shape.rank], "rain")
        for name, count in zip(sorted(specs), counts, strict=True)
    }
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"same number of rows; \w+, \w+ have"
    ):
        function(**inputs)


def as_tensors(columns):
    return {name: tf.constant(rows, tf.int32) for name, rows in columns.items()}


@pytest.mark.parametrize("kind", ring.quick("single", of=MODELS))
@pytest.mark.parametrize(
    "name, values, message",
    [
        ("input_ids", [[2, -1, 3]], r"got.*\[-1\] .*row.* \[0\] .*column.* \[1\]"),
        ("input_ids", [[2, 10**6, 3]], r"below [0-9]+, got.*\[1000000\]"),
        ("segment_ids", [[0, 0, 2]], r"at least 0 and below 2, got.*\[2\]"),
        ("input_mask", [[1, 1]], "must have the same shape"),
        ("input_mask", [[1, 5, 1]], r"at least 0 and below 2, got.*\[5\]"),
    ],
)
def test_ids_outside_their_tables_are_refused(signatures, kind, name, values, message):
    row = {"input_ids": [[2, 7, 3]], "input_mask": [[1] * 3], "segment_ids": [[0] * 3]}
    tensors = as_tensors(row | {name: values})
    functions = signatures[kind]
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        functions["ids"](**tensors)


def features_of(lengths, width=None):
    """Returns rows with the given numbers of positions; row n has the ids n + 1."""
    width = max([*lengths, 0]) if width is None else width
    mask = (np.arange(width) < np.array(lengths)[:, None]).astype(np.int32)
    ids = mask * (np.arange(len(lengths))[:, None] + 1).astype(np.int32)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": 0 * mask}


IDS = tf.TensorSpec([None, None], tf.int32)


@tf.function(
    input_signature=[{"input_ids": IDS, "input_mask": IDS, "segment_ids": IDS}],
    autograph=False,
)
def described(part):
    """Returns what a part looks like, for each of its rows."""
    shape = tf.shape(part["input_ids"])
    rows = shape[:1]
    return {
        "number": tf.reduce_max(part["input_ids"], axis=1),
        "height": tf.fill(rows, shape[0]),
        "width": tf.fill(rows, shape[1]),
        "fixed": tf.zeros([shape[0], 3]),
        "each": part["input_ids"],
        "word": tf.fill(shape, "x"),
    }


def applied(features, **options):
    graph = tf.function(
        lambda **columns: apply_in_parts(described, columns, **options),
        autograph=False,
    )
    return graph(**{name: tf.constant(rows) for name, rows in features.items()})


@pytest.mark.parametrize(
    "lengths, max_tokens, widths, heights",
    [
        # The long text does not make the short ones wide.
        ([8] * 15 + [256] + [8] * 16, 8192, [8] * 15 + [256] + [8] * 16, {31, 1}),
        # Small differences do not earn a part of their own.
        ([9, 12, 10], 8192, [12, 12, 12], {3}),
        # The limit counts padding: 3 rows of 10 positions.
        ([10, 10, 9, 10], 30, [10] * 4, {1, 3}),
        # A row above the limit is computed alone.
        ([40, 2, 40], 30, [40, 2, 40], {1}),
    ],
)
def test_rows_of_similar_length_are_computed_together(
    lengths, max_tokens, widths, heights
):
    outputs = applied(features_of(lengths), max_tokens=max_tokens)
    assert outputs["width"].numpy().tolist() == widths
    assert set(outputs["height"].numpy().tolist()) == heights
    assert outputs["number"].numpy().tolist() == list(range(1, len(lengths) + 1))


def test_positions_that_were_left_out_are_padded():
    features = features_of([2, 300], width=400)
    outputs = applied(features, max_tokens=9, padding={"each": -1})
    expected = np.where(features["input_mask"], features["input_ids"], -1)
    expected[0, 2:] = -1
    np.testing.assert_array_equal(outputs["each"], expected)
    assert outputs["word"].shape == (2, 400)
    assert outputs["word"][0].numpy().tolist() == [b"x"] * 2 + [b""] * 398


def test_rows_can_keep_their_padding():
    outputs = applied(features_of([2, 300], width=400), max_tokens=9, trims=False)
    assert outputs["width"].numpy().tolist() == [400, 400]


def test_rows_can_count_for_more_than_their_length():
    features = features_of([4] * 6)
    costs = tf.constant([1, 1, 20, 1, 1, 20])
    outputs = applied(features, max_tokens=24, costs=costs)
    assert outputs["height"].numpy().tolist() == [4, 4, 1, 4, 4, 1]


def test_a_row_without_real_positions_keeps_its_width():
    features = features_of([0, 3], width=5)
    assert applied(features, max_tokens=99)["width"].numpy().tolist() == [5, 5]


def test_no_rows_have_no_parts():
    outputs = applied(features_of([], width=0), max_tokens=8)
    shapes = {name: value.shape.as_list() for name, value in outputs.items()}
    assert shapes == {
        "number": [0],
        "height": [0],
        "width": [0],
        "fixed": [0, 3],
        "each": [0, 0],
        "word": [0, 0],
    }
