"""Islands: compiled once for all layers, ahead of the first step, in one pass."""

import math
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import islands
from tests.modeling import test_kernels


def random(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


REDUCTIONS = {"sum": keras.ops.sum, "max": keras.ops.max, "mean": keras.ops.mean}


def reduce_squares(name, x):
    """Returns a reduction of squares, computed by an island."""

    @islands.inner_island
    def compute(x):
        return islands.reduce_rows(REDUCTIONS[name], x, keras.ops.square)

    return tf.function(compute, autograph=False)(tf.constant(x)).numpy()


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


@pytest.mark.parametrize("name", ["gelu", "dropout by rows", "cross-entropy"])
def test_islands_are_compiled_before_the_first_step(name, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(cpu, "MIN_ELEMENTS", 1)
    islands._compiled_island.cache_clear()  # Another test may have called it.
    function, arguments = test_kernels.KERNELS[name]
    k = cpu.Cpu(has_islands=True)

    @tf.function(autograph=False)
    def compute(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            loss = tf.reduce_sum(function(k, *arguments) ** 2)
        return loss, tape.gradient(loss, arguments)

    arguments = [tf.constant(argument) for argument in arguments]
    compute.get_concrete_function(*arguments)
    islands._compiler().submit(int).result()  # After all that came before.
    assert num_compiled(lambda: compute(*arguments), tmp_path / "step") == 0
    other = tf.function(tf.tanh, jit_compile=True)
    assert num_compiled(lambda: other(tf.zeros([5])), tmp_path / "other") == 1
