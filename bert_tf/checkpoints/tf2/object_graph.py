"""The weights of a TensorFlow 2 object checkpoint, by the release's names.

Such a checkpoint's tensors have the names of a path through Python objects; a graph of
the objects is in it as well, with each variable's own name. SavedModels have one, too.
Nothing of what the graph describes is made or run.
"""

import collections
import dataclasses
import os

import numpy as np
from google.protobuf import message
from tensorflow.core.protobuf import trackable_object_graph_pb2

from bert_tf import files
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import garden_names
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# What a variable's tensor is called in the graph, and at the end of its key.
_VALUE = "VARIABLE_VALUE"
_SUFFIX = f"/.ATTRIBUTES/{_VALUE}"
_OPTIMIZER_ROOTS = ("optimizer/", "global_step/", "save_counter/")
DROPOUT_NOTE = (
    "its dropout rates are not recorded; taken as {:g} in the layers and {:g} in the "
    "attention"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variable:
    """One variable of an object checkpoint."""

    key: str  # Its tensor in the checkpoint.
    # The variable's own name, then its paths through the objects; best first.
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weights:
    """A BERT's weights in an object checkpoint; no values."""

    prefix: str  # The checkpoint.
    keys: dict[str, str]  # Release's name -> tensor in the checkpoint.
    own_names: dict[str, str]  # Release's name -> the variable's own, if another.
    shapes: dict[str, tuple[int, ...]]  # Release's name -> shape in its layout.
    transposed: tuple[str, ...]  # Release's names of those stored as [H, C].
    num_heads: int | None  # None where query kernels are matrices.
    unmapped: tuple[str, ...]  # Names of variables without a place.
    optimizer: tuple[str, ...]  # Tensors of slots, counters and rates.
    notes: tuple[str, ...]  # What a reader should know.

    def read_each(self, wanted):
        """Yields (release's name, float32 array in its layout), one in memory."""
        wanted = list(wanted)
        keys = [self.keys[name] for name in wanted]
        arrays = bundle.read_each(self.prefix, keys)
        for name, (_, array) in zip(wanted, arrays, strict=True):
            array = array.T if name in self.transposed else array
            array = np.reshape(array, self.shapes[name])
            yield name, array.astype("float32", copy=False)


def open_weights(prefix) -> Weights:
    """Returns the `Weights` of a BERT in an object checkpoint.

    Raises:
        OSError: there is no such checkpoint.
        ValueError: it is damaged, or holds no BERT encoder.
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


def config_of(weights, *, hidden_act, layer_norm_epsilon):
    """Returns the `BertConfig` that shapes show, or None where they leave out N.

    Args:
        weights: `Weights`.
        hidden_act: as in a `BertConfig`.
        layer_norm_epsilon: float.
    """
    if weights.num_heads is None:
        return None
    shapes = weights.shapes
    vocab_size, hidden_size = shapes["bert/embeddings/word_embeddings"]
    return config_module.BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=garden_names.num_layers(shapes),
        num_attention_heads=weights.num_heads,
        intermediate_size=shapes["bert/encoder/layer_0/intermediate/dense/bias"][0],
        hidden_act=hidden_act,
        max_position_embeddings=shapes["bert/embeddings/position_embeddings"][0],
        type_vocab_size=shapes["bert/embeddings/token_type_embeddings"][0],
        layer_norm_epsilon=layer_norm_epsilon,
    )


def config_beside(folder):
    """Returns the `BertConfig` of a folder's bert_config.json, or None."""
    path = os.path.join(folder, "bert_config.json")
    if not files.exists(path):
        return None
    return config_module.BertConfig.from_json_file(path)


def vocabulary_beside(folder):
    """Returns the `Vocabulary` of a folder's vocab.txt, or None."""
    path = os.path.join(folder, "vocab.txt")
    return vocabulary_module.Vocabulary.load(path) if files.exists(path) else None


def dropout_note(config):
    """Returns the sentence on dropout rates that no weight shows."""
    return DROPOUT_NOTE.format(
        config.hidden_dropout_prob, config.attention_probs_dropout_prob
    )


def read_value(prefix, path):
    """Returns the array of the variable at a path from the root, or None."""
    key = f"{path}{_SUFFIX}"
    if key not in bundle.read_names_and_shapes(prefix):
        return None
    return bundle.read(prefix, [key])[key]


def _variables(prefix):
    """Returns all `Variable`s, and the keys of those that are an optimizer's slots."""
    graph = _read_graph(prefix)
    paths = _paths(graph)
    variables = []
    for number, node in enumerate(graph.nodes):
        for attribute in node.attributes:
            if attribute.name == _VALUE:
                names = (attribute.full_name, *paths.get(number, ()))
                variables.append(
                    Variable(key=attribute.checkpoint_key, names=_known(names))
                )
    return variables, _slot_keys(graph)


def _read_graph(prefix):
    content = bundle.read(prefix, [GRAPH])[GRAPH]
    try:
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
            content.item() if isinstance(content, np.ndarray) else content
        )
    except message.DecodeError as error:
        raise ValueError(
            f"{prefix}: its graph of objects is damaged; copy the checkpoint again."
        ) from error
    last = len(graph.nodes)
    for node in graph.nodes:
        if any(not 0 <= child.node_id < last for child in node.children):
            raise ValueError(
                f"{prefix}: its graph of objects names none that is there."
            )
    return graph


def _slot_keys(graph):
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


def _paths(graph):
    """Returns {node: its paths from the root}: one a parent, the shortest first."""
    shortest = {0: ""}
    paths = collections.defaultdict(list)
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


def _known(names):
    return tuple(name for name in names if name)


def _is_of_optimizer(key):
    return key.startswith(_OPTIMIZER_ROOTS) or "/.OPTIMIZER_SLOT/" in key
