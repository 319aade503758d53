"""Islands: the compiled functions equal the plain ones, forward and backward."""

import math
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from bert_tf import islands
from bert_tf.modeling import compound_numerics
from bert_tf.modeling import numerics
from bert_tf.optimization import adam_weight_decay

ROWS, WIDTH, HEADS, LENGTH = 8, 6, 2, 4
KEYS = numerics.dropout_keys(1, 2, np.arange(2))
MASK = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "int32")


def random(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def add_and_norm(x, residual, gamma, beta, keys):
    return compound_numerics.add_and_norm(
        x, residual, gamma, beta, keys, site=3, rate=0.5, epsilon=1e-12
    )


def drop_weights(scores, mask=MASK, keys=KEYS):
    return compound_numerics.dropped_attention_weights(
        scores, mask, keys, site=2, rate=0.5
    )


def norm_and_dropout(x, gamma, beta, keys=KEYS):
    return compound_numerics.norm_and_dropout(
        tf.cast(x, tf.float32),
        gamma,
        beta,
        keys,
        site=0,
        rate=0.5,
        epsilon=1e-12,
        dtype=x.dtype.name,
    )


# Examples and positions of some of the rows of two sequences.
ROW_KEYS = numerics.dropout_keys_of_rows(KEYS, np.arange(ROWS, dtype="int32"), LENGTH)
HIDDEN = np.array([[0, 0, 0, 0], [1, 1, 0, 0]], "int32")  # A sequence of padding.
SCORES = random(2, HEADS, LENGTH, LENGTH)
ADDED = (random(ROWS, WIDTH), 2 * random(ROWS, WIDTH), random(WIDTH), random(WIDTH))
ISLANDS = {
    "gelu": (numerics.gelu, [random(ROWS, WIDTH)]),
    "gelu_erf": (numerics.gelu_erf, [random(ROWS, WIDTH)]),
    "add and norm": (lambda *args: add_and_norm(*args, KEYS), ADDED),
    "without dropout": (lambda *args: add_and_norm(*args, None), ADDED),
    "keys of rows": (lambda *args: add_and_norm(*args, ROW_KEYS), ADDED),
    "norm and dropout": (norm_and_dropout, ADDED[1:]),
    "norm without dropout": (lambda *args: norm_and_dropout(*args, None), ADDED[1:]),
    "attention": (drop_weights, [SCORES]),
    "attention without dropout": (lambda x: drop_weights(x, keys=None), [SCORES]),
    "attention to padding": (lambda x: drop_weights(x, HIDDEN), [SCORES]),
    "attention by position": (
        lambda x: drop_weights(x, np.tril(np.ones((2, LENGTH, LENGTH), "int32"))),
        [300 * SCORES],
    ),
    "cross-entropy": (
        lambda logits: numerics.cross_entropy(logits, np.arange(ROWS) % WIDTH),
        [random(ROWS, WIDTH)],
    ),
}


# Wide enough for reductions in two stages.
WIDE = (random(ROWS, 64), random(ROWS, 64), random(64), random(64))
ISLANDS |= {
    "wide add and norm": (lambda *args: add_and_norm(*args, KEYS), WIDE),
    "wide norm": (norm_and_dropout, WIDE[1:]),
    "wide attention": (
        lambda x: drop_weights(x, np.repeat(MASK, 8, axis=1)),
        [random(2, HEADS, 32, 32)],
    ),
    "wide cross-entropy": (
        lambda logits: numerics.cross_entropy(logits, 100 * np.arange(ROWS)),
        [random(ROWS, 1100)],
    ),
}


def run(function, arguments, *, is_compiled, dtype="float32"):
    """Returns the result, the gradients of its squared sum, and the number of calls."""

    @tf.function(autograph=False)
    def compute(*arguments):
        with islands.compiled(is_compiled, min_elements=1):
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                outputs = function(*arguments)
                loss = tf.reduce_sum(outputs**2)
            return outputs, tape.gradient(loss, arguments)

    arguments = [tf.cast(argument, dtype) for argument in arguments]
    graph = compute.get_concrete_function(*arguments).graph
    calls = [op for op in graph.get_operations() if "PartitionedCall" in op.type]
    return *compute(*arguments), len(calls)


@pytest.mark.parametrize("name", ISLANDS)
def test_a_compiled_island_equals_the_plain_function(name):
    outputs, gradients, calls = run(*ISLANDS[name], is_compiled=False)
    compiled, compiled_gradients, compiled_calls = run(*ISLANDS[name], is_compiled=True)
    # Forward and backward. The forward pass of the cross-entropy has two islands.
    assert (calls, compiled_calls) == (0, 3 if "cross-entropy" in name else 2)
    np.testing.assert_allclose(compiled, outputs, rtol=1e-5, atol=1e-5)
    for ours, plain in zip(compiled_gradients, gradients, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ISLANDS)
def test_a_compiled_island_equals_the_plain_function_in_bfloat16(name):
    results = [
        run(*ISLANDS[name], is_compiled=is_compiled, dtype="bfloat16")[:2]
        for is_compiled in (True, False)
    ]
    for ours, plain in zip(*map(tf.nest.flatten, results), strict=True):
        assert ours.dtype == plain.dtype
        largest = np.abs(np.asarray(plain, "float32")).max()
        difference = np.asarray(ours, "float32") - np.asarray(plain, "float32")
        # A few rounding errors of 8 bits.
        assert np.abs(difference).max() <= largest * 2**-6


REDUCTIONS = {"sum": keras.ops.sum, "max": keras.ops.max, "mean": keras.ops.mean}


def reduce_squares(name, x):
    """Returns a reduction of squares, computed by an island."""

    @islands.inner_island
    def compute(x):
        return islands.reduce_rows(REDUCTIONS[name], x, keras.ops.square)

    @tf.function(autograph=False)
    def call(x):
        with islands.compiled(min_elements=1):
            return compute(x)

    return call(tf.constant(x)).numpy()


@pytest.mark.parametrize("num_columns", [1, 64, 312, 768, 1000, 1024, 1100, 5003])
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


@pytest.mark.parametrize("num_columns", [768, 30522])
def test_the_terms_of_a_reduction_are_not_written_to_memory(num_columns, monkeypatch):
    functions = []
    compile_whole = islands.compile_whole

    def record(function):
        functions.append(compile_whole(function))
        return functions[-1]

    monkeypatch.setattr(islands, "compile_whole", record)
    x = random(16, num_columns)
    reduce_squares("sum", x)
    (function,) = functions
    program = function.experimental_get_compiler_ir(x)(stage="optimized_hlo")
    _, steps = program.split("ENTRY")
    results = re.findall(r"= .*?f32\[([0-9,]+)\]\S* (?!parameter|bitcast)\w+\(", steps)
    sizes = [math.prod(map(int, result.split(","))) for result in results]
    assert sizes
    assert max(sizes) <= x.size / 16  # What the first stage leaves.


def test_layers_share_a_compiled_island():
    traces = []

    @islands.island
    def add_site(x, site):
        traces.append(site)
        return x + keras.ops.cast(site, x.dtype)

    @tf.function(autograph=False)
    def layers(x):
        with islands.compiled(min_elements=1):
            return add_site(add_site(x, 1), 2)

    np.testing.assert_array_equal(layers(tf.zeros([3])), [3.0, 3.0, 3.0])
    assert len(traces) == 1


def num_compiled(call, folder):
    """Returns how many functions XLA compiles during a call."""
    with tf.profiler.experimental.Profile(str(folder)):
        call()
    (path,) = folder.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    return sum(
        plane.event_metadata[event.metadata_id].name == "CpuCompiler::RunBackend"
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    )


@pytest.mark.parametrize("name", ["gelu", "keys of rows", "cross-entropy"])
def test_islands_are_compiled_before_the_first_step(name, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    islands._compiled_island.cache_clear()  # Another test may have called it.
    function, arguments = ISLANDS[name]

    @tf.function(autograph=False)
    def compute(*arguments):
        with islands.compiled(min_elements=1), tf.GradientTape() as tape:
            tape.watch(arguments)
            loss = tf.reduce_sum(function(*arguments) ** 2)
        return loss, tape.gradient(loss, arguments)

    arguments = [tf.constant(argument) for argument in arguments]
    compute.get_concrete_function(*arguments)
    islands._compiler().submit(int).result()  # After all that came before.
    assert num_compiled(lambda: compute(*arguments), tmp_path / "step") == 0
    other = tf.function(tf.tanh, jit_compile=True)
    assert num_compiled(lambda: other(tf.zeros([5])), tmp_path / "other") == 1


def test_a_boolean_is_fixed_when_compiling():
    @islands.island
    def shifted(x, *, is_shifted):
        return x + 1.0 if is_shifted else x

    @tf.function(autograph=False)
    def compute(x):
        with islands.compiled(min_elements=1):
            return shifted(x, is_shifted=True) + shifted(x, is_shifted=False)

    np.testing.assert_array_equal(compute(tf.zeros([2])), [1.0, 1.0])


@pytest.mark.parametrize(
    "shape, pays",
    [
        ([4, 4], True),
        ([3, 4], False),  # Too small.
        ([None, 4], False),  # Every new size would be compiled again.
    ],
)
def test_small_and_varying_sizes_stay_plain(shape, pays):
    found = []

    @tf.function(autograph=False, input_signature=[tf.TensorSpec(shape)])
    def compute(x):
        with islands.compiled(min_elements=16):
            found.append(islands.is_worth_compiling(x))
        return x

    compute(tf.zeros([size or 4 for size in shape]))
    assert found[0] is pays


@pytest.mark.parametrize(
    "shape, size",
    [
        ([None, 4], 3 * 32 * 4),  # [B * S, H]
        ([None, 2, None, None], 3 * 2 * 32 * 32),  # [B, N, S, S]
        ([3, 2, None, None], 3 * 2 * 32 * 32),
        ([3, None], 3 * 32),  # [B, S]
        ([None, None], 3 * 32),
    ],
)
def test_unknown_sizes_are_those_of_short_sequences(shape, size):
    tensor = tf.TensorSpec(shape)
    with islands.compiled(min_elements=size, num_examples=3):
        assert islands.is_worth_compiling(tensor)
    with islands.compiled(min_elements=size + 1, num_examples=3):
        assert not islands.is_worth_compiling(tensor)


def updated(min_elements):
    """Returns weights and first moments after three steps."""
    weight = keras.Variable(random(ROWS, WIDTH), name="kernel")
    bias = keras.Variable(random(ROWS), name="bias")
    optimizer = adam_weight_decay.AdamWeightDecay(0.1, weight_decay_rate=0.3)
    optimizer.build([weight, bias])

    @tf.function(autograph=False)
    def update():
        for variable in (weight, bias):
            gradient = tf.sin(variable.value)
            optimizer.update_step(gradient, variable, 0.1, 0.5)

    with islands.compiled(min_elements=min_elements):
        for _ in range(3):
            update()
    state = [weight, bias, *optimizer.slots()["adam_m"]]
    return [np.asarray(variable) for variable in state]


def test_the_compiled_update_equals_the_kernel():
    for compiled, plain in zip(updated(1), updated(1000), strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-6)
