"""Compiled functions of features, computed by TensorFlow or by OpenVINO.

OpenVINO is Intel's inference library. It computes a single text in 30 to 60 % of
TensorFlow's time. Large batches take about as long as with TensorFlow in float32, and
less in bfloat16.
"""

import contextlib
import functools
import io
import logging
import os
import threading
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf import machine
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.modeling import input_features
from bert_tf.modeling import kernels
from bert_tf.modeling.kernels import inference

TENSORFLOW = fine_tuning_options.TENSORFLOW
OPENVINO = fine_tuning_options.OPENVINO
BACKENDS = fine_tuning_options.BACKENDS
INT8 = "int8"  # Weights of exported models; not a Keras policy.
# The Keras policy of each dtype. Weights stay in float32; layer normalization, softmax
# and outputs are computed in float32 (see `inference.Inference` for the exception).
_POLICIES = {
    dtype: dtype if dtype == "float32" else f"mixed_{dtype.removeprefix('mixed_')}"
    for dtype in fine_tuning_options.DTYPES
}
# The policies whose casts of the weights are worth saving.
ROUNDED = ("mixed_bfloat16", "mixed_float16")
# OpenVINO's names of the policies that it supports.
_PRECISIONS = {None: "f32", "float32": "f32", "mixed_bfloat16": "bf16"}
_ONLY_OUTPUT = "output"
_CPU_INFO_FILE = "/proc/cpuinfo"
# Enough for the weights of BERT-Base in float32, but for large vocabularies only
# without the table of words.
_MAX_CONSTANT_BYTES = 1 << 29
_WORD_TABLE = "word_embeddings"

# Takes features, and returns tensors or arrays.
Compiled = Callable[[Mapping[str, np.ndarray]], Any]


def policy_of(dtype: str | None) -> str | None:
    """Returns the Keras policy for a `dtype` argument of `bert_tf.load`.

    Raises:
        ValueError: it is not one of the supported dtypes.
    """
    if dtype is not None and dtype not in _POLICIES:
        raise ValueError(
            f"dtype is {dtype!r:.60}; expected one of {', '.join(_POLICIES)}."
        )
    return None if dtype is None else _POLICIES[dtype]


def check(backend: str, policy: str | None) -> None:
    """Checks `backend` and the Keras policy before any work; see `bert_tf.load`.

    Raises:
        ValueError: it is not one of `BACKENDS`, or does not support this policy.
        ImportError: it needs a package that is not installed.
    """
    if backend not in BACKENDS:
        raise ValueError(
            f"backend is {backend!r:.60}; expected one of {', '.join(BACKENDS)}."
        )
    if backend == OPENVINO:
        if policy not in _PRECISIONS:
            raise ValueError(
                f"dtype is {policy!r}, but backend 'openvino' computes in float32 or "
                "bfloat16; pass one of them."
            )
        import_package("openvino")


