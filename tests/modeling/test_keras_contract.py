"""What Keras can do with each model: the table in docs/keras.md, every cell of it."""

import copy
import dataclasses
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import traceback

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from tests.modeling import small_config

# With weights of 0.02 the outputs of an untrained model are too small to compare.
CONFIG = small_config.create(initializer_range=0.5)
IDS, TEXTS = small_config.IDS, small_config.FEATURES
ENDINGS = {name: np.stack([column] * 3, axis=1) for name, column in TEXTS.items()}
MASKED = {**TEXTS, "masked_lm_positions": np.array([[1, 2], [1, 0]], "int32")}
CLASSES = np.array([1, 0], "int32")
TAGS = np.array([[-1, 1, 2, -1], [-1, 0, -1, -1]], "int32")
LOGITS_LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A model, its features, and what a user passes to `fit` and `compile`."""

    arguments: dict = dataclasses.field(default_factory=dict)
    x: dict = dataclasses.field(default_factory=lambda: TEXTS)
    # y for the model's own loss; None: the labels are in `training_x`.
    y: object = None
    training_x: dict | None = None
    compiled: dict = dataclasses.field(default_factory=dict)
    # y for the compiled loss, if it is a different one.
    compiled_y: object = None
    output: str = "logits"


CASES = {
    "BertModel": Case(
        compiled={"loss": {"pooled_output": "mse"}},
        compiled_y={"pooled_output": np.ones((2, 8), "float32")},
        output="pooled_output",
    ),
    "BertPretrainer": Case(
        x=MASKED,
        y={
            "masked_lm_ids": np.array([[4, 5], [6, 0]], "int32"),
            "masked_lm_weights": np.array([[1, 1], [1, 0]], "float32"),
            "next_sentence_labels": CLASSES,
        },
        compiled={"loss": {"next_sentence_logits": LOGITS_LOSS}},
        compiled_y={"next_sentence_logits": CLASSES},
        output="next_sentence_logits",
    ),
    "BertClassifier": Case(
        arguments={"num_labels": 3},
        y=CLASSES,
        compiled={"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
    ),
    "BertMultiLabelClassifier": Case(
        arguments={"num_labels": 3},
        y=np.array([[1, 0, 1], [0, 0, 0]], "int32"),
        compiled={"loss": "binary_crossentropy", "metrics": ["binary_accuracy"]},
    ),
    "BertRegressor": Case(
        y=np.array([1.5, -2.0], "float32"),
        compiled={"loss": "mae", "metrics": ["mse"]},
        output="values",
    ),
    "BertSpanPredictor": Case(
        y=(CLASSES, CLASSES + 1),
        compiled={
            "loss": LOGITS_LOSS,
            "metrics": {"start_logits": ["accuracy"], "end_logits": ["accuracy"]},
        },
        output="start_logits",
    ),
    "BertTokenClassifier": Case(
        arguments={"num_labels": 3},
        y=TAGS,
        compiled={
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, ignore_class=-1
            ),
            "weighted_metrics": ["accuracy"],
        },
    ),
    "BertMultipleChoice": Case(
        x=ENDINGS,
        y=CLASSES,
        compiled={"loss": LOGITS_LOSS, "metrics": ["accuracy"]},
    ),
    "BertBiEncoder": Case(
        training_x={
            **ENDINGS,
            **{f"query_{name}": column for name, column in TEXTS.items()},
            "passage_ids": np.array([[0, 1, 2], [3, 4, 5]], "int32"),
            "positive_ids": np.array([[0], [3]], "int32"),
        },
        compiled={"loss": {"embeddings": "cosine_similarity"}},
        compiled_y={"embeddings": np.ones((2, 8), "float32")},
        output="embeddings",
    ),
    "BertCrossEncoder": Case(
        training_x=ENDINGS,
        compiled={
            "loss": keras.losses.BinaryCrossentropy(from_logits=True),
            "metrics": {"logits": [keras.metrics.AUC(from_logits=True)]},
        },
        compiled_y=CLASSES,
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subject:
    """A new model and its case."""

    name: str
    case: Case

    def create(self, **kwargs):
        return getattr(bert_tf, self.name)(CONFIG, **self.case.arguments, **kwargs)

    def output(self, model):
        return np.asarray(model(self.case.x)[self.case.output], "float32")


def functional(subject, folder):
    """A Functional model of symbolic inputs trains it with dropout, and is saved."""
    inputs = {
        name: keras.Input((*column.shape[1:-1], None), dtype="int32", name=name)
        for name, column in subject.case.x.items()
    }
    vectors = subject.create()(inputs)[subject.case.output]
    model = keras.Model(inputs, keras.ops.tanh(vectors))
    model.compile("sgd", "mse", run_eagerly=True)
    y = np.ones_like(model(subject.case.x))
    model.fit(subject.case.x, y, verbose=0)
    model.save(folder / "functional.keras")
    loaded = keras.saving.load_model(folder / "functional.keras")
    np.testing.assert_array_equal(loaded(subject.case.x), model(subject.case.x))


def own_loss(subject, folder):
    """fit(x, y, validation_data), evaluate and predict without a compiled loss."""
    case = subject.case
    data = (case.training_x or case.x, case.y)[: 1 if case.y is None else 2]
    batches = tf.data.Dataset.from_tensors(data if len(data) == 2 else data[0])
    model = subject.create()
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    history = model.fit(
        batches.repeat(2), verbose=0, shuffle=False, validation_data=batches
    )
    assert history.history["val_loss"] == [model.evaluate(batches, verbose=0)]
    predicted = model.predict(case.x, verbose=0)[case.output]
    np.testing.assert_allclose(predicted, subject.output(model), rtol=1e-4, atol=1e-5)


def compiled_loss(subject, folder):
    """fit(x, y) with Keras's losses, metrics and callbacks; a compiled file loads."""
    case = subject.case
    y = case.y if case.compiled_y is None else case.compiled_y
    batches = tf.data.Dataset.from_tensors((case.x, y))
    model = subject.create()
    model.compile("adam", **case.compiled, run_eagerly=True)
    path = folder / "best.keras"
    saving = keras.callbacks.ModelCheckpoint(path)
    history = model.fit(batches, verbose=0, shuffle=False, callbacks=[saving])
    assert np.isfinite(history.history["loss"]).all()
    loaded = keras.saving.load_model(path)
    assert loaded.evaluate(batches, verbose=0) == model.evaluate(batches, verbose=0)


