"""What every task's model promises: built, run, trained a step, saved, compiled."""

import dataclasses
import subprocess
import sys
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.modeling import classifier
from bert_tf.modeling import pretrainer
from bert_tf.modeling.kernels import dropout_masks
from tests import ring
from tests.modeling import small_config

SMALL = small_config.create()
CAUSAL = dataclasses.replace(SMALL, attention="causal")
# With weights of 0.02 an untrained vector is too short to tell endings apart.
WIDE = dataclasses.replace(SMALL, initializer_range=0.5)
# Columns of all tasks; every model takes those it knows.
FEATURES = {
    "input_ids": np.array([[2, 7, 9, 3], [2, 5, 3, 0], [2, 8, 3, 0]], "int32"),
    "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 0]], "int32"),
    "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]], "int32"),
    "masked_lm_positions": np.array([[1, 2], [1, 0], [1, 2]], "int32"),
    "masked_lm_ids": np.array([[4, 5], [6, 0], [7, 8]], "int32"),
    "masked_lm_weights": np.array([[1, 1], [1, 0], [1, 1]], "float32"),
    "next_sentence_labels": np.array([[1], [0], [0]], "int32"),
    "label_ids": np.array([2, 0, 1], "int32"),
    "label_indicators": np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], "int32"),
    "label_values": np.array([1.5, 0.0, -2.0], "float32"),
    "teacher_logits": np.array([[2, 1, 0], [0, 1, 2], [1, 3, 1]], "float32"),
    "tag_ids": np.array([[-1, 1, 2, -1], [-1, 0, -1, -1], [-1, 2, -1, -1]], "int32"),
    "start_positions": np.array([1, 0, 1], "int32"),
    "end_positions": np.array([2, 0, 1], "int32"),
}
# Columns of the tasks that have a different shape: the sequences above as two parts.
TWO_PARTS = {
    name: np.stack([FEATURES[name], np.roll(FEATURES[name], 1, axis=0)], axis=1)
    for name in ("input_ids", "input_mask", "segment_ids")
}
OWN_FEATURES = {
    "multiple_choice": {**TWO_PARTS, "label_ids": np.array([0, 1, 1], "int32")},
    "bi_encoder": {
        **TWO_PARTS,
        "query_input_ids": np.array([[2, 9, 3], [2, 4, 3], [2, 6, 3]], "int32"),
        "query_input_mask": np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1]], "int32"),
        "passage_ids": np.array([[0, 1], [2, -1], [3, 0]], "int32"),
        "positive_ids": np.array([[0, -2], [2, 1], [3, -2]], "int32"),
    },
    # The second candidates are sequences that are never right.
    "cross_encoder": {
        **TWO_PARTS,
        "input_ids": np.stack(
            [FEATURES["input_ids"], FEATURES["input_ids"] + 10], axis=1
        ),
    },
}
MODELS = {
    "pretrainer": partial(bert_tf.BertPretrainer, SMALL),
    "words_only": partial(bert_tf.BertPretrainer, SMALL, next_sentence=False),
    "left_to_right": partial(pretrainer.BertLeftToRight, CAUSAL),
    "causal_classifier": partial(bert_tf.BertClassifier, CAUSAL, num_labels=3),
    "classifier": partial(bert_tf.BertClassifier, SMALL, num_labels=3),
    "multi_label_classifier": partial(
        bert_tf.BertMultiLabelClassifier, SMALL, num_labels=3
    ),
    "regressor": partial(bert_tf.BertRegressor, SMALL),
    "distilled_classifier": partial(
        classifier.DistilledClassifier, SMALL, num_labels=3
    ),
    "span_predictor": partial(bert_tf.BertSpanPredictor, SMALL),
    "span_predictor_with_bilstm": partial(
        bert_tf.BertSpanPredictor, CAUSAL, bilstm_on_top=True
    ),
    "multiple_choice": partial(bert_tf.BertMultipleChoice, WIDE),
    "bi_encoder": partial(bert_tf.BertBiEncoder, WIDE),
    "cross_encoder": partial(bert_tf.BertCrossEncoder, WIDE),
    "token_classifier": partial(bert_tf.BertTokenClassifier, SMALL, num_labels=3),
    "token_classifier_on_features": partial(
        bert_tf.BertTokenClassifier, SMALL, num_labels=3, feature_based="last"
    ),
}


