"""The format "model_garden": object-based checkpoints of tf-models-official. Read only.

The tensors of such a checkpoint are named by paths through Python objects. It also
contains a graph of these objects with each variable's own name, and so do SavedModels.
The graph is only read: none of the objects that it describes is created.

There is no configuration. Shapes show all sizes, because query kernels are [H, N, D];
activation, epsilon and dropout come from a `bert_config.json` beside the weights, or
are assumed.
"""

import dataclasses
import os
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import numpy as np
from google.protobuf import message
from tensorflow.core.protobuf import trackable_object_graph_pb2

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import release
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import garden_names
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

GRAPH = release.OBJECT_GRAPH
# Name of a variable's tensor in the graph, and the end of its key.
_VALUE = "VARIABLE_VALUE"
_SUFFIX = f"/.ATTRIBUTES/{_VALUE}"
# The tensor of a SavedModel that says whether text is lowercased.
CASING = f"do_lower_case{_SUFFIX}"
_OPTIMIZER_ROOTS = ("optimizer/", "global_step/", "save_counter/")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weights:
    """A BERT's weights in a checkpoint, without values."""

    prefix: str
    named: garden_names.Named
    shapes: dict[str, tuple[int, ...]]  # Release's name -> shape in its layout.
    num_heads: int | None = None  # None: query kernels are matrices.
    optimizer: tuple[str, ...] = ()  # Tensors of slots, counters and rates.

    def read_each(self, wanted: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yields (release's name, float32 array in its layout), one after the other."""
        wanted = list(wanted)
        arrays = bundle.read_each(self.prefix, [self.named.keys[n] for n in wanted])
        for name, (_, array) in zip(wanted, arrays, strict=True):
            array = array.T if name in self.named.transposed else array
            yield name, np.reshape(array, self.shapes[name]).astype("float32")

    def source(self, *, notes: Iterable[str], **fields: Any) -> source_module.Source:
        """Returns the `Source` with these weights and some other fields."""
        return source_module.Source(
            shapes=self.shapes,
            read_each=self.read_each,
            head=checkpoint_heads.head_of(self.shapes),
            unmapped=self.named.unmapped,
            optimizer=self.optimizer,
            own_names=self.named.own_names,
            notes=(*self.named.notes, *notes),
            **fields,
        )


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is an object-based checkpoint or the folder of one."""
    try:
        return GRAPH in bundle.read_names_and_shapes(os.fspath(path))
    except (OSError, ValueError):
        return False


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a prefix, or of a folder's latest checkpoint."""
    prefix = bundle.resolve(os.fspath(path))
    if GRAPH not in bundle.read_names_and_shapes(prefix):
        raise ValueError(
            f"{prefix} is not an object-based checkpoint of TensorFlow 2: it has no "
            "object graph; a checkpoint of 2018 has the format bert."
        )
    weights = open_weights(prefix)
    folder = os.path.dirname(prefix) or "."
    notes: list[str] = []
    config = companion_files.read_config(folder)
    if config is None:
        config, notes = infer_config(weights)
    vocabulary = companion_files.read_vocabulary(folder)
    return weights.source(
        path=prefix,
        format="model_garden",
        config=config,
        text=text_encoding.TextEncoding(vocabulary=vocabulary),
        notes=notes,
    )


def open_weights(prefix: str) -> Weights:
    """Returns the `Weights` of a BERT in an object checkpoint."""
    stored = bundle.read_names_and_shapes(prefix)
    graph = _read_graph(prefix)
    slots = _slot_keys(graph)
    optimizer = {key for key in stored if key in slots or _is_of_optimizer(key)}
    variables = {k: n for k, n in _variables(graph).items() if k not in optimizer}
    missing = [key for key in variables if key not in stored]
    if missing:
        raise ValueError(f"{prefix} is damaged: it has no tensor {missing[0]}.")
    named = garden_names.place(variables)
    shapes = {name: tuple(stored[key]) for name, key in named.keys.items()}
    garden_names.check(named, shapes, prefix)
    query = shapes["bert/encoder/layer_0/attention/self/query/kernel"]
    return Weights(
        prefix=prefix,
        named=named,
        shapes={
            name: garden_names.release_shape(
                name, shape, is_transposed=name in named.transposed
            )
            for name, shape in shapes.items()
        },
        num_heads=query[1] if len(query) == 3 else None,  # [H, N, D]
        optimizer=tuple(key.removesuffix(_SUFFIX) for key in sorted(optimizer)),
    )


def infer_config(
    weights: Weights,
    *,
    num_heads: int | None = None,
    hidden_act: str | None = None,
    layer_norm_epsilon: float | None = None,
) -> tuple[config_module.BertConfig | None, list[str]]:
    """Returns the `BertConfig` that shapes show, and notes about what was assumed.

    Args:
        weights: `Weights`.
        num_heads: N, if it is known and shapes do not show it. Without it, there is no
            configuration.
        hidden_act: the activation, which no shape shows; None: unknown.
        layer_norm_epsilon: likewise.
    """
    num_heads = weights.num_heads or num_heads
    if num_heads is None:
        return None, ["the number of heads is unknown; pass --bert_config_file"]
    shapes = weights.shapes
    vocab_size, hidden_size = shapes[checkpoint_names.WORD_EMBEDDINGS]
    config = config_module.BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=checkpoint_names.num_layers(shapes),
        num_attention_heads=num_heads,
        intermediate_size=shapes["bert/encoder/layer_0/intermediate/dense/bias"][0],
        hidden_act=hidden_act or "gelu",
        max_position_embeddings=shapes["bert/embeddings/position_embeddings"][0],
        type_vocab_size=shapes["bert/embeddings/token_type_embeddings"][0],
        layer_norm_epsilon=layer_norm_epsilon or numerics.LAYER_NORM_EPSILON,
    )
    unknown = ["hidden_dropout_prob", "attention_probs_dropout_prob"]
    if layer_norm_epsilon is None:
        unknown.insert(0, "layer_norm_epsilon")
    if hidden_act is None:
        unknown.insert(0, "hidden_act")
    assumed = ", ".join(f"{name} {getattr(config, name)}" for name in unknown)
    return config, [
        f"it does not record {assumed}, which are assumed; pass --bert_config_file if "
        "that is wrong"
    ]


def _variables(graph: Any) -> dict[str, str]:
    """Returns {tensor: the variable's own name}."""
    return {
        attribute.checkpoint_key: attribute.full_name or attribute.checkpoint_key
        for node in graph.nodes
        for attribute in node.attributes
        if attribute.name == _VALUE and attribute.checkpoint_key != CASING
    }


def _read_graph(prefix: str) -> Any:
    content = bundle.read(prefix, [GRAPH])[GRAPH]
    try:
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
            content.item() if isinstance(content, np.ndarray) else content
        )
        for node in graph.nodes:
            for child in node.children:
                graph.nodes[child.node_id]
    except (message.DecodeError, IndexError) as error:
        raise ValueError(
            f"{prefix}: its object graph is damaged; copy the checkpoint again."
        ) from error
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


def _is_of_optimizer(key: str) -> bool:
    return key.startswith(_OPTIMIZER_ROOTS) or "/.OPTIMIZER_SLOT/" in key
