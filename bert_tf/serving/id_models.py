"""Exports for other runtimes: LiteRT, ONNX and OpenVINO.

These runtimes have no operations for text. The models take what the signature `ids` of
a SavedModel takes, and return what it returns; a client tokenizes with the vocabulary
stored next to the model. Padding needs the mask 0: the models do not recognize the
padding of a server, and do not divide large batches.
"""

import logging
import os
from typing import Any

import keras
import tensorflow as tf

from bert_tf import machine
from bert_tf.fine_tuning import backends
from bert_tf.modeling import input_features
from bert_tf.serving import options as serving_options
from bert_tf.serving import signatures

LITERT, ONNX, OPENVINO = serving_options.ID_FORMATS
# The model's file in the folder of an export; OpenVINO adds model.bin.
FILES = {LITERT: "model.tflite", ONNX: "model.onnx", OPENVINO: "model.xml"}
_FLOAT16 = "float16"
_KERAS_OF_LITERT = (3, 13)  # The first that exports LiteRT.


def check_packages(export_format: str, dtype: str) -> None:
    """Raises ImportError, before any work, if a package that is needed is missing."""
    version = tuple(map(int, keras.__version__.split(".")[:2]))
    if export_format == LITERT and version < _KERAS_OF_LITERT:
        raise ImportError(
            f"The format litert needs Keras 3.13 or newer, got {keras.__version__}; "
            "pip install --upgrade keras."
        )
    if export_format == OPENVINO:
        backends.import_package("openvino")
        if dtype == backends.INT8:
            backends.import_package("nncf")
    if export_format == ONNX:
        for module in ("tf2onnx", "onnxruntime"):
            machine.package(module, extra="onnx", needed_for="The format onnx")


def write(
    module: signatures.TaskSignatures, folder: str, export_format: str, dtype: str
) -> None:
    """Writes a model into a folder, as `FILES[export_format]`.

    Args:
        module: the signatures of a model that computes in float32.
        folder: an existing folder.
        export_format: a key of `FILES`.
        dtype: of the stored weights.
    """
    path = os.path.join(folder, FILES[export_format])
    if export_format == OPENVINO:
        _write_openvino(module, path, dtype)
        return
    model = _IdsModel(module)
    signature = {
        name: keras.InputSpec(shape=(None, None), dtype="int32", name=name)
        for name in input_features.SEQUENCE
    }
    options: dict[str, Any] = {"verbose": False, "input_signature": [signature]}
    if export_format == LITERT and dtype != "float32":
        options["optimizations"] = [tf.lite.Optimize.DEFAULT]
    if export_format == LITERT and dtype == _FLOAT16:
        options["target_spec"] = {"supported_types": [tf.float16]}
    model.export(path, format=export_format, **options)
    if export_format == ONNX and dtype == backends.INT8:
        _quantize_onnx(path)


class _IdsModel(keras.Model):
    """The `ids` signature as a Keras model, for Keras's exporters."""

    def __init__(self, module: signatures.TaskSignatures):
        super().__init__(name="bert_tf")
        self.model = module.predictor.model
        self._outputs = module.outputs
        self.built = True

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns the outputs for features."""
        return self._outputs(features)


def _quantize_onnx(path):
    """Replaces a model by one with int8 weights."""
    from onnxruntime import quantization

    exact = f"{path}.float32"
    os.replace(path, exact)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # It advises preprocessing that changes no result.
    try:
        quantization.quantize_dynamic(
            exact,
            path,
            per_channel=True,  # With one scale per tensor, large weights blur others.
            weight_type=quantization.QuantType.QInt8,
        )
    finally:
        root.setLevel(level)
        os.remove(exact)


def _write_openvino(module, path, dtype):
    graph = tf.function(
        backends.with_constant_weights(module.outputs, module.predictor.model),
        autograph=False,
    )
    model = backends.converted(graph, input_features.SEQUENCE)
    if dtype == backends.INT8:
        model = backends.with_int8_weights(model)
    backends.import_package("openvino").save_model(
        model, path, compress_to_fp16=dtype == _FLOAT16
    )
