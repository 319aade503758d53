"""`compile`, `fit` and `evaluate` of the tasks' models."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from tests import ring
from tests.modeling import small_config

CONFIG = small_config.create(initializer_range=0.5)
WITHOUT_DROPOUT = dataclasses.replace(
    CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)
X = {"input_ids": np.array([[2, 7, 9, 3], [2, 5, 3, 0], [2, 8, 4, 3], [2, 6, 3, 0]])}
X["input_mask"] = np.minimum(X["input_ids"], 1)
Y = np.array([2, 0, 1, 2])
ONE_HOT = np.eye(3, dtype="float32")[Y]
SPARSE = keras.losses.SparseCategoricalCrossentropy
WRONG = "does not fit the output"
UNCLEAR = "cannot tell which output"


def classifier(**kwargs):
    model = bert_tf.BertClassifier(CONFIG, num_labels=3)
    model.compile("sgd", run_eagerly=True, **kwargs)
    return model


def tagger(**kwargs):
    model = bert_tf.BertTokenClassifier(CONFIG, num_labels=3)
    model.compile("sgd", run_eagerly=True, **kwargs)
    return model


def two_replicas():
    # Collective ops would tie the process to the first strategy that used them.
    return tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )


def sharded(data):
    """Returns batches that a strategy divides among its replicas."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    return data.batch(4).with_options(options)


def evaluate(model, *args, **kwargs):
    return np.asarray(model.evaluate(*args, verbose=0, **kwargs))


def test_labels_in_y_are_the_labels_in_the_features():
    model = classifier()
    expected = evaluate(model, {**X, "label_ids": Y})
    for y in (Y, Y[:, None], [Y], {"label_ids": Y}):
        np.testing.assert_allclose(evaluate(model, X, y), expected, rtol=1e-6)


@pytest.mark.slow
def test_a_tensor_alone_is_the_ids_whatever_the_loss_and_metrics():
    model = classifier(loss={"logits": SPARSE(from_logits=True)})
    expected = evaluate(model, {"input_ids": X["input_ids"]}, {"label_ids": Y})
    for loss in (None, {"logits": SPARSE(from_logits=True)}):
        model.compile("sgd", loss, metrics={"probabilities": ["accuracy"]})
        loss, _ = evaluate(model, X["input_ids"], {"label_ids": Y})
        np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "loss, y",
    [
        (None, Y),
        ("sparse_categorical_crossentropy", Y),
        ring.slow(SPARSE(from_logits=True), Y),
        ring.slow(SPARSE(from_logits=False), Y),
        ring.slow(keras.losses.CategoricalCrossentropy(from_logits=True), ONE_HOT),
        (keras.losses.categorical_crossentropy, ONE_HOT),
        ring.slow({"logits": SPARSE(from_logits=True)}, Y),
        ring.slow("SparseCategoricalCrossentropy", Y),
        ({"probabilities": "sparse_categorical_crossentropy"}, Y),
    ],
)
def test_every_form_of_the_cross_entropy_is_the_same_loss(loss, y):
    keras.utils.set_random_seed(1)
    expected = evaluate(classifier(), X, Y)
    keras.utils.set_random_seed(1)
    np.testing.assert_allclose(evaluate(classifier(loss=loss), X, y), expected, 1e-4)


def test_metrics_get_the_probabilities_and_labels_from_either_place():
    metrics = ["accuracy", keras.metrics.SparseCategoricalCrossentropy(name="nll")]
    model = classifier(metrics=metrics)
    loss, accuracy, nll = evaluate(model, X, Y)
    predicted = model.predict(X, verbose=0)["probabilities"].argmax(-1)
    assert accuracy == np.mean(predicted == Y)
    np.testing.assert_allclose(nll, loss, rtol=1e-4)
    in_features = evaluate(model, {**X, "label_ids": Y})
    np.testing.assert_allclose(in_features, [loss, accuracy, nll], rtol=1e-6)


def test_an_output_may_have_no_loss_and_no_metric():
    metrics = {"logits": None, "probabilities": ["accuracy"]}
    model = classifier(loss={"logits": SPARSE(from_logits=True)}, metrics=metrics)
    assert evaluate(model, X, Y).shape == (2,)
    loss = {"logits": SPARSE(from_logits=True), "probabilities": None}
    assert evaluate(classifier(loss=loss), X, Y).shape == ()


