"""Functions of features give the same results on every backend."""

import math
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.fine_tuning import backends
from bert_tf.modeling import bert
from bert_tf.modeling import kernels
from bert_tf.modeling.kernels import inference
from tests import ring
from tests.modeling import small_config

FEATURES = {
    "input_ids": np.array([[2, 5, 7, 3], [2, 9, 3, 0]], np.int32),
    "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], np.int32),
    "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 0]], np.int32),
}


def create_model(hidden_act="gelu", dtype="float32"):
    model = bert.BertModel(
        small_config.create(
            hidden_size=16,
            num_hidden_layers=2,
            intermediate_size=32,
            hidden_act=hidden_act,
            initializer_range=0.5,
        ),
        dtype=dtype,
    )
    model.build()
    for weight in model.weights:  # Biases begin with 0.
        weight.assign_add(0.1 * np.cos(np.arange(weight.shape[-1])))
    return model


@pytest.mark.parametrize("hidden_act", ["gelu", *map(ring.slow, ("gelu_erf", "relu"))])
def test_activations_that_can_be_fused_are_the_same_functions(hidden_act):
    model = create_model(hidden_act)
    expected = model(FEATURES)["sequence_output"]
    with kernels.use(inference.Inference()):
        vectors = model(FEATURES)["sequence_output"]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.fixture
def fusing(monkeypatch):
    """TensorFlow fuses operations in bfloat16, as far as we can tell."""
    monkeypatch.setattr(backends, "_fuses_bfloat16", lambda: True)


def normalizations_and_softmaxes(function):
    """Returns the dtypes of these operations in a function's graph."""
    signature = [
        {name: tf.TensorSpec([None, None], tf.int32, name) for name in FEATURES}
    ]
    graph = tf.function(function, input_signature=signature, autograph=False)
    operations = graph.get_concrete_function().graph.get_operations()
    return {
        kind: [op.outputs[0].dtype.name for op in operations if op.type == kind]
        for kind in ("Rsqrt", "Softmax")
    }


def test_constant_weights_in_bfloat16_use_the_formulas_that_tensorflow_fuses(fusing):
    model = create_model(dtype="mixed_bfloat16")
    constant = backends.with_constant_weights(model, model)
    # The embeddings are normalized in float32, two norms per layer are not.
    assert normalizations_and_softmaxes(constant) == {
        "Rsqrt": ["float32", *["bfloat16"] * 4],
        "Softmax": ["bfloat16"] * 2,
    }
    # Outside of the constant graph, nothing changes.
    assert normalizations_and_softmaxes(model) == {
        "Rsqrt": ["float32"] * 5,
        "Softmax": ["float32"] * 2,
    }


def test_constant_weights_in_bfloat16_compute_the_same_vectors():
    # On the processor at hand, whether TensorFlow fuses the formulas there or not.
    model = create_model(dtype="mixed_bfloat16")
    expected = model(FEATURES)["sequence_output"]
    constant = backends.with_constant_weights(model, model)
    found = backends.compiled(constant)(FEATURES)["sequence_output"]
    real = FEATURES["input_mask"] == 1
    difference = np.asarray(tf.cast(found - expected, tf.float32))[real]
    assert np.abs(difference).max() < 0.1
    assert np.abs(difference).mean() < 0.015


@pytest.mark.parametrize(
    "cpu_info, one_dnn, fuses",
    [
        ("flags : sse avx2 avx512f avx512dq", "1", True),
        ("flags : sse avx2", "1", False),
        ring.slow("flags : sse avx2 avx512f avx512dq", "0", False),
        ring.slow(None, "1", False),
    ],
)
def test_without_fusion_softmax_and_normalization_stay_in_float32(
    cpu_info, one_dnn, fuses, monkeypatch, tmp_path
):
    if cpu_info is not None:
        (tmp_path / "cpuinfo").write_text(cpu_info)
    monkeypatch.setattr(backends, "_CPU_INFO_FILE", str(tmp_path / "cpuinfo"))
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", one_dnn)
    # The function behind the cache.
    monkeypatch.setattr(
        backends, "_fuses_bfloat16", backends._fuses_bfloat16.__wrapped__
    )
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    model = create_model(dtype="mixed_bfloat16")
    found = normalizations_and_softmaxes(backends.with_constant_weights(model, model))
    assert set(found["Softmax"]) == {"bfloat16" if fuses else "float32"}