def saved(subject, folder):
    """save and load_model give the same model."""
    model = subject.create()
    expected = subject.output(model)
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    np.testing.assert_array_equal(subject.output(loaded), expected)


def saved_model(subject, folder):
    """model.export writes a SavedModel of features of any size."""
    model = subject.create()
    model.export(folder / "exported", verbose=False)
    exported = tf.saved_model.load(folder / "exported")
    outputs = exported.serve({k: tf.constant(v) for k, v in subject.case.x.items()})
    assert_close(outputs[subject.case.output], subject.output(model))


def litert(subject, folder):
    """model.export(format="litert") writes a file that the interpreter runs."""
    interpreter = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="pip install ai-edge-litert"
    )
    model = subject.create()
    path = str(folder / "model.tflite")
    model.export(path, format="litert", verbose=False)
    runner = interpreter.Interpreter(model_path=path).get_signature_runner()
    outputs = runner(**subject.case.x)
    assert_close(outputs[subject.case.output], subject.output(model))


def onnx(subject, folder):
    """model.export(format="onnx") writes a file that ONNX Runtime runs."""
    pytest.importorskip("tf2onnx", reason="pip install tf2onnx")
    runtime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    model = subject.create()
    model.export(folder / "model.onnx", format="onnx", verbose=False)
    session = runtime.InferenceSession(str(folder / "model.onnx"))
    outputs = session.run([subject.case.output], subject.case.x)
    assert_close(outputs[0], subject.output(model))