def test_missing_labels_are_named():
    compiled = bert_tf.BertClassifier(CONFIG, num_labels=3)
    compiled.compile("sgd")
    for model in (compiled, classifier()):
        with pytest.raises(ValueError, match="has no label_ids for its loss: pass it"):
            model.fit(X, verbose=0)
    ranker = bert_tf.BertBiEncoder(CONFIG)
    features = {name: column[:, None] for name, column in X.items()}
    queries = {f"query_{name}": column for name, column in X.items()}
    ids = {"passage_ids": np.arange(4)[:, None]}
    ranker.compile("sgd", run_eagerly=True)
    with pytest.raises(ValueError, match="has no positive_ids for its loss"):
        ranker.fit({**features, **queries, **ids}, verbose=0)


def test_sample_weights_multiply_the_losses_whatever_the_batch_size():
    model = classifier()
    weights = np.array([3.0, 0.0, 1.0, 2.0])
    losses = []
    for row in range(4):
        x = {name: column[row : row + 1] for name, column in X.items()}
        losses.append(evaluate(model, x, Y[row : row + 1]))
    expected = np.mean(weights * np.squeeze(losses))
    for size in (4, 2, 1):
        loss = evaluate(model, X, Y, sample_weight=weights, batch_size=size)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # Of the pooler.
def test_a_batch_in_which_nothing_counts_changes_nothing():
    for model, y, sample_weight in (
        (tagger(), np.full((4, 4), -1), None),
        (classifier(), Y, np.zeros(4)),
    ):
        model.build()
        before = model.get_weights()
        assert model.train_on_batch(X, y, sample_weight=sample_weight) == 0
        for now, one in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(now, one)


@pytest.mark.slow
def test_sample_weights_are_those_of_examples_with_several_labels():
    model = bert_tf.BertSpanPredictor(CONFIG)
    first = {name: column[:1] for name, column in X.items()}
    weights = np.array([1.0, 0.0, 0.0, 0.0])
    metrics = dict.fromkeys(("start_logits", "end_logits"), "accuracy")
    for compiled in (
        {},
        {"loss": SPARSE(from_logits=True), "weighted_metrics": metrics},
    ):
        model.compile("sgd", run_eagerly=True, **compiled)
        expected = evaluate(model, first, (Y[:1], Y[:1]))
        for y in ((Y, Y), {"start_positions": Y, "end_positions": Y}):
            results = evaluate(model, X, y, sample_weight=weights)
            np.testing.assert_allclose(results.flat[0], expected.flat[0] / 4, 1e-5)
            np.testing.assert_array_equal(results.flat[3:], expected.flat[3:])
    model = bert_tf.BertSpanPredictor(CONFIG)
    model.compile("sgd", run_eagerly=True)
    both = (weights, 1 - weights)
    assert np.isnan(evaluate(model, X, (Y, Y), sample_weight=both))


@pytest.mark.parametrize(
    "name, y",
    [
        ("BertClassifier", np.array([1, -1, 0, 2])),
        ("BertSpanPredictor", (np.array([1, -1, 0, 2]), np.array([1, 1, 0, 2]))),
    ],
)
def test_a_negative_label_is_not_a_class(name, y):
    arguments = {"num_labels": 3} if name == "BertClassifier" else {}
    model = getattr(bert_tf, name)(CONFIG, **arguments)
    model.compile("sgd", run_eagerly=True)
    assert np.isnan(evaluate(model, X, y))
    known = np.array([1.0, 0.0, 1.0, 1.0])
    assert np.isfinite(evaluate(model, X, y, sample_weight=known))


@pytest.mark.slow
def test_class_weights_are_sample_weights():
    def loss(**kwargs):
        keras.utils.set_random_seed(1)  # Also determines the dropout.
        return classifier().train_on_batch(X, Y, **kwargs)

    by_class = loss(class_weight={0: 0.0, 1: 1.0, 2: 5.0})
    np.testing.assert_allclose(by_class, loss(sample_weight=np.array([5, 0, 1, 5.0])))
    assert not np.isclose(by_class, loss())


