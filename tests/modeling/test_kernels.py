"""Every implementation of the kernels computes what `plain.Plain` does."""

import functools
import itertools
import math
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import bert
from bert_tf.modeling import embeddings
from bert_tf.modeling import kernels
from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import inference
from bert_tf.modeling.kernels import islands
from bert_tf.modeling.kernels import plain
from bert_tf.modeling.kernels import whole_step
from tests import ring
from tests.modeling import small_config

B, N, T, D = 2, 2, 4, 4
ROWS, H, V = B * T, N * D, 40
IMPLEMENTATIONS = {
    "cpu": cpu.Cpu(),
    "islands": cpu.Cpu(has_islands=True, num_examples=B),
    "whole step": whole_step.WholeStep(),
    "inference": inference.Inference(),
    "fused inference": inference.Inference(fuses_bfloat16=True),
}
KEYS = np.array([76048073, 1566740794], "uint32")
LABELS = np.array([0, 39, 3, 3, 5, 7, 1, 0], "int32")
PADDED = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "int32")
HIDDEN = np.array([[0, 0, 0, 0], [1, 1, 0, 0]], "int32")  # A sequence of padding.
CAUSAL = np.tril(np.ones((B, T, T), "int32"))


def random(*shape, scale=1.0):
    rng = np.random.default_rng(len(shape) + shape[-1])
    return (scale * rng.normal(size=shape)).astype("float32")


def dropout(keys=KEYS, site=3):
    return dropout_masks.at(keys, site, 0.5)


def norm(gamma, beta, x):
    return types.SimpleNamespace(
        gamma=gamma, beta=beta, epsilon=1e-12, compute_dtype=x.dtype.name
    )


class Dense(types.SimpleNamespace):
    """A dense layer whose weights are arguments, so that they have gradients."""

    def __call__(self, x):
        return keras.ops.matmul(x, self.kernel) + self.bias


def dense(k, x, kernel, bias):
    weights = {"kernel": kernel, "bias": bias, "quantization_mode": None}
    return k.dense(Dense(compute_dtype=x.dtype.name, **weights), x)


def add_and_norm(k, x, residual, gamma, beta, drop=None):
    return k.add_and_norm(x, residual, norm(gamma, beta, x), drop)


def norm_and_dropout(k, x, gamma, beta, drop=None):
    return k.norm_and_dropout(x, norm(gamma, beta, x), drop)


def attend(k, query, key, value, visible=PADDED, drop=None, positions=None):
    sequences = plain.Sequences(keras.ops.convert_to_tensor(visible), KEYS)
    if positions is not None:
        sequences = sequences.at(positions)
        query = sequences.queries(query)
    return k.attend(query, key, value, sequences, num_heads=N, dropout=drop)


def losses(k, vectors, table, bias):
    return k.vocabulary_losses(vectors, table, bias, LABELS)[0]


