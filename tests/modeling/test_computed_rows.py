"""Padding is left out of a training step, and nothing else changes."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.modeling import kernels
from bert_tf.modeling.kernels import computed_rows
from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import dropout_masks
from tests.modeling import small_config

CONFIG = small_config.create(
    num_hidden_layers=2, attention_probs_dropout_prob=0.3, hidden_dropout_prob=0.3
)
MASK = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]], "int32")
IDS = np.array([[2, 7, 0, 0], [2, 5, 8, 3], [4, 0, 0, 0]], "int32")
FEATURES = {
    "input_ids": IDS,
    "input_mask": MASK,
    "segment_ids": np.zeros_like(MASK),
    "label_ids": np.array([1, 0, 1], "int32"),
    "start_positions": np.array([1, 2, 0], "int32"),
    "end_positions": np.array([1, 3, 0], "int32"),
}
PARTS = {
    name: np.stack([FEATURES[name], FEATURES[name][::-1]], axis=1)
    for name in ("input_ids", "input_mask", "segment_ids")
}
MODELS = {
    "classifier": (functools.partial(bert_tf.BertClassifier, num_labels=3), FEATURES),
    "span_predictor": (bert_tf.BertSpanPredictor, FEATURES),
    "multiple_choice": (bert_tf.BertMultipleChoice, FEATURES | PARTS),
}


@pytest.fixture(autouse=True)
def few_rows_are_enough(monkeypatch):
    monkeypatch.setattr(computed_rows, "_SMALLEST_GAP", 4)
    monkeypatch.setattr(cpu, "MIN_ELEMENTS", 1)


KEYS = keras.ops.convert_to_tensor(dropout_masks.keys_of_examples(1, 2, np.arange(3)))


def test_rows_of_padding_are_left_out_and_come_back_as_zeros():
    rows = computed_rows.RealRows(tf.constant(MASK), KEYS)
    numbers = np.arange(1, 13, dtype="float32")[:, None]
    selected = rows.select(tf.constant(numbers))
    # Seven rows are real; one row of padding fills the second four.
    np.testing.assert_array_equal(selected[:, 0], [1, 2, 5, 6, 7, 8, 9, 3])
    np.testing.assert_array_equal(
        rows.put_back(selected)[:, 0], [1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 0, 0]
    )
    # Outputs do not show which padding was kept.
    np.testing.assert_array_equal(
        rows.output(selected)[0][:, :, 0], [[1, 2, 0, 0], [5, 6, 7, 8], [9, 0, 0, 0]]
    )


@pytest.mark.parametrize(
    "num_real, kept",
    [
        (0, 64),
        (64, 64),
        (65, 128),
        (449, 512),
        (513, 640),
        (1025, 1280),
        (4096, 4096),
        (4097, 4608),
        (8193, 9200),  # All rows: the next size is 9216.
    ],
)
def test_the_number_of_kept_rows_has_few_values(monkeypatch, num_real, kept):
    monkeypatch.setattr(computed_rows, "_SMALLEST_GAP", 64)
    mask = np.arange(9200)[None] < num_real
    rows = computed_rows.RealRows(tf.constant(mask, "int32"), None)
    assert len(rows.numbers) == kept


def test_the_kept_rows_have_the_dropout_masks_of_the_whole_batch():
    k = cpu.Cpu()
    whole = k.dropout(tf.ones([12, 5]), dropout_masks.at(KEYS, 7, 0.5))
    rows = computed_rows.RealRows(tf.constant(MASK), KEYS)
    kept = k.dropout(tf.ones([8, 5]), rows.dropout(7, 0.5))
    np.testing.assert_array_equal(kept, tf.gather(whole, rows.numbers))


def losses_and_gradients(model, features, *, num_examples):
    """Returns the loss, the gradients, and the kinds of operations."""
    variables = [variable.value for variable in model.trainable_variables]

    def compute(batch):
        keys = dropout_masks.keys_of_examples(1, 2, np.arange(3))
        with (
            kernels.use(cpu.Cpu(has_islands=True, num_examples=num_examples)),
            tf.GradientTape() as tape,
        ):
            outputs = model(batch, training=True, dropout_keys=keys)
            loss = model.total_loss(batch, outputs)
        return loss, tape.gradient(loss, variables)

    signature = {
        name: tf.TensorSpec(
            [*column.shape[:-1], None if column.ndim > 1 else column.shape[-1]],
            column.dtype,
        )
        for name, column in features.items()
    }
    step = tf.function(compute, autograph=False, input_signature=[signature])
    graph = step.get_concrete_function().graph
    kinds = {op.type for op in graph.get_operations()}
    return *step({k: tf.constant(v) for k, v in features.items()}), kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_loss_and_gradients_stay_the_same(name):
    create, features = MODELS[name]
    model = create(CONFIG)
    model.build()
    loss, gradients, operations = losses_and_gradients(
        model, features, num_examples=None
    )
    same_loss, same_gradients, with_rows = losses_and_gradients(
        model, features, num_examples=3
    )
    # Rows are sorted only where padding is left out.
    assert "TopKV2" not in operations
    assert "TopKV2" in with_rows
    np.testing.assert_allclose(same_loss, loss, rtol=1e-5)
    for same, gradient in zip(same_gradients, gradients, strict=True):
        if gradient is None:
            assert same is None
        else:
            np.testing.assert_allclose(
                tf.convert_to_tensor(same),
                tf.convert_to_tensor(gradient),
                rtol=1e-3,
                atol=1e-6,
            )


@pytest.mark.parametrize(
    "shape, mask_shape, num_examples, pays",
    [
        ([None, 8], [3, None], 3, True),
        ([None, 8], [3, None], None, False),  # Nothing of a varying size is compiled.
        ([12, 8], [3, 4], 3, False),  # All batches have the same length.
        ([None, 8], [3, None, None], 3, False),  # Each position sees other ones.
    ],
)
def test_where_padding_is_left_out(shape, mask_shape, num_examples, pays, monkeypatch):
    monkeypatch.setattr(cpu, "MIN_ELEMENTS", 16)
    k = cpu.Cpu(has_islands=True, num_examples=num_examples)
    sequences = []

    @tf.function(input_signature=[tf.TensorSpec(shape), tf.TensorSpec(mask_shape)])
    def choose(x, mask):
        sequences.append(k.sequences(x, tf.cast(mask, tf.int32), None))

    choose.get_concrete_function()
    assert isinstance(sequences[0], computed_rows.RealRows) is pays