def int8(subject, folder):
    """quantize("int8") changes the outputs little; the quantized model is saved."""
    model = subject.create()
    exact = subject.output(model)
    model.quantize("int8")
    quantized = subject.output(model)
    assert 0 < np.abs(quantized - exact).max() < 0.3 * max(1.0, np.abs(exact).max())
    model.save(folder / "int8.keras")
    loaded = keras.saving.load_model(folder / "int8.keras")
    np.testing.assert_array_equal(subject.output(loaded), quantized)


def lora(subject, folder):
    """enable_lora trains low-rank weights only; a saved file has merged kernels."""
    model = subject.create()
    model.enable_lora(2)
    encoder = model if subject.name == "BertModel" else model.bert
    assert all("/lora_kernel_" in v.path for v in encoder.trainable_variables)
    # Two of each query and value.
    assert len(encoder.trainable_variables) == 4 * encoder.config.num_hidden_layers
    query = encoder.encoder.encoder_layers[0].attention.self_attention.query
    query.lora_kernel_b.assign(np.ones(query.lora_kernel_b.shape))
    model.save(folder / "lora.keras")
    loaded = keras.saving.load_model(folder / "lora.keras")
    assert_close(subject.output(loaded), subject.output(model))
    encoder = loaded if subject.name == "BertModel" else loaded.bert
    assert not encoder.trainable_variables


def bfloat16(subject, folder):
    """The global policy mixed_bfloat16: float32 weights, bfloat16 in the encoder."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = subject.create()
    finally:
        keras.config.set_dtype_policy("float32")
    outputs = model(subject.case.x, training=True)
    assert {weight.dtype for weight in model.weights} == {"float32"}
    encoder = model if subject.name == "BertModel" else model.bert
    assert encoder(TEXTS)["sequence_output"].dtype == tf.bfloat16
    assert np.isfinite(np.asarray(outputs[subject.case.output], "float32")).all()


def summary(subject, folder):
    """model.summary() and model.compute_output_shape show shapes."""
    model = subject.create()
    shapes = {name: column.shape for name, column in subject.case.x.items()}
    expected = subject.output(model).shape
    assert model.compute_output_shape(shapes)[subject.case.output] == expected
    model.build()
    model.build()  # Does nothing.
    lines = []
    model.summary(print_fn=lines.append, expand_nested=True)
    shown = "\n".join(lines)
    assert re.search(r"(encoder|bert) \(\w+\) +│ \(None,( None,)? 8\)", shown)
    assert "│ ? " not in shown


def on_jax(subject, folder):
    """stateless_call with dropout on the JAX backend; one model also in fit."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("pip install jax")
    assert jax_results()[subject.name] is None


@functools.cache
def jax_results():
    """Returns {model: error or None}, from one process for all models."""
    program = (
        "import runpy, sys; runpy.run_path(sys.argv[1])['report_on_current_backend']()"
    )
    root = os.path.dirname(os.path.abspath(table_path()))
    environment = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program, os.path.abspath(__file__)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment, "PYTHONPATH": os.path.dirname(root)},
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def report_on_current_backend():
    """Prints {model: error or None}, as JSON."""
    results = {}
    for name, case in CASES.items():
        try:
            check_training(Subject(name=name, case=case))
            results[name] = None
        except Exception:  # The test shows any error of the other process.
            results[name] = traceback.format_exc()[-2000:]
    print(json.dumps(results))


def check_training(subject):
    import jax

    case = subject.case
    model = subject.create()
    model.build()
    state = [v.value for v in model.trainable_variables]
    other = [v.value for v in model.non_trainable_variables]
    call = jax.jit(lambda x: model.stateless_call(state, x, case.x, training=True))
    first, later = call(other)
    second, _ = call(later)
    assert np.any(np.asarray(first[case.output]) != np.asarray(second[case.output]))
    if subject.name == "BertClassifier":  # Compiling every model would take minutes.
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name) for name in case.x
        }
        keras.Model(inputs, subject.create()(inputs)[case.output])
        model.compile()
        callbacks = [keras.callbacks.TerminateOnNaN()]
        model.fit(case.x, case.y, shuffle=False, verbose=0, callbacks=callbacks)
        model.compile("adam", **case.compiled)
        history = model.fit(case.x, case.y, shuffle=False, verbose=0)
        assert np.isfinite(history.history["loss"]).all()