# The others differ from one of these in what they read, not in how they count examples.
BASE_MODELS_OR_SLOW = pytest.mark.parametrize(
    "task",
    ring.quick(
        *("pretrainer", "classifier", "multi_label_classifier", "regressor"),
        *("span_predictor", "multiple_choice", "bi_encoder", "cross_encoder"),
        "token_classifier",
        of=MODELS,
    ),
    indirect=True,
)


@pytest.fixture(params=MODELS)
def task(request):
    return request.param


@pytest.fixture
def create_model(task):
    return MODELS[task]


@pytest.fixture
def features(task):
    return OWN_FEATURES.get(task, FEATURES)


@pytest.fixture
def keys():
    return dropout_masks.keys_of_examples(1, 2, np.arange(3, dtype="int32"))


def rows(features, wanted):
    return {name: column[wanted] for name, column in features.items()}


def tensors(features=FEATURES):
    return {name: tf.constant(column) for name, column in features.items()}


def train_step(model, features, keys):
    """Returns the loss and the gradients of the weights that have one."""
    with tf.GradientTape() as tape:
        outputs = model(features, training=True, dropout_keys=keys)
        loss = model.total_loss(features, outputs)
    gradients = tape.gradient(loss, [w.value for w in model.trainable_variables])
    return loss, [gradient for gradient in gradients if gradient is not None]


def test_weights_outputs_and_losses_are_float32_in_mixed_precision(
    create_model, features, keys
):
    model = create_model(dtype="mixed_bfloat16")
    model.build()
    assert {weight.dtype for weight in model.weights} == {"float32"}
    before = len(model.weights)
    outputs = model(features)
    # All weights are there without data.
    assert len(model.weights) == before
    assert len(checkpoint_names.checkpoint_variables(model)) == before
    for name, values in outputs.items():
        if "logits" in name or name == "probabilities":
            assert values.dtype == tf.float32
    sums = model.loss_sums(features, outputs)
    assert {values.dtype for values in sums.values()} == {tf.float32}
    # Loss terms have the names that the model gives.
    assert tuple(sums) == tuple(model.loss_weights(features)) == model.loss_names
    assert set(model.loss_epsilons) <= set(model.loss_names)
    loss, gradients = train_step(model, tensors(features), keys)
    assert loss.dtype == tf.float32
    assert all(gradient.dtype == tf.float32 for gradient in gradients)


@BASE_MODELS_OR_SLOW
def test_the_call_says_whether_there_is_dropout(create_model, features, keys):
    # Not the outer call that Keras knows of.
    class Outer(keras.Model):
        def call(self, features, training=False):
            return model.call(features, not training, keys)

    model = create_model()
    model.build()
    for name, values in Outer()(features, training=False).items():
        expected = model(features, training=True, dropout_keys=keys)[name]
        np.testing.assert_array_equal(values, expected)
    for name, values in Outer()(features, training=True).items():
        np.testing.assert_array_equal(values, model(features)[name])


@BASE_MODELS_OR_SLOW
def test_sums_and_weights_of_parts_add_up_to_those_of_the_batch(
    create_model, features, keys
):
    model = create_model()
    if model.gathered_outputs:
        pytest.skip("its loss compares all examples, so parts do not add up")

    def all_sums(features, keys):
        outputs = model(features, training=True, dropout_keys=keys)
        metrics = model.metric_sums(features, outputs)
        return tf.nest.flatten(
            [
                model.loss_sums(features, outputs),
                model.loss_weights(features),
                list(metrics.values()),
            ]
        )

    whole = all_sums(features, keys)
    parts = [
        all_sums(rows(features, part), keys[part]) for part in (slice(1), slice(1, 3))
    ]
    np.testing.assert_allclose(np.sum(parts, axis=0), whole, rtol=1e-5)