# The same dropout, given by the keys of rows.
BY_ROWS = dropout(dropout_masks.keys_of_rows(KEYS, np.arange(ROWS, dtype="int32"), T))
X, RESIDUAL, VALUE = random(ROWS, H), 2 * random(H, ROWS).T, random(ROWS, H) ** 2
GAMMA, BETA = random(H), random(H) ** 2
TABLE, BIAS = random(V, H), random(V)
ROWS_AND_NORM = (X, RESIDUAL, GAMMA, BETA)
# Wide enough for reductions in two stages.
WIDE = (random(ROWS, 64), random(ROWS, 64) ** 2, random(64), random(64))
with_args = functools.partial
KERNELS = {
    **{
        name: (lambda k, x, name=name: k.activation(name, x), (3 * X,))
        for name in ("gelu", "gelu_erf", "relu", "tanh", "linear")
    },
    "dense": (dense, (X, TABLE.T, BIAS)),
    "dropout": (lambda k, x: k.dropout(x, dropout()), (X,)),
    "add and norm": (add_and_norm, ROWS_AND_NORM),
    "add, norm, dropout": (with_args(add_and_norm, drop=dropout()), ROWS_AND_NORM),
    "dropout by rows": (with_args(add_and_norm, drop=BY_ROWS), ROWS_AND_NORM),
    "wide add and norm": (with_args(add_and_norm, drop=dropout()), WIDE),
    "norm": (norm_and_dropout, (X, GAMMA, BETA)),
    "norm and dropout": (with_args(norm_and_dropout, drop=dropout()), (X, GAMMA, BETA)),
    "attend": (attend, (X, RESIDUAL, VALUE)),
    "attend, dropout": (with_args(attend, drop=dropout()), (X, RESIDUAL, VALUE)),
    "attend to padding": (with_args(attend, visible=HIDDEN), (X, RESIDUAL, VALUE)),
    "attend by position": (with_args(attend, visible=CAUSAL), (X, RESIDUAL, VALUE)),
    "attend at positions": (
        with_args(attend, visible=CAUSAL, positions=np.array([[3, 1], [2, 0]])),
        (X, RESIDUAL, VALUE),
    ),
    "vocabulary scores": (lambda k, *xs: k.vocabulary_scores(*xs), (X, TABLE, BIAS)),
    "vocabulary losses": (losses, (X, TABLE, BIAS)),
    "cross-entropy": (lambda k, x: k.cross_entropy(x, LABELS), (random(ROWS, V),)),
    "wide cross-entropy": (
        lambda k, x: k.cross_entropy(x, LABELS),
        (random(ROWS, 1100, scale=5),),
    ),
}
# In float16 and bfloat16, rounding errors relative to the largest number.
TOLERANCES = {"float32": 2e-5, "float16": 2**-7, "bfloat16": 2**-5}


def is_quick(implementation, dtype, static):
    """XLA compiles all kernels of the islands; the others do the same in 16 bits."""
    if implementation == "islands":
        return dtype == "float32" and not static
    return dtype != "float16"


# Implementation, type, and whether the number of rows is known.
CASES = [
    case if is_quick(*case) else ring.slow(*case)
    for case in itertools.product(IMPLEMENTATIONS, TOLERANCES, (True, False))
    if case[1] == "float32" or case[2]
]