def import_package(name: str) -> Any:
    """Returns a package of the extra `openvino`: "openvino" or "nncf".

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    return machine.package(name, extra="openvino", needed_for="OpenVINO")


def compiled(
    function: Callable,
    columns: Sequence[str] = input_features.SEQUENCE,
    *,
    backend: str = TENSORFLOW,
    policy: str | None = None,
) -> Compiled:
    """Compiles a function of features into one graph for all shapes [B, S].

    With OpenVINO the graph is converted at the first call. It then contains the weights
    as they are at that time.

    Args:
        function: takes features and returns a tensor, or a dict of tensors.
        columns: names of the features, each int32 [B, S].
        backend: one of `BACKENDS`.
        policy: with OpenVINO, the Keras policy of the computation. The model of
            `function` is in float32.
    """
    graph = tf.function(
        function,
        input_signature=[
            {name: tf.TensorSpec([None, None], tf.int32, name) for name in columns}
        ],
        autograph=False,
    )
    if backend == TENSORFLOW:
        return graph
    return _openvino_function(graph, columns, _PRECISIONS[policy])


def with_constant_weights(function: Callable, model: Any) -> Callable:
    """Returns a function that reads a model's weights as constants of the graph.

    TensorFlow then casts them to bfloat16 only once, and stores them in the layout that
    its matrix products read fastest. The graph keeps the weights that the model has
    when the function is first called. Above 512 MiB the table of words, whose rows are
    cast after the lookup, stays a variable; if that is not enough, as in BERT-Large,
    all weights do. A graph cannot contain more than 2 GB and is copied several times
    while it is optimized.
    """

    def apply(features):
        with tf.init_scope():
            values = [(weight, weight.numpy()) for weight in model.weights]
        if not _is_small(values):
            values = [pair for pair in values if pair[0].name != _WORD_TABLE]
        if not _is_small(values):
            with kernels.use(inference.Inference()):
                return function(features)
        mapping = [(weight, tf.constant(value)) for weight, value in values]
        with (
            keras.StatelessScope(state_mapping=mapping),
            kernels.use(inference.Inference(fuses_bfloat16=_fuses_bfloat16())),
        ):
            return function(features)

    return apply


@functools.cache
def _fuses_bfloat16():
    """Returns whether TensorFlow fuses operations in bfloat16 here.

    It leaves them to oneDNN, which computes sums in float32, on CPUs with AVX-512.
    """
    if tf.config.list_physical_devices("GPU"):
        return False
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        return False
    try:
        with open(_CPU_INFO_FILE, encoding="utf-8") as file:
            return "avx512f" in file.read().split()
    except OSError:  # Not Linux.
        return False


def _is_small(values):
    return sum(value.nbytes for _, value in values) <= _MAX_CONSTANT_BYTES


def _openvino_function(graph, columns, precision):
    """Returns a function that computes a `tf.function` by OpenVINO, as arrays."""
    # A compiled model has one request, which threads cannot share.
    lock = threading.Lock()

    @functools.cache
    def compiled_model():
        model = converted(graph, columns)
        hints = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": precision,
        }
        return import_package("openvino").compile_model(model, "CPU", hints)

    def apply(features):
        inputs = {name: np.asarray(features[name], np.int32) for name in columns}
        with lock:
            model = compiled_model()
            outputs = model(inputs)
        names = [name for output in model.outputs for name in output.names]
        values = {name: outputs[name] for name in names}
        return values.get(_ONLY_OUTPUT, values)

    return apply


def converted(graph: Callable, columns: Sequence[str]) -> Any:
    """Returns the OpenVINO model of a `tf.function` of features.

    Its inputs have the names of the features, and its outputs those of the function;
    the result of a function that returns one tensor is named "output".
    """

    def named(*values):
        outputs = graph(dict(zip(columns, values, strict=True)))
        return outputs if isinstance(outputs, Mapping) else {_ONLY_OUTPUT: outputs}

    concrete = tf.function(
        named,
        input_signature=[tf.TensorSpec([None, None], tf.int32, n) for n in columns],
        autograph=False,
    ).get_concrete_function()
    openvino = import_package("openvino")
    model = openvino.convert_model(concrete)
    # The converter also lists inner tensors as outputs.
    outputs = [model.output(name) for name in concrete.structured_outputs]
    for name, output in zip(concrete.structured_outputs, outputs, strict=True):
        output.set_names({name})
    return openvino.Model(outputs, model.get_parameters(), "bert_tf")


def with_int8_weights(model: Any) -> Any:
    """Returns an OpenVINO model whose tables and kernels are stored in 8 bits.

    Each row has a scale and a zero point of its own, so no texts are needed to
    calibrate the model. Activations keep the precision that the model is compiled for.
    """
    nncf = import_package("nncf")
    logger = logging.getLogger("nncf")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        # It draws progress bars on standard output.
        with contextlib.redirect_stdout(io.StringIO()):
            return nncf.compress_weights(model)
    finally:
        logger.setLevel(level)
