"""What a call and the other methods of a model take besides features."""

import collections
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.modeling import input_features
from tests.modeling import small_config

CONFIG = small_config.create(num_hidden_layers=2, initializer_range=0.5)
FEATURES = small_config.FEATURES
IDS, MASK, SEGMENTS = FEATURES.values()
THEIRS = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": SEGMENTS}


@pytest.fixture(scope="module")
def model():
    return bert_tf.BertModel(CONFIG)


def vectors(model, *args, **kwargs):
    return np.asarray(model(*args, **kwargs)["sequence_output"])


def test_features_come_in_the_forms_that_other_libraries_have(model):
    expected = vectors(model, FEATURES)
    for features in (THEIRS, collections.UserDict(THEIRS)):
        np.testing.assert_array_equal(vectors(model, features), expected)
    np.testing.assert_array_equal(vectors(model, **THEIRS, training=False), expected)
    predicted = model.predict(collections.UserDict(THEIRS), verbose=0)
    np.testing.assert_allclose(predicted["sequence_output"], expected, atol=1e-5)
    for ids in (IDS.tolist(), IDS.astype("uint8"), IDS.astype("uint16")):
        np.testing.assert_array_equal(vectors(model, ids), vectors(model, IDS))


@pytest.mark.parametrize("real", [True, 2, -1, 0.5])
def test_a_mask_that_is_not_0_means_a_real_piece(model, real):
    mask = tf.constant(np.where(MASK, real, 0 * real))
    features = {**FEATURES, "input_mask": mask}
    np.testing.assert_array_equal(vectors(model, features), vectors(model, FEATURES))


def test_vectors_may_replace_those_of_the_words(model):
    table = np.asarray(model.embeddings.word_embeddings)
    without_ids = {"input_mask": MASK, "segment_ids": SEGMENTS}
    embeds = tf.Variable(table[IDS])
    with tf.GradientTape() as tape:
        outputs = model({**without_ids, input_features.EMBEDDINGS: embeds})
        loss = tf.reduce_sum(outputs["pooled_output"] ** 2)
    expected = vectors(model, FEATURES)
    np.testing.assert_allclose(outputs["sequence_output"], expected, atol=1e-5)
    assert np.any(tape.gradient(loss, embeds))


@pytest.mark.parametrize(
    "features, message",
    [
        ({**FEATURES, "segment_ids": 3 * SEGMENTS}, "segment_ids has values from 0 to"),
        ({"input_ids": IDS + 1000}, "input_ids has values from 1000 to 1009"),
        ({"input_mask": MASK}, "needs input_ids, got input_mask"),
        (IDS[0], r"shape \(4,\), expected \[B, S\]; pass a single text as ids\[None"),
    ],
)
def test_what_has_no_meaning_is_refused(model, features, message):
    with pytest.raises(ValueError, match=message):
        model(features)


@pytest.mark.parametrize("config", ["bert-base-uncased", {}, 4, "encoder"])
def test_a_model_says_how_to_get_the_weights_of_a_checkpoint(model, config):
    with pytest.raises(TypeError, match=r"takes a BertConfig.*from_pretrained\(name\)"):
        bert_tf.BertClassifier(model if config == "encoder" else config)


@keras.saving.register_keras_serializable("tests")
class Sized(bert_tf.BertClassifier):
    def __init__(self, size):
        config = small_config.create(hidden_size=size) if size else None
        super().__init__(config, num_labels=2)

    def get_config(self):
        return {"size": self.config.hidden_size}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def test_the_constructor_of_a_subclass_takes_anything(tmp_path):
    model = Sized(4)
    model.build()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(IDS)["logits"], model(IDS)["logits"])
    with pytest.raises(TypeError, match="Sized takes a BertConfig"):
        Sized(0)


def test_a_pretrainer_without_positions_scores_all(model):
    pretrainer = bert_tf.BertPretrainer(CONFIG)
    positions = np.tile(np.arange(4), (2, 1))
    expected = pretrainer({**FEATURES, "masked_lm_positions": positions})
    np.testing.assert_array_equal(
        pretrainer(FEATURES)["masked_lm_logits"], expected["masked_lm_logits"]
    )