def computed(k, function, arguments, *, dtype, static=True):
    """Returns the result, and the gradients of its sum with random weights."""

    def compute(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            outputs = function(k, *arguments)
            wide = tf.cast(outputs, tf.float32)
            weights = tf.cos(tf.range(tf.cast(tf.size(wide), tf.float32)))
            loss = tf.reduce_sum(wide * tf.reshape(weights, tf.shape(wide)))
        return outputs, *tape.gradient(loss, arguments)

    arguments = [tf.cast(argument, dtype) for argument in arguments]
    if static and k is not IMPLEMENTATIONS["islands"]:
        return compute(*arguments)
    shapes = [  # The number of rows may be unknown, not the size of a layer.
        x.shape if static or len(x) != ROWS else [None, *x.shape[1:]] for x in arguments
    ]
    return tf.function(
        compute,
        autograph=False,
        input_signature=[tf.TensorSpec(shape, dtype) for shape in shapes],
    )(*arguments)


@functools.cache
def expected(name, dtype):
    return computed(plain.Plain(), *KERNELS[name], dtype=dtype, static=True)


@pytest.fixture(autouse=True)
def islands_of_any_size(monkeypatch):
    monkeypatch.setattr(cpu, "MIN_ELEMENTS", 1)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("implementation, dtype, static", CASES)
def test_values_and_gradients_are_those_of_the_formula(
    implementation, name, dtype, static
):
    k = IMPLEMENTATIONS[implementation]
    hides_all = implementation == "fused inference" and name == "attend to padding"
    if hides_all and dtype == "bfloat16":
        pytest.skip("in bfloat16, scores vanish beside the bias if all of them have it")
    results = computed(k, *KERNELS[name], dtype=dtype, static=static)
    for result, formula in zip(results, expected(name, dtype), strict=True):
        assert result.dtype == formula.dtype
        difference = np.asarray(result, "float64") - np.asarray(formula, "float64")
        largest = np.abs(np.asarray(formula, "float64")).max()
        assert np.abs(difference).max() <= TOLERANCES[dtype] * max(1, largest)


# What is dropped is 0, or below the mean of a row of ones.
MASKS = {
    "dropout": lambda k: k.dropout(tf.ones([ROWS, H]), dropout()) == 0,
    "by rows": lambda k: k.dropout(tf.ones([ROWS, H]), BY_ROWS) == 0,
    "add and norm": lambda k: (
        add_and_norm(k, tf.ones([ROWS, H]), tf.zeros([ROWS, H]), *ONE, drop=dropout())
        <= 0
    ),
    "norm and dropout": lambda k: (
        norm_and_dropout(k, tf.constant(X), *ONE, dropout()) == 0
    ),
    # Values that are the identity show the weights.
    "attend": lambda k: (
        attend(
            k,
            tf.constant(X),
            tf.constant(X),
            tf.tile(tf.eye(T), [B, N]),
            visible=np.ones((B, T), "int32"),
            drop=dropout(),
        )
        == 0
    ),
}
MODES = ("eager", "graph", "xla")
ONE = (np.ones(H, "float32"), np.zeros(H, "float32"))


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("mode", ring.quick("eager", "xla", of=MODES))
def test_masks_are_equal_bit_for_bit(implementation, name, mode):
    mask = MASKS[name](plain.Plain())
    k = IMPLEMENTATIONS[implementation]
    compute = functools.partial(MASKS[name], k)
    if mode != "eager" and implementation != "islands":
        compute = tf.function(compute, jit_compile=mode == "xla", autograph=False)
    np.testing.assert_array_equal(compute(), mask)
    assert 0.2 < np.mean(mask) < 0.8


def test_plain_activations_and_norms_are_the_published_formulas():
    x = np.linspace(-8, 8, 161).astype("float64")
    tanh = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    erf = np.array([math.erf(value / math.sqrt(2)) for value in x])
    k = plain.Plain()
    inputs = tf.constant(x, tf.float32)
    np.testing.assert_allclose(
        k.activation("gelu", inputs), 0.5 * x * (1 + tanh), atol=1e-5
    )
    np.testing.assert_allclose(
        k.activation("gelu_erf", inputs), 0.5 * x * (1 + erf), atol=1e-5
    )
    normalized = (X - X.mean(-1, keepdims=True)) / X.std(-1, keepdims=True)
    outputs = norm_and_dropout(k, tf.constant(X, "bfloat16"), GAMMA, BETA)
    np.testing.assert_allclose(
        np.asarray(outputs, "float32"), normalized * GAMMA + BETA, atol=0.05
    )


def test_plain_attention_is_the_equation_of_the_paper():
    query, key, value = (x.reshape(B, T, N, D) for x in (X, RESIDUAL, VALUE))
    scores = np.einsum("bfnd,btnd->bnft", query, key) / math.sqrt(D)
    weights = np.exp(scores) * PADDED[:, None, None, :]
    weights /= weights.sum(axis=-1, keepdims=True)
    context = np.einsum("bnft,btnd->bfnd", weights, value).reshape(ROWS, H)
    outputs = attend(plain.Plain(), *(tf.constant(x) for x in (X, RESIDUAL, VALUE)))
    np.testing.assert_allclose(outputs, context, atol=1e-5)


@pytest.mark.parametrize("name", ["plain", *IMPLEMENTATIONS])
def test_the_cross_entropy_of_extreme_logits_keeps_its_digits(name):
    k = IMPLEMENTATIONS.get(name, plain.Plain())
    logits = random(ROWS, 9, scale=5)
    logits[0] = [200, 0, 0, 0, 0, 0, 0, 0, -200]  # Probabilities that underflow.
    logits[1] += 10_000  # Their logarithms are small beside the logits.
    labels = np.array([8, 0, 1, 2, 3, 4, 5, 6], "int32")
    wide = logits.astype("float64")
    wide -= wide.max(axis=-1, keepdims=True)
    exact = np.log(np.exp(wide).sum(axis=-1)) - wide[np.arange(ROWS), labels]
    result = tf.function(lambda x: k.cross_entropy(x, labels))(tf.constant(logits))
    rtol = 1e-3 if name == "plain" else 1e-6
    np.testing.assert_allclose(result, exact, rtol=rtol)


# A chunk is smaller than the rows, divides them, or is larger.
CHUNKS = ((3, False), (4, True), (50, False), (50, True))


@pytest.mark.parametrize(
    "size, jit_compile",
    [(3, True), (4, False), *(ring.slow(*case) for case in CHUNKS)],
)
def test_losses_in_chunks_are_those_of_all_rows_at_once(size, jit_compile, monkeypatch):
    monkeypatch.setattr(cpu, "CHUNK_SIZE", size)
    arguments = [tf.constant(x) for x in (X, TABLE, BIAS)]

    def compute(function):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            values, hits = function(*arguments, tf.constant(LABELS))
        return values, hits, tape.gradient(values, arguments)

    in_chunks = tf.function(
        lambda: compute(cpu.Cpu().vocabulary_losses), jit_compile=jit_compile
    )
    at_once = compute(plain.Plain().vocabulary_losses)
    for chunked, one in zip(*map(tf.nest.flatten, (in_chunks(), at_once)), strict=True):
        np.testing.assert_allclose(chunked, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4096, 5), (64, 64, 5)])