@BASE_MODELS_OR_SLOW
def test_an_example_that_is_not_real_counts_nowhere(create_model, features):
    model = create_model()
    padded = {**features, "is_real_example": np.array([1, 1, 0], "float32")}
    real = rows(features, slice(0, 2))
    for sums in (model.loss_sums, model.metric_sums):
        np.testing.assert_allclose(
            tf.nest.flatten(sums(padded, model(padded))),
            tf.nest.flatten(sums(real, model(real))),
            rtol=1e-5,
        )
    np.testing.assert_allclose(
        list(model.loss_weights(padded).values()),
        list(model.loss_weights(real).values()),
    )


# In `make test`, the runs of `tests/tasks` learn.
@pytest.mark.slow
def test_one_step_of_plain_descent_lowers_the_loss(create_model, features):
    keras.utils.set_random_seed(1)
    model = create_model()
    model.build()
    before = float(model.total_loss(features, model(features)))
    with tf.GradientTape() as tape:
        loss = model.total_loss(features, model(features))
    variables = [weight.value for weight in model.trainable_variables]
    for variable, gradient in zip(
        variables, tape.gradient(loss, variables), strict=True
    ):
        if gradient is not None:
            variable.assign_sub(0.1 * gradient)
    assert float(model.total_loss(features, model(features))) < before


@pytest.mark.slow
def test_loss_and_gradients_are_the_same_eager_in_a_graph_and_under_xla(
    task, create_model, features, keys
):
    # A bi-encoder divides its scores by 0.05, and so multiplies what is rounded.
    atol = 1e-5 if task == "bi_encoder" else 2e-6
    keras.utils.set_random_seed(1)
    model = create_model()
    model.build()
    loss, gradients = train_step(model, tensors(features), keys)
    for jit_compile in (False, True):
        step = tf.function(train_step, jit_compile=jit_compile)
        computed, others = step(model, tensors(features), keys)
        np.testing.assert_allclose(computed, loss, rtol=1e-5)
        assert len(others) == len(gradients)
        for other, gradient in zip(others, gradients, strict=True):
            np.testing.assert_allclose(other, gradient, rtol=1e-7, atol=atol)


@pytest.mark.slow
def test_gradients_of_many_rows_in_bfloat16_differ_by_rounding_only(
    create_model, features
):
    # Every example occurs 300 times. A sum of equal numbers in bfloat16 stops growing
    # at 256 of them. With equal labels, the gradients do not cancel.
    many = {name: np.repeat(column, 300, axis=0) for name, column in features.items()}
    many["label_ids"] = np.ones(900, "int32")
    keys = dropout_masks.keys_of_examples(1, 2, np.arange(900, dtype="int32"))
    gradients = {}
    for dtype in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(1)
        model = create_model(dtype=dtype)
        model.build()
        _, gradients[dtype] = train_step(model, tensors(many), keys)
    largest = max(np.linalg.norm(exact) for exact in gradients["float32"])
    for exact, rounded in zip(*gradients.values(), strict=True):
        # Some gradients are 0 in exact arithmetic, such as those of the keys' biases.
        limit = 0.1 * np.linalg.norm(exact) + 0.001 * largest
        assert np.linalg.norm(rounded - exact) < limit


def test_fit_draws_other_masks_at_every_step():
    seen = []

    class Watched(bert_tf.BertClassifier):
        def dropout_keys_in_use(self, features, training, dropout_keys):
            used = super().dropout_keys_in_use(features, training, dropout_keys)
            seen.append(used.numpy().tolist())
            return used

    model = Watched(SMALL, num_labels=3)
    model.compile(optimizer="sgd", run_eagerly=True)
    batches = tf.data.Dataset.from_tensors(FEATURES).repeat(3)
    model.fit(batches, shuffle=False, verbose=0)
    drawn = [key for step in seen for key in step]
    assert len(drawn) == 9
    assert len(set(drawn)) == 9