def assert_close(outputs, expected):
    np.testing.assert_allclose(outputs, expected, rtol=1e-3, atol=1e-4)


ABILITIES = {
    "Functional": functional,
    "own loss": own_loss,
    "Keras loss": compiled_loss,
    "save": saved,
    "SavedModel": saved_model,
    "LiteRT": litert,
    "ONNX": onnx,
    "int8": int8,
    "LoRA": lora,
    "bf16": bfloat16,
    "summary": summary,
    "JAX": on_jax,
}
# Some models alone run the abilities that take seconds; -m slow runs the others.
QUICK_MODELS = {
    "own loss": ("BertPretrainer", "BertClassifier", "BertBiEncoder"),
    **dict.fromkeys(("Functional", "Keras loss"), ("BertModel", "BertClassifier")),
    **dict.fromkeys(("SavedModel", "LiteRT", "ONNX"), ("BertClassifier",)),
    **dict.fromkeys(("LoRA", "bf16", "summary"), ("BertPretrainer",)),
    **dict.fromkeys(("int8", "JAX"), ()),
}


def table_path():
    return os.path.join(os.path.dirname(__file__), "..", "..", "docs", "keras.md")


def table():
    """Returns the rows of the table in docs/keras.md: {model: {ability: cell}}."""
    with open(table_path(), encoding="utf-8") as file:
        lines = [line.strip(" |\n").split("|") for line in file if line[0] == "|"]
    rows = [[cell.strip(" `") for cell in line] for line in lines]
    header = next(row for row in rows if row[0] == "model")
    return {
        row[0]: dict(zip(header[1:], row[1:], strict=True))
        for row in rows
        if row[0] in CASES and len(row) == len(header)
    }


def cells():
    return [
        pytest.param(
            model,
            ability,
            id=f"{model}-{ability}",
            marks=[pytest.mark.slow]
            if model not in QUICK_MODELS.get(ability, CASES)
            else [],
        )
        for model, row in table().items()
        for ability, cell in row.items()
        if cell == "yes"
    ]


def test_the_table_has_every_model_and_every_ability():
    public = {name for name in bert_tf.__all__ if name.startswith("Bert")}
    rows = table()
    assert set(rows) == set(CASES) == public - {"BertConfig"}
    cannot = {(m, a) for m, row in rows.items() for a in row if row[a] != "yes"}
    assert cannot == {("BertModel", "own loss")}  # It has none.
    for row in rows.values():
        assert tuple(row) == tuple(ABILITIES)


# The other tests run eagerly, because compiling takes seconds. In `make test`,
# `test_fitting.py` compiles a step of two replicas.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_fit_takes_a_compiled_step(name):
    case = CASES[name]
    model = Subject(name=name, case=case).create()
    if name == "BertModel":  # It has no loss of its own.
        data = (case.x, case.compiled_y)
        model.compile("sgd", **case.compiled)
    else:
        data = (case.training_x or case.x, case.y)[: 1 if case.y is None else 2]
        model.compile("sgd")
    history = model.fit(*data, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def trainable_paths(model):
    """Returns the paths of a model's trainable variables, without its name."""
    return [v.path.partition("/")[2] for v in model.trainable_variables]


def test_a_saved_model_keeps_its_frozen_layers(tmp_path):
    config = dataclasses.replace(CONFIG, num_hidden_layers=2)
    model = bert_tf.BertClassifier(config, num_labels=2)
    model.build()
    model.bert.trainable = False
    model.bert.encoder.trainable = True
    model.bert.encoder.encoder_layers[0].trainable = False
    expected = trainable_paths(model)
    assert {path.split("/")[2] for path in expected if path.startswith("bert/enc")} == {
        "layer_1"
    }
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert trainable_paths(loaded) == expected


@keras.saving.register_keras_serializable("bert_tf_tests")
class Topics(keras.Model):
    """A user's own model, written as Keras's guides do."""

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.head = keras.layers.Dense(2)

    def call(self, x, training=False):
        return self.head(self.encoder(x, training=training)["pooled_output"])

    def get_config(self):
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {**super().get_config(), "encoder": encoder}

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)


