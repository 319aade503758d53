"""The format "saved_model": BERT of TF Hub and Kaggle, series 1 to 4. Read only.

A SavedModel is parsed as a protocol buffer and never loaded: its weights are a
checkpoint, their shapes show the sizes, and its functions show activation and epsilon
without being run. So TensorFlow Text's ops do not have to be registered, and no foreign
code is executed.
"""

import dataclasses
import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorflow.core.protobuf import saved_model_pb2

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import model_garden

_MODEL_FILE = "saved_model.pb"
_EXPORT_ASSETS = "assets.extra"  # Of an export that answers texts; see `serving`.
# The factor of x^3 in the tanh form of GELU.
_GELU_FACTOR = 0.044715
_EPSILON_NAME = re.compile(r"(?:^|/)batchnorm/add/y$")
_MASKED_WORD_HEAD = re.compile(r"(?:^|/)transform/|(?:^|/)cls/predictions/")
_BLOCK = re.compile(r"(?:^|/)(?:layer_\d+|intermediate|activation)")
# In the release's own graphs, the constant 1 / sqrt(D) that scales attention scores.
_SCALE_NAME = re.compile(r"attention/self/Mul/y$")


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is the folder of a SavedModel."""
    return files.exists(os.path.join(os.fspath(path), _MODEL_FILE))


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of the folder of a SavedModel."""
    path = os.fspath(path)
    if files.exists(os.path.join(path, _EXPORT_ASSETS, companion_files.TASK_FILE)):
        raise ValueError(
            f"{path} was written by bert_tf export, and no checkpoint can be read "
            "from it; pass the run or the checkpoint that was exported, or query the "
            "export with bert_tf query."
        )
    meta_graph = _read(path)
    prefix = os.path.join(path, "variables", "variables")
    if not files.exists(f"{prefix}.index"):
        raise ValueError(
            f"{path} is not a BERT: it is a SavedModel without variables, such as a "
            "text preprocessor; pass the SavedModel of the encoder."
        )
    source, num_heads = model_garden.open_weights(prefix)
    nodes = list(meta_graph.graph_def.node)
    for function in meta_graph.graph_def.library.function:
        nodes += function.node_def
    encoder_nodes = [node for node in nodes if not _MASKED_WORD_HEAD.search(node.name)]
    head_nodes = [node for node in nodes if _MASKED_WORD_HEAD.search(node.name)]
    hidden_act = _activation(encoder_nodes)
    head_act = _activation(head_nodes, is_head=True)
    scale = _constant_named(nodes, _SCALE_NAME)
    if scale and num_heads is None:
        hidden_size = source.shapes[checkpoint_names.WORD_EMBEDDINGS][1]
        num_heads = hidden_size // round(scale**-2)
    config, notes = model_garden.infer_config(
        source.shapes,
        num_heads,
        hidden_act=hidden_act,
        layer_norm_epsilon=_epsilon(encoder_nodes),
    )
    if len({head_act, hidden_act} - {None}) > 1:
        notes.append(
            f"its masked-word head computes {head_act}, its encoder {hidden_act}; a "
            "configuration has one activation, the encoder's"
        )
    do_lower_case = _do_lower_case(meta_graph)
    key = model_garden.CASING
    if do_lower_case is None and key in bundle.read_names_and_shapes(prefix):
        do_lower_case = bool(bundle.read(prefix, [key])[key])
    vocabulary = companion_files.read_vocabulary(os.path.join(path, "assets"))
    return dataclasses.replace(
        source,
        path=path,
        format="saved_model",
        config=config,
        text=text_encoding.TextEncoding(
            do_lower_case=do_lower_case, vocabulary=vocabulary
        ),
        notes=(*source.notes, *notes),
    )


def _read(folder: str) -> Any:
    """Returns the `MetaGraphDef` of a SavedModel."""
    path = os.path.join(folder, _MODEL_FILE)
    with files.open_file(path, "rb") as file:
        content = file.read()
    try:
        saved = saved_model_pb2.SavedModel.FromString(content)
    except message.DecodeError:
        saved = None
    if saved is None or not saved.meta_graphs:
        raise ValueError(
            f"{path} is not a complete SavedModel; it may be truncated: copy it again."
        )
    # Modules of TensorFlow 1 have one graph for training, tagged so, and one without.
    return min(saved.meta_graphs, key=lambda graph: "train" in graph.meta_info_def.tags)


def _activation(nodes: Iterable[Any], *, is_head: bool = False) -> str | None:
    ops = {node.op for node in nodes}
    if "Erf" in ops or "Erfc" in ops:
        return "gelu_erf"
    constants = (_constant(node) for node in nodes)
    if any(c is not None and abs(c - _GELU_FACTOR) < 1e-6 for c in constants):
        return "gelu"
    if "Relu" in ops:
        return "relu"
    # The pooler computes tanh as well.
    tanh = [node.name for node in nodes if node.op == "Tanh"]
    if any(is_head or _BLOCK.search(name) for name in tanh):
        return "tanh"
    return None


def _epsilon(nodes: Iterable[Any]) -> float | None:
    value = _constant_named(nodes, _EPSILON_NAME)
    fused = (node for node in nodes if node.op == "FusedBatchNormV3")
    if value is None:
        value = next((node.attr["epsilon"].f for node in fused), None)
    # The decimal that was meant, not its float32: 1e-12, not 9.99999996e-13.
    return None if value is None else float(f"{value:.6g}")


def _constant_named(nodes: Iterable[Any], pattern: re.Pattern[str]) -> Any:
    for node in nodes:
        if node.op == "Const" and pattern.search(node.name):
            value = _constant(node)
            if value is not None:
                return value
    return None


def _constant(node: Any) -> Any:
    """Returns the number in a scalar constant, or None for any other node."""
    if node.op != "Const":
        return None
    tensor = node.attr["value"].tensor
    is_number = tf.dtypes.as_dtype(tensor.dtype).is_numpy_compatible
    if tensor.tensor_shape.dim or tensor.dtype == tf.string.as_datatype_enum:
        return None
    return np.asarray(tf.make_ndarray(tensor)).item() if is_number else None


def _do_lower_case(meta_graph: Any) -> bool | None:
    """Returns the casing that a TensorFlow 1 module has in `tokenization_info`."""
    signature = meta_graph.signature_def.get("tokenization_info")
    if signature is None or "do_lower_case" not in signature.outputs:
        return None
    name = signature.outputs["do_lower_case"].name.split(":")[0]
    node = next((one for one in meta_graph.graph_def.node if one.name == name), None)
    value = None if node is None else _constant(node)
    return None if value is None else bool(value)