def test_gradients_of_dense_layers_in_bfloat16_are_those_of_exact_sums(shape):
    rng = np.random.default_rng(1)
    # Gradients with a mean: sums that are rounded at every row would stop growing.
    inputs, upstream = rng.normal(1, 1, shape), rng.normal(1, 1, (*shape[:-1], 3))
    config = small_config.create(hidden_size=5, num_attention_heads=1)
    layer = embeddings.dense(config, 3, dtype="mixed_bfloat16")
    layer.build((None, 5))

    @tf.function
    def gradients(inputs, upstream):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = kernels.current().dense(layer, inputs)
        sources = [inputs, layer.kernel.value, layer.bias.value]
        return tape.gradient(outputs, sources, output_gradients=upstream)

    computed_sums = gradients(
        tf.constant(inputs, "bfloat16"), tf.constant(upstream, "bfloat16")
    )
    rows, of_rows = inputs.reshape(-1, 5), upstream.reshape(-1, 3)
    of_inputs = upstream @ layer.kernel.numpy().T
    exact = of_inputs, rows.T @ of_rows, of_rows.sum(axis=0)
    for one, sums in zip(computed_sums, exact, strict=True):
        error = np.linalg.norm(tf.cast(one, "float64") - sums)
        assert error < 0.01 * np.linalg.norm(sums)


@pytest.mark.parametrize(
    "implementation", ring.quick("islands", "inference", of=IMPLEMENTATIONS)
)
def test_a_model_uses_the_kernels_of_its_context(implementation):
    model = bert.BertModel(small_config.create(num_hidden_layers=2))
    features = {"input_ids": np.array([[2, 7, 9, 3]], "int32")}
    with kernels.use(plain.Plain()):
        formula = model(features)["sequence_output"]
    k = IMPLEMENTATIONS[implementation]

    @tf.function(autograph=False)
    @kernels.use(k)
    def vectors():
        assert kernels.current() is k
        return model(features)["sequence_output"]

    np.testing.assert_allclose(vectors(), formula, atol=1e-5)
    assert isinstance(kernels.current(), cpu.Cpu)


# The reductions of islands, in two stages.


REDUCTIONS = {"sum": keras.ops.sum, "max": keras.ops.max, "mean": keras.ops.mean}


def reduce_squares(name, x):
    """Returns a reduction of squares, computed by an island."""

    @islands.inner_island
    def compute(x):
        return islands.reduce_rows(REDUCTIONS[name], x, keras.ops.square)

    return tf.function(compute, autograph=False)(tf.constant(x)).numpy()


@pytest.mark.parametrize(
    "num_columns",
    ring.quick(1, 768, 1100, of=(1, 64, 312, 768, 1000, 1024, 1100, 5003)),
)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reducing_rows_gives_what_a_single_stage_gives(name, num_columns):
    x = random(3, num_columns)
    expected = getattr(np, name)(x**2, axis=-1, keepdims=True)
    np.testing.assert_allclose(reduce_squares(name, x), expected, rtol=1e-6)
    half = reduce_squares(name, x.astype(tf.bfloat16.as_numpy_dtype))
    assert half.dtype == tf.bfloat16
    np.testing.assert_allclose(half.astype("float32"), expected, rtol=2**-7)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_two_stages_keep_what_is_not_finite(value):
    x = random(2, 64)
    x[1, 40] = value
    for name in ("sum", "mean"):
        result = reduce_squares(name, x)
        assert np.isfinite(result[0])
        assert not np.isfinite(result[1])