def test_a_subclassed_model_around_an_encoder_keeps_all_weights(tmp_path):
    model = Topics(bert_tf.BertModel(CONFIG))
    expected = np.asarray(model(TEXTS))
    model.save(tmp_path / "model.keras")
    for one in (
        keras.saving.load_model(tmp_path / "model.keras"),
        copy.deepcopy(model),
    ):
        np.testing.assert_array_equal(one(TEXTS), expected)


def test_checkpoints_of_tensorflow_contain_every_variable(tmp_path):
    model = bert_tf.BertClassifier(CONFIG, num_labels=3)
    expected = model(TEXTS)["logits"]
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    stored = [name for name, _ in tf.train.list_variables(path) if "VALUE" in name]
    assert len(stored) == len(model.weights)
    other = bert_tf.BertClassifier(CONFIG, num_labels=3)
    other.build()
    tf.train.Checkpoint(model=other).read(path).assert_consumed()
    np.testing.assert_array_equal(other(TEXTS)["logits"], expected)


def test_export_takes_a_signature_of_some_features(tmp_path):
    model = bert_tf.BertModel(CONFIG)
    spec = keras.InputSpec(shape=(2, 4), dtype="int64", name="input_ids")
    signature = {"input_ids": spec}
    with pytest.raises(ValueError, match="expected a dict of features"):
        model.export(tmp_path / "exported", input_signature=[spec])
    model.export(tmp_path / "exported", verbose=False, input_signature=signature)
    exported = tf.saved_model.load(tmp_path / "exported")
    assert exported.serve.input_signature[0]["input_ids"] == tf.TensorSpec(
        (2, 4), "int64", "input_ids"
    )
    outputs = exported.serve({"input_ids": tf.cast(IDS, "int64")})
    assert_close(outputs["pooled_output"], model(IDS)["pooled_output"])


def test_a_batch_may_have_no_rows():
    model = bert_tf.BertModel(CONFIG)
    empty = {name: column[:0] for name, column in TEXTS.items()}
    assert model(empty, training=True)["sequence_output"].shape == (0, 4, 8)


@pytest.mark.parametrize("freezes", ["in the constructor", "before a copy", "later"])
def test_a_frozen_encoder_stays_frozen_inside_a_model(freezes, tmp_path):
    if freezes == "later":
        encoder = bert_tf.BertModel(CONFIG)
        encoder.trainable = False
    else:
        encoder = bert_tf.BertModel(CONFIG, trainable=False)
    if freezes == "before a copy":
        encoder = bert_tf.BertModel.from_config(encoder.get_config())
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in TEXTS}
    outputs = keras.layers.Dense(2)(encoder(inputs)["pooled_output"])
    model = keras.Model(inputs, outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for one in (model, loaded):
        assert trainable_paths(one) == ["kernel", "bias"]
    encoder.trainable = True
    assert len(model.trainable_variables) == len(model.weights)


# Keras warns of layers without weights to quantize, and of weights that no loss uses.
@pytest.mark.filterwarnings("ignore:.*does not have a `quantize`:UserWarning")
@pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning")
@pytest.mark.parametrize("model, ability", cells())
def test_the_model_can_do_what_the_table_says(model, ability, tmp_path):
    ABILITIES[ability](Subject(name=model, case=CASES[model]), tmp_path)