@pytest.mark.slow
def test_tags_without_a_label_count_nowhere():
    x = {name: column[:2] for name, column in X.items()}
    tags = np.array([[-1, 1, 2, -1], [-1, 0, -1, -1]])
    keras.utils.set_random_seed(1)
    own = evaluate(tagger(weighted_metrics=["accuracy"]), x, tags)
    keras.utils.set_random_seed(1)
    loss = SPARSE(from_logits=True, ignore_class=-1)
    theirs = evaluate(tagger(loss=loss, weighted_metrics=["accuracy"]), x, tags)
    np.testing.assert_allclose(theirs, own, rtol=1e-4)
    assert round(own[1] * 3) in range(4)
    keras.utils.set_random_seed(1)
    of_hugging_face = np.where(tags < 0, -100, tags)
    results = evaluate(tagger(weighted_metrics=["accuracy"]), x, of_hugging_face)
    np.testing.assert_array_equal(results, own)
    per_tag = {"sample_weight": np.eye(2, 4, 1)}  # Of the first tag of each row.
    model = tagger(loss=loss, weighted_metrics=["accuracy"])
    first = evaluate(model, x, np.where(per_tag["sample_weight"], tags, -1))
    assert evaluate(model, x, tags, **per_tag)[1] == first[1]


# What is compiled, by model, and the message.
MISREAD = {
    "BertClassifier": [
        ({"loss": {"logits": SPARSE()}}, WRONG),
        ({"loss": {"probabilities": SPARSE(from_logits=True)}}, WRONG),
        ({"loss": {"logits": "SparseCategoricalCrossentropy"}}, WRONG),
        ({"metrics": {"logits": ["AUC"]}}, WRONG),
        ({"metrics": [keras.metrics.AUC(from_logits=True)]}, WRONG),
        ({"loss": "mse"}, "which output 'mse' is for. Name the output"),
        ({"loss": lambda y, p: p}, UNCLEAR),
        ({"loss": [SPARSE(from_logits=True)]}, UNCLEAR),
        ({"loss_weights": {"logits": 2.0}}, "no effect on the model"),
        (
            {"metrics": ["accuracy"], "weighted_metrics": {"logits": ["accuracy"]}},
            "must both be lists",
        ),
    ],
    # Keras would take these names for one class per example.
    "BertMultiLabelClassifier": [
        (
            {"weighted_metrics": {"probabilities": ["acc"]}},
            "as if it did; pass 'binary_accuracy'",
        ),
        ({"loss": "crossentropy"}, "as if it did; pass 'binary_crossentropy'"),
    ],
    "BertRegressor": [
        ({"metrics": ["accuracy"]}, "as if it did; pass 'mean_absolute_error'"),
        ({"loss": keras.losses.BinaryCrossentropy()}, WRONG),
        ({"loss": "BinaryCrossentropy"}, WRONG),
    ],
    "BertSpanPredictor": [({"loss": SPARSE()}, UNCLEAR)],
    "BertCrossEncoder": [
        ({"loss": keras.losses.BinaryCrossentropy()}, UNCLEAR),
        ({"metrics": ["accuracy"]}, UNCLEAR),
    ],
    "BertModel": [({"loss": "mse"}, UNCLEAR)],
}


@pytest.mark.parametrize(
    "name, compiled, message",
    [(name, *case) for name, cases in MISREAD.items() for case in cases],
)
def test_what_would_be_applied_to_the_wrong_output_is_refused(name, compiled, message):
    has_classes = name in ("BertClassifier", "BertMultiLabelClassifier")
    arguments = {"num_labels": 3} if has_classes else {}
    model = getattr(bert_tf, name)(CONFIG, **arguments)
    with pytest.raises(ValueError, match=message):
        model.compile("sgd", **compiled)


def test_metrics_of_tags_must_be_weighted():
    with pytest.raises(ValueError, match="Pass them as weighted_metrics"):
        evaluate(tagger(metrics=["accuracy"]), X, 0 * X["input_ids"])