# Our name -> the name in another library.
NAMES_ELSEWHERE = {
    "hugging_face": {
        "input_mask": "attention_mask",
        "segment_ids": "token_type_ids",
        "query_input_mask": "query_attention_mask",
    },
    "keras_hub": {"input_ids": "token_ids", "input_mask": "padding_mask"},
}


@pytest.mark.parametrize("task", ["classifier", "bi_encoder"], indirect=True)
@pytest.mark.parametrize("library", NAMES_ELSEWHERE)
def test_names_of_other_libraries_give_the_same_outputs_and_loss(
    create_model, features, library
):
    names = NAMES_ELSEWHERE[library]
    model = create_model()
    theirs = {names.get(name, name): column for name, column in features.items()}
    outputs, expected = model(theirs), model(features)
    for name in expected:
        np.testing.assert_array_equal(outputs[name], expected[name])
    loss = model.total_loss(theirs, outputs)
    np.testing.assert_array_equal(loss, model.total_loss(features, expected))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"atention_mask": 1}, r"know the input atention_mask; .* other libraries\."),
        ({"attention_mask": 1}, "input_mask has two names, also attention_mask"),
        ({"input_ids": 0.0}, "input_ids must be integers, got float32"),
    ],
    ids=["misspelled", "given twice", "ids are floats"],
)
def test_inputs_that_would_be_misread_are_refused(change, message):
    model, features = MODELS["classifier"](), FEATURES
    ids = features["input_ids"]
    wrong = {name: np.full_like(ids, v, type(v)) for name, v in change.items()}
    with pytest.raises(ValueError, match=message):
        model({**features, **wrong})


def test_a_configuration_survives_get_config(create_model):
    original = create_model(dtype="mixed_bfloat16", name="other")
    copy = type(original).from_config(original.get_config())
    assert copy.get_config() == original.get_config()
    copy.build()
    original.build()
    assert set(checkpoint_names.checkpoint_variables(copy)) == set(
        checkpoint_names.checkpoint_variables(original)
    )


IN_A_FRESH_PROCESS = """
import sys
import keras
import numpy as np
import bert_tf.modeling
from keras import ops

for name in sys.argv[2:]:
    features = dict(np.load(f"{sys.argv[1]}/{name}.features.npz"))
    model = keras.saving.load_model(f"{sys.argv[1]}/{name}.keras")
    outputs = [model(features)]
    for weight in model.weights:
        weight.assign(ops.zeros_like(weight))
    model.load_weights(f"{sys.argv[1]}/{name}.weights.h5")
    outputs.append(model(features))
    for index, values in enumerate(outputs):
        np.savez(f"{sys.argv[1]}/{name}.{index}.npz", **values)
"""


@pytest.mark.slow
def test_saved_models_are_the_same_in_a_fresh_process(tmp_path, project_root):
    expected = {}
    for name, create in MODELS.items():
        features = OWN_FEATURES.get(name, FEATURES)
        np.savez(tmp_path / f"{name}.features.npz", **features)
        model = create()
        expected[name] = model(features)
        model.save(tmp_path / f"{name}.keras")
        model.save_weights(tmp_path / f"{name}.weights.h5")
    subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS, tmp_path, *MODELS],
        cwd=project_root,
        check=True,
    )
    for name, outputs in expected.items():
        for index in range(2):
            loaded = np.load(tmp_path / f"{name}.{index}.npz")
            for key in outputs:
                np.testing.assert_array_equal(loaded[key], outputs[key])


def test_a_span_is_scored_by_the_mean_of_both_ends_padding_left_out():
    model = MODELS["span_predictor"]()
    outputs = model(FEATURES)
    losses = [
        keras.ops.sparse_categorical_crossentropy(
            FEATURES[f"{end}_positions"][row : row + 1],
            outputs[f"{end}_logits"][row : row + 1, :length],
            from_logits=True,
        )
        for end in ("start", "end")
        for row, length in enumerate(FEATURES["input_mask"].sum(axis=1))
    ]
    expected = np.mean(np.stack(losses))
    np.testing.assert_allclose(model.total_loss(FEATURES, outputs), expected, rtol=1e-6)
