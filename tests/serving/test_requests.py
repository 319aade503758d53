"""What servers do to requests: padding and empty batches."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.data import packing
from bert_tf.serving import class_signatures
from bert_tf.serving.signatures import real_mask
from tests import ring
from tests import runs

KINDS = ("single", "pair", "choice", "squad", "tags", "masks")
SHORT, LONG = "the [MASK]", "the [MASK] rain in spain " * 2


@pytest.mark.parametrize("kind", ring.quick("single", of=KINDS))
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
    is_absent = class_signatures.is_absent(tf.constant(endings)).numpy().tolist()
    assert is_absent == [[False, False, True, True]] * 3 + [[False] * 4] * 2


@pytest.mark.parametrize("kind", ring.quick("single", of=KINDS))
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


@pytest.mark.parametrize("kind", ring.quick("single", of=KINDS))
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