def test_a_model_whose_layers_were_removed_is_not_saved():
    model = bert_tf.BertClassifier(CONFIG, num_labels=2)
    model.bert.encoder.encoder_layers = model.bert.encoder.encoder_layers[:1]
    with pytest.raises(ValueError, match="num_hidden_layers instead"):
        model.get_config()


def test_the_rate_of_dropout_can_be_chosen():
    model = bert_tf.BertClassifier(CONFIG, num_labels=2, dropout=0.5)
    assert type(model).from_config(model.get_config()).task_dropout_rate == 0.5
    assert "dropout" not in bert_tf.BertClassifier(CONFIG, num_labels=2).get_config()
    for name, rate in (("BertSpanPredictor", 0.1), ("BertRegressor", 1.0)):
        with pytest.raises(ValueError, match="expected a rate from 0 to below 1"):
            getattr(bert_tf, name)(CONFIG, dropout=rate)


def rates_in_fit(model, *data, **kwargs):
    """Returns the learning rate of each step of `fit`."""
    rates = []
    callback = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: rates.append(
            float(model.optimizer.learning_rate)
        )
    )
    model.fit(*data, verbose=0, callbacks=callback, **kwargs)
    return rates


@pytest.mark.slow
def test_compile_without_an_optimizer_chooses_that_of_the_release(tmp_path):
    model = bert_tf.BertClassifier(CONFIG, num_labels=2)
    model.compile(jit_compile=False)  # Compiling takes seconds.
    data = (IDS, np.array([1, 0]))
    assert float(model.optimizer.learning_rate) == pytest.approx(5e-5 / 100)
    expected = 5e-5 * np.array([*np.arange(1, 2) / 2, *(1 - np.arange(2, 21) / 20)])
    rates = rates_in_fit(model, *data, batch_size=1, epochs=10)
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    before = np.asarray(model.output_weights)
    rates = rates_in_fit(model, *data, batch_size=1, epochs=10, initial_epoch=9)
    np.testing.assert_allclose(rates, expected[-2:], rtol=1e-5)
    assert np.any(before != model.output_weights)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.global_clipnorm == 1.0
    for one, other in zip(
        loaded.optimizer.variables, model.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(one, other)
    rates = rates_in_fit(loaded, *data, batch_size=1, epochs=10)
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_a_rate_that_ruins_a_pretrained_encoder_is_reported(caplog):
    model = bert_tf.BertClassifier(CONFIG, num_labels=2)
    model.compile("adam")
    assert not caplog.records
    model.is_pretrained = True
    model.compile(keras.optimizers.AdamW(5e-5))
    assert not caplog.records
    model.compile("adam")
    assert "The learning rate 0.001 ruins a pretrained encoder" in caplog.text


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "mat"]
PIECES += [str(number) for number in range(CONFIG.vocab_size - len(PIECES))]
TEXTS = ["the cat sat", "mat"]


