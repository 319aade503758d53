"""Finds out what the functions in a SavedModel compute, without running them.

`saved_model.pb` is parsed as a protocol buffer, so no op needs to be registered.
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

MODEL_FILE = "saved_model.pb"
# The factor of x^3 in the tanh form of GELU.
_GELU_FACTOR = 0.044715
_EPSILON_NAME = re.compile(r"(?:^|/)batchnorm/add/y$")
_MASKED_WORD_HEAD = re.compile(r"(?:^|/)transform/|(?:^|/)cls/predictions/")
_BLOCK = re.compile(r"(?:^|/)(?:layer_\d+|intermediate|activation)")
# In the release's own graphs, the constant 1 / sqrt(D) that scales attention scores.
_SCALE_NAME = re.compile(r"attention/self/Mul/y$")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Computation:
    """What a SavedModel's functions show about a BERT."""

    hidden_act: str | None  # As in a `BertConfig`; None: not visible.
    head_act: str | None  # Likewise, of the masked-word head.
    layer_norm_epsilon: float | None  # None: not visible.
    size_per_head: int | None  # D; visible only in the release's own graphs.
    do_lower_case: bool | None  # Visible only in graphs of TensorFlow 1.


def read(folder: str) -> Any:
    """Returns the `MetaGraphDef` of a SavedModel.

    Raises:
        OSError: there is no saved_model.pb.
        ValueError: it is damaged.
    """
    path = os.path.join(folder, MODEL_FILE)
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


def computation(meta_graph: Any) -> Computation:
    """Returns the `Computation` of a `MetaGraphDef`."""
    graph = meta_graph.graph_def
    nodes = list(graph.node)
    for function in graph.library.function:
        nodes += function.node_def
    of_head = [node for node in nodes if _MASKED_WORD_HEAD.search(node.name)]
    of_encoder = [node for node in nodes if not _MASKED_WORD_HEAD.search(node.name)]
    return Computation(
        hidden_act=_activation(of_encoder),
        head_act=_activation(of_head, is_head=True),
        layer_norm_epsilon=_epsilon(of_encoder),
        size_per_head=_size_per_head(nodes),
        do_lower_case=_do_lower_case(meta_graph),
    )


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


def _size_per_head(nodes: Iterable[Any]) -> int | None:
    scale = _constant_named(nodes, _SCALE_NAME)
    return round(scale**-2) if scale else None


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