@pytest.mark.slow
def test_fit_is_that_of_keras_without_metrics_and_without_compile():
    model = classifier(metrics=[])
    assert model.fit(X, Y, verbose=0).history.keys() == {"loss"}
    with pytest.raises(ValueError, match="compile"):
        bert_tf.BertClassifier(CONFIG, num_labels=3).fit(X, Y, verbose=0)
    encoder = bert_tf.BertModel(CONFIG)
    encoder.compile("sgd", run_eagerly=True)
    with pytest.raises(ValueError, match="Provide a `loss`"):
        encoder.fit(X, verbose=0)


@pytest.mark.parametrize(
    "x, y, message",
    [
        (X, ONE_HOT, "label_ids has the shape .* For one-hot labels"),
        (X, Y.astype("float32"), "label_ids must be integers, got float32"),
        (X, {"labels": Y}, "not fit BertClassifier, whose labels are label_ids"),
        (X, (Y, Y), "not fit BertClassifier, whose labels are label_ids"),
        ({**X, "label_ids": Y}, Y, "each of them once, in y or in the features"),
    ],
    ids=["one-hot", "floats", "unknown name", "too many", "twice"],
)
def test_labels_that_would_be_misread_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(x, y, verbose=0)


def test_weights_that_would_be_misread_are_refused():
    with pytest.raises(ValueError, match="expected one weight per example"):
        classifier().fit(X, Y, sample_weight=np.ones((4, 4)), verbose=0)
    for train in (tagger().fit, tagger().train_on_batch):
        with pytest.raises(ValueError, match="class_weight needs one class per exa"):
            train(X, X["input_ids"], class_weight={0: 2.0})


def test_added_losses_count():
    model = classifier()
    before = evaluate(model, X, Y)
    model.bert.pooler.dense.kernel.regularizer = keras.regularizers.L2(0.5)
    kernel = np.asarray(model.bert.pooler.dense.kernel)
    added = 0.5 * np.sum(np.square(kernel))
    np.testing.assert_allclose(evaluate(model, X, Y), before + added, rtol=1e-5)


def test_two_replicas_draw_different_masks():
    strategy = two_replicas()
    with strategy.scope():
        model = bert_tf.BertClassifier(CONFIG, num_labels=3)
        model.build()
    ids = tf.constant(X["input_ids"][:1])

    @tf.function
    def draw():
        def replica():
            return model({"input_ids": ids}, training=True)["logits"]

        return strategy.run(replica)

    first, second = strategy.experimental_local_results(draw())
    assert np.any(first.numpy() != second.numpy())


@pytest.mark.slow
def test_two_replicas_evaluate_like_one_device():
    # With unequal weights of the replicas' parts, a mean of means would be different.
    sample_weight = np.array([1.0, 0.0, 2.0, 5.0], "float32")
    data = tf.data.Dataset.from_tensor_slices((X, Y, sample_weight))
    with two_replicas().scope():
        model = bert_tf.BertClassifier(CONFIG, num_labels=3)
        model.build()
        model.compile("sgd")
    together = model.evaluate(sharded(data), verbose=0)
    single = bert_tf.BertClassifier(CONFIG, num_labels=3)
    single.build()
    single.set_weights(model.get_weights())
    single.compile("sgd", run_eagerly=True)
    alone = single.evaluate(data.batch(4), verbose=0)
    np.testing.assert_allclose(together, alone, rtol=1e-5)


@pytest.mark.parametrize("loss", [None, ring.slow(SPARSE(from_logits=True))])
@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # Of the pooler.
def test_two_replicas_fit_as_one_device(loss):
    # With unequal weights of the replicas' parts, a mean of means would be different.
    weights = np.array([1.0, 0.0, 2.0, 5.0], "float32")

    def trained(strategy):
        keras.utils.set_random_seed(1)
        with strategy.scope():
            model = bert_tf.BertSpanPredictor(WITHOUT_DROPOUT)
            model.compile(keras.optimizers.SGD(0.5), loss=loss)
        data = tf.data.Dataset.from_tensor_slices((X, (Y, Y + 1), weights))
        model.fit(sharded(data), epochs=2, shuffle=False, verbose=0)
        return model.get_weights()

    together = trained(two_replicas())
    alone = trained(tf.distribute.OneDeviceStrategy("CPU:0"))
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