def with_preprocessor(name, **kwargs):
    vocabulary = bert_tf.Vocabulary(PIECES)
    text = bert_tf.TextPreprocessor(vocabulary, max_seq_length=6)
    return getattr(bert_tf, name)(CONFIG, preprocessor=text, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, kwargs, output",
    [
        ("BertModel", {}, "pooled_output"),
        ("BertClassifier", {"num_labels": 3, "dropout": 0.3}, "logits"),
        ("BertBiEncoder", {}, "embeddings"),
    ],
)
def test_a_model_with_a_preprocessor_takes_texts(name, kwargs, output, tmp_path):
    model = with_preprocessor(name, **kwargs)
    features = bert_tf.FullTokenizer(bert_tf.Vocabulary(PIECES))(
        TEXTS, TEXTS[::-1], max_seq_length=6
    )
    expected = np.asarray(model(features)[output])
    pair = (TEXTS, np.array(TEXTS[::-1]))
    np.testing.assert_array_equal(model(pair)[output], expected)
    path = str(tmp_path / "model.keras")
    model.save(path)
    models = [keras.saving.load_model(path)]
    if name != "BertBiEncoder":  # It is no checkpoint.
        models += [bert_tf.load_model(path), bert_tf.from_pretrained(path)[0]]
        models.append(type(model).from_pretrained(path))
    for loaded in models:
        np.testing.assert_array_equal(loaded(pair)[output], expected)
        assert loaded.task_dropout_rate == model.task_dropout_rate


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning")
def test_a_model_trains_on_texts():
    pandas = pytest.importorskip("pandas")
    model = with_preprocessor("BertClassifier", num_labels=2)
    model.compile(run_eagerly=True)
    labels = [1, 0]
    batches = tf.data.Dataset.from_tensors((TEXTS, labels))
    loss = model.evaluate(TEXTS, labels, verbose=0)
    frame = pandas.DataFrame({"text": TEXTS, "label": labels}, index=[5, 9])
    for data in ((frame.text, frame.label), (np.array(TEXTS), labels), (batches,)):
        assert model.evaluate(*data, verbose=0) == pytest.approx(loss)
    model.fit(TEXTS, labels, verbose=0, validation_data=(TEXTS, labels))
    expected = model.predict(TEXTS, verbose=0)["probabilities"]
    for one in (tf.data.Dataset.from_tensors(TEXTS), {"text": TEXTS}):
        probabilities = model.predict(one, verbose=0)["probabilities"]
        np.testing.assert_allclose(probabilities, expected, rtol=1e-5)
    assert model.predict(TEXTS[0], verbose=0)["logits"].shape == (1, 2)
    with pytest.raises(ValueError, match=r"names of classes, of which .* knows none"):
        model.fit(TEXTS, ["good", "bad"])
    model.label_names = ("bad", "good")  # As those of a checkpoint.
    loss = model.evaluate(TEXTS, labels, verbose=0)
    assert model.evaluate(TEXTS, ["good", "bad"], verbose=0) == loss


@pytest.mark.slow
def test_exports_take_texts(tmp_path):
    model = with_preprocessor("BertClassifier", num_labels=2)
    expected = model(TEXTS)["probabilities"]
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    probabilities = exported.serve({"text": tf.constant(TEXTS)})["probabilities"]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)
    pair = {
        n: keras.InputSpec(shape=(None,), dtype="string", name=n)
        for n in ("text", "text_b")
    }
    model.export(tmp_path / "pairs", verbose=False, input_signature=pair)
    exported = tf.saved_model.load(tmp_path / "pairs")
    probabilities = exported.serve(dict.fromkeys(pair, tf.constant(TEXTS)))[
        "probabilities"
    ]
    expected = model((TEXTS, TEXTS))["probabilities"]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)


@pytest.mark.slow
def test_each_context_has_several_choices():
    model = with_preprocessor("BertMultipleChoice")
    choices = [["mat", "cat"], ["the", "sat mat"]]
    logits = model.predict((TEXTS, choices), verbose=0)["logits"]
    swapped = model.predict((TEXTS, np.fliplr(choices)), verbose=0)["logits"]
    np.testing.assert_allclose(swapped[:, ::-1], logits, rtol=1e-5)
    assert logits[0, 0] != logits[0, 1]


@pytest.mark.parametrize(
    "pairs",
    [
        (TEXTS, TEXTS),
        [TEXTS, TEXTS],
        tf.data.Dataset.from_tensors((TEXTS, TEXTS)).map(lambda *pair: (pair, 0)),
        tf.data.Dataset.from_tensors([TEXTS, TEXTS]),
    ],
)
def test_pairs_need_a_model_with_two_segments(pairs):
    config = dataclasses.replace(CONFIG, type_vocab_size=1)
    text = bert_tf.TextPreprocessor(bert_tf.Vocabulary(PIECES), max_seq_length=6)
    model = bert_tf.BertModel(config, preprocessor=text)
    with pytest.raises(ValueError, match=r"expected single texts|segment_ids has"):
        model.prepared(pairs)


def test_a_preprocessor_has_no_more_pieces_than_the_model():
    vocabulary = bert_tf.Vocabulary([*PIECES, "dog"])
    text = bert_tf.TextPreprocessor(vocabulary, max_seq_length=6)
    model = bert_tf.BertModel(CONFIG, preprocessor=text)
    with pytest.raises(ValueError, match="input_ids has values from 0 to 30, but the"):
        model.prepared(["the"])


def test_texts_need_a_preprocessor(model):
    with pytest.raises(ValueError, match="BertModel has no preprocessor for texts"):
        model.predict(["text"])
