"""Reads a TensorFlow 2 object-based checkpoint under the release's names.

The tensors of such a checkpoint are named by paths through Python objects. It also
contains a graph of these objects with each variable's own name, and so do SavedModels.
The graph is only read: none of the objects that it describes is created.
"""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import numpy as np
from google.protobuf import message
from tensorflow.core.protobuf import trackable_object_graph_pb2

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import folder as release_folder
from bert_tf.checkpoints.tf2 import garden_names
from bert_tf.modeling import config as config_module

GRAPH = release_folder.OBJECT_GRAPH
# Name of a variable's tensor in the graph, and the end of its key.
_VALUE = "VARIABLE_VALUE"
_SUFFIX = f"/.ATTRIBUTES/{_VALUE}"
_OPTIMIZER_ROOTS = ("optimizer/", "global_step/", "save_counter/")
DROPOUT_NOTE = (
    "its dropout rates are not recorded; {:g} is assumed in the layers and {:g} in "
    "attention"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variable:
    """One variable of an object checkpoint."""

    key: str  # Name of its tensor in the checkpoint.
    # The variable's own name, then its paths through the objects, shortest first.
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weights:
    """A BERT's weights in an object checkpoint, without values."""

    prefix: str
    keys: dict[str, str]  # Release's name -> tensor in the checkpoint.
    own_names: dict[str, str]  # Release's name -> the variable's own, if it differs.
    shapes: dict[str, tuple[int, ...]]  # Release's name -> shape in its layout.
    transposed: tuple[str, ...]  # Release's names of weights stored as [H, C].
    num_heads: int | None  # None: query kernels are matrices.
    unmapped: tuple[str, ...]  # Names of variables without a place.
    optimizer: tuple[str, ...]  # Tensors of slots, counters and rates.
    notes: tuple[str, ...]

    def read_each(self, wanted: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yields (release's name, float32 array in its layout), one after the other."""
        wanted = list(wanted)
        keys = [self.keys[name] for name in wanted]
        arrays = bundle.read_each(self.prefix, keys)
        for name, (_, array) in zip(wanted, arrays, strict=True):
            array = array.T if name in self.transposed else array
            array = np.reshape(array, self.shapes[name])
            yield name, array.astype("float32", copy=False)


def open_weights(prefix: str) -> Weights:
    """Returns the `Weights` of a BERT in an object checkpoint.

    Raises:
        OSError: there is no such checkpoint.
        ValueError: it is damaged, or has no BERT encoder.
    """
    stored = bundle.read_names_and_shapes(prefix)
    variables, slots = _variables(prefix)
    optimizer = [key for key in stored if key in slots or _is_of_optimizer(key)]
    variables = [one for one in variables if one.key not in set(optimizer)]
    missing = [one.key for one in variables if one.key not in stored]
    if missing:
        raise ValueError(f"{prefix} is damaged: it has no tensor {missing[0]}.")
    named = garden_names.place({one.key: one.names for one in variables})
    garden_names.check(named, {key: tuple(stored[key]) for key in stored}, prefix)
    stored_shapes = {name: tuple(stored[key]) for name, key in named.keys.items()}
    return Weights(
        prefix=prefix,
        keys=named.keys,
        own_names=named.own_names,
        shapes={
            name: garden_names.release_shape(
                name, shape, is_transposed=name in named.transposed
            )
            for name, shape in stored_shapes.items()
        },
        transposed=named.transposed,
        num_heads=garden_names.num_heads(stored_shapes),
        unmapped=named.unmapped,
        optimizer=tuple(key.removesuffix(_SUFFIX) for key in sorted(optimizer)),
        notes=named.notes,
    )


def config_of(
    weights: Weights, *, hidden_act: str, layer_norm_epsilon: float
) -> config_module.BertConfig | None:
    """Returns the `BertConfig` that shapes show; None if they do not show N.

    Args:
        weights: `Weights`.
        hidden_act: the activation, which no shape shows.
        layer_norm_epsilon: likewise.
    """
    if weights.num_heads is None:
        return None
    shapes = weights.shapes
    vocab_size, hidden_size = shapes[checkpoint_names.WORD_EMBEDDINGS]
    return config_module.BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=checkpoint_names.num_layers(shapes),
        num_attention_heads=weights.num_heads,
        intermediate_size=shapes["bert/encoder/layer_0/intermediate/dense/bias"][0],
        hidden_act=hidden_act,
        max_position_embeddings=shapes["bert/embeddings/position_embeddings"][0],
        type_vocab_size=shapes["bert/embeddings/token_type_embeddings"][0],
        layer_norm_epsilon=layer_norm_epsilon,
    )


def dropout_note(config: config_module.BertConfig) -> str:
    """Returns the sentence on dropout rates, which no weight shows."""
    return DROPOUT_NOTE.format(
        config.hidden_dropout_prob, config.attention_probs_dropout_prob
    )


def read_value(prefix: str, path: str) -> Any:
    """Returns the array of the variable at a path from the root, or None."""
    key = f"{path}{_SUFFIX}"
    if key not in bundle.read_names_and_shapes(prefix):
        return None
    return bundle.read(prefix, [key])[key]


def _variables(prefix: str) -> tuple[list[Variable], set[str]]:
    """Returns all `Variable`s, and the keys of the optimizer's slots."""
    graph = _read_graph(prefix)
    paths = _paths(graph)
    variables = []
    for number, node in enumerate(graph.nodes):
        for attribute in node.attributes:
            if attribute.name == _VALUE:
                names = filter(None, (attribute.full_name, *paths.get(number, ())))
                variables.append(
                    Variable(key=attribute.checkpoint_key, names=tuple(names))
                )
    return variables, _slot_keys(graph)


def _read_graph(prefix: str) -> Any:
    content = bundle.read(prefix, [GRAPH])[GRAPH]
    try:
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
            content.item() if isinstance(content, np.ndarray) else content
        )
    except message.DecodeError as error:
        raise ValueError(
            f"{prefix}: its object graph is damaged; copy the checkpoint again."
        ) from error
    last = len(graph.nodes)
    for node in graph.nodes:
        if any(not 0 <= child.node_id < last for child in node.children):
            raise ValueError(
                f"{prefix}: its object graph is damaged (a child does not exist); copy "
                "the checkpoint again."
            )
    return graph


def _slot_keys(graph: Any) -> set[str]:
    numbers = {
        slot.slot_variable_node_id
        for node in graph.nodes
        for slot in node.slot_variables
    }
    return {
        attribute.checkpoint_key
        for number in numbers
        if 0 <= number < len(graph.nodes)
        for attribute in graph.nodes[number].attributes
    }


def _paths(graph: Any) -> dict[int, list[str]]:
    """Returns {node: its paths from the root}: one per parent, the shortest first."""
    shortest = {0: ""}
    paths: dict[int, list[str]] = collections.defaultdict(list)
    waiting = collections.deque(shortest)
    while waiting:
        number = waiting.popleft()
        for child in graph.nodes[number].children:
            path = f"{shortest[number]}{child.local_name}"
            paths[child.node_id].append(path)
            if child.node_id not in shortest:
                shortest[child.node_id] = f"{path}/"
                waiting.append(child.node_id)
    return paths


def _is_of_optimizer(key: str) -> bool:
    return key.startswith(_OPTIMIZER_ROOTS) or "/.OPTIMIZER_SLOT/" in key
