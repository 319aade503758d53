"""A SavedModel in which OpenVINO runs the model and TensorFlow the rest.

OpenVINO lacks the operations that tokenize texts and assemble answers. All signatures
call the model through one function, `signatures.TaskSignatures.model_outputs`. In a
copy of the SavedModel's graph, these calls become calls of OpenVINO.
"""

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from google.protobuf import message
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.fine_tuning import backends
from bert_tf.modeling import config as config_module
from bert_tf.modeling import input_features
from bert_tf.serving import export_layout
from bert_tf.serving import loaded_model

# The function's name in the object graph, and the suffix of the one that replaces it.
_FUNCTION = "model_outputs"
_SUFFIX = "_of_openvino"
_NODE = "openvino"
# Describes the SavedModel before the change.
_FINGERPRINT = "fingerprint.pb"


def load(export_dir: str) -> Any:
    """Returns a loaded SavedModel, with `signatures` that compute with OpenVINO.

    Raises:
        ImportError: OpenVINO is not installed.
        OSError: the SavedModel cannot be loaded.
        ValueError: OpenVINO cannot compute it.
    """
    backends.import_package("openvino")
    if files.is_remote(export_dir):
        raise ValueError(
            f"{export_dir}: OpenVINO serves models from a local folder; copy it there."
        )
    saved_model = _read_definition(export_dir)
    function = _model_function(saved_model, export_dir)
    _check_dtype(function, export_dir)
    config = config_module.BertConfig.from_json_file(
        os.path.join(
            export_dir, export_layout.EXTRA_FOLDER, companion_files.CONFIG_FILE
        )
    )
    model = _Model(config.max_position_embeddings)
    _replace(saved_model, function, model)
    loaded = _load_changed(saved_model, export_dir)
    model.compute = backends.compiled(
        loaded.model_outputs, backend=backends.OPENVINO, policy="float32"
    )
    # The loaded graphs call it, but do not keep it.
    loaded.openvino_model = model
    return loaded


def _read_definition(export_dir):
    """Returns the message `SavedModel` of a SavedModel."""
    path = os.path.join(export_dir, export_layout.MODEL_FILE)
    with open(path, "rb") as file:
        try:
            return saved_model_pb2.SavedModel.FromString(file.read())
        except message.DecodeError as error:
            raise ValueError(f"{path} is damaged; export the model again.") from error


class _Model:
    """The model as a function of TensorFlow that runs in Python."""

    def __init__(self, max_length: int):
        self._max_length = max_length
        self.compute: Any = None  # `backends.Compiled`.

    def node(self, dtypes: Sequence[int]) -> Any:
        """Returns the `NodeDef` that calls this function, for types of outputs."""

        def call(*columns):
            return tf.numpy_function(self._outputs, list(columns), kinds)

        kinds = [tf.as_dtype(dtype) for dtype in dtypes]
        spec = tf.TensorSpec([None, None], tf.int32)
        # As long as this graph exists, TensorFlow keeps the Python function.
        self._graph = tf.function(
            call, input_signature=[spec] * 3, autograph=False
        ).get_concrete_function()
        [node] = [
            node
            for node in self._graph.graph.as_graph_def().node
            if node.op in ("PyFunc", "EagerPyFunc")
        ]
        return node

    def _outputs(self, *columns):
        length = columns[0].shape[1]
        if length > self._max_length:  # TensorFlow refuses such rows, too.
            raise ValueError(
                f"A row has {length} positions; the model has at most "
                f"{self._max_length}."
            )
        outputs = self.compute(dict(zip(input_features.SEQUENCE, columns, strict=True)))
        return [outputs[name] for name in sorted(outputs)]


def _model_function(saved_model, export_dir):
    """Returns the `FunctionDef` of the model."""
    [graph] = saved_model.meta_graphs
    objects = graph.object_graph_def.nodes
    children = {child.local_name: child.node_id for child in objects[0].children}
    if _FUNCTION not in children:
        raise ValueError(
            f"{export_dir} was not written by bert_tf export; use the backend "
            "tensorflow."
        )
    [name] = objects[children[_FUNCTION]].function.concrete_functions
    functions = {one.signature.name: one for one in graph.graph_def.library.function}
    outputs = functions[name].signature.output_arg
    if any(output.type != types_pb2.DT_FLOAT for output in outputs):
        raise ValueError(
            f"{export_dir} fills masked words, which OpenVINO cannot; use the backend "
            "tensorflow."
        )
    return functions[name]


def _check_dtype(function, export_dir):
    """Refuses a model that does not compute in float32.

    OpenVINO cannot convert a graph in bfloat16, and would compute one in float16 in
    another precision.
    """
    dtypes = {node.attr["T"].type for node in function.node_def if node.op == "MatMul"}
    for dtype in dtypes - {types_pb2.DT_FLOAT}:
        raise ValueError(
            f"{export_dir} was exported with --dtype={tf.as_dtype(dtype).name}, but "
            "OpenVINO needs an export in float32; export it with --dtype=float32, or "
            "use the backend tensorflow."
        )


def _replace(saved_model, function, model):
    """Replaces the calls of the model's function; the function itself remains."""
    [graph] = saved_model.meta_graphs
    name = function.signature.name
    library = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(node for f in library for node in f.node_def)]
    for node in nodes:
        for attribute in node.attr.values():
            if attribute.func.name == name:
                attribute.func.name = name + _SUFFIX
    replacement = library.add()
    replacement.CopyFrom(function)
    replacement.signature.name = name + _SUFFIX
    for field in ("node_def", "ret", "control_ret"):
        replacement.ClearField(field)
    replacement.signature.ClearField("control_output")
    inputs = [argument.name for argument in function.signature.input_arg]
    outputs = function.signature.output_arg
    node = model.node([output.type for output in outputs])
    node.name = _NODE
    node.input[:] = inputs[: len(input_features.SEQUENCE)]
    replacement.node_def.add().CopyFrom(node)
    for index, output in enumerate(outputs):
        replacement.ret[output.name] = f"{_NODE}:output:{index}"


def _load_changed(saved_model, export_dir):
    """Loads a SavedModel with a definition that differs from the one on disk."""
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(export_dir):
            if name not in (export_layout.MODEL_FILE, _FINGERPRINT):
                target = os.path.abspath(os.path.join(export_dir, name))
                os.symlink(target, os.path.join(folder, name))
        with open(os.path.join(folder, export_layout.MODEL_FILE), "wb") as file:
            file.write(saved_model.SerializeToString())
        try:
            return loaded_model.load(folder)
        except OSError as error:
            raise OSError(str(error).replace(folder, export_dir)) from error