@pytest.mark.parametrize(
    "needed", ["float32", ring.slow("dropout"), ring.slow("variables")]
)
def test_other_graphs_keep_softmax_and_normalization_in_float32(
    monkeypatch, needed, fusing
):
    model = create_model(dtype="float32" if needed == "float32" else "mixed_bfloat16")
    if needed == "variables":
        monkeypatch.setattr(backends, "_MAX_CONSTANT_BYTES", 100)
    arguments = {
        "dropout": {"training": True, "dropout_keys": tf.constant([1, 2], tf.uint32)},
    }.get(needed, {})
    found = normalizations_and_softmaxes(
        backends.with_constant_weights(lambda f: model(f, **arguments), model)
    )
    assert found["Rsqrt"] == ["float32"] * 5
    assert set(found["Softmax"]) == {"float32"}


@pytest.mark.parametrize("most, is_constant", [(1 << 20, True), (100, False)])
def test_weights_are_constants_unless_they_are_large(monkeypatch, most, is_constant):
    monkeypatch.setattr(backends, "_MAX_CONSTANT_BYTES", most)
    model = create_model()
    graph = backends.compiled(backends.with_constant_weights(model, model))
    expected = np.asarray(model(FEATURES)["sequence_output"])
    np.testing.assert_allclose(graph(FEATURES)["sequence_output"], expected, atol=1e-5)
    for weight in model.weights:
        weight.assign(tf.zeros(weight.shape))
    found = graph(FEATURES)["sequence_output"]
    np.testing.assert_allclose(found, expected if is_constant else 0, atol=1e-5)


def test_a_large_table_of_words_alone_stays_a_variable(monkeypatch):
    model = create_model()
    sizes = {weight.path: 4 * math.prod(weight.shape) for weight in model.weights}
    [table] = [path for path in sizes if path.endswith("/word_embeddings")]
    most = sum(sizes.values()) - sizes[table]
    monkeypatch.setattr(backends, "_MAX_CONSTANT_BYTES", most)
    graph = backends.compiled(backends.with_constant_weights(model, model))
    expected = np.asarray(model(FEATURES)["sequence_output"])
    np.testing.assert_allclose(graph(FEATURES)["sequence_output"], expected, atol=1e-5)
    for weight in model.weights:
        if weight.path != table:
            weight.assign(tf.zeros(weight.shape))
    np.testing.assert_allclose(graph(FEATURES)["sequence_output"], expected, atol=1e-5)
    model.embeddings.word_embeddings.assign(tf.zeros((30, 16)))
    changed = np.abs(graph(FEATURES)["sequence_output"] - expected)
    assert changed.max() > 0.01


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_erf"])
@pytest.mark.parametrize(
    "policy, tolerance", [("float32", 1e-4), ("mixed_bfloat16", 0.2)]
)
def test_openvino_computes_what_tensorflow_does(hidden_act, policy, tolerance):
    pytest.importorskip("openvino", reason="pip install openvino")
    model = create_model(hidden_act)
    expected = model(FEATURES)
    names = ("pooled_output", "sequence_output")
    function = backends.compiled(
        kernels.use(inference.Inference())(
            lambda features: {name: model(features)[name] for name in names}
        ),
        backend=backends.OPENVINO,
        policy=policy,
    )
    found = function(FEATURES)
    assert sorted(found) == list(names)
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], atol=tolerance)
    # Any other shape works too.
    one = {name: column[1:, :3] for name, column in FEATURES.items()}
    np.testing.assert_allclose(
        function(one)["pooled_output"], expected["pooled_output"][1:], atol=tolerance
    )


def test_a_backend_that_cannot_compute_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="backend is 'torch'; expected one of tensor"):
        backends.check("torch", None)
    with pytest.raises(ValueError, match="'openvino' computes in float32 or bfloat16"):
        backends.check("openvino", "mixed_float16")
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ImportError, match=r"pip install 'bert_tf\[openvino\]'"):
        backends.check("openvino", None)
