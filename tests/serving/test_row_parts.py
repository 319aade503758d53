"""Rows are computed in parts of similar length, and come back in their order."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.serving import row_parts


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
        lambda **columns: row_parts.apply(described, columns, **options),
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


def test_no_rows_give_no_rows():
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
