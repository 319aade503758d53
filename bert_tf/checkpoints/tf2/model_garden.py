"""The format "model_garden": object-based checkpoints of tf-models-official. Read only.

The tensors of such a checkpoint are named by paths through Python objects. It also
contains a graph of these objects with each variable's own name, and so do SavedModels.
The graph is only read: none of the objects that it describes is created.

There is no configuration. Shapes show all sizes, because query kernels are [H, N, D];
activation, epsilon and dropout come from a `bert_config.json` beside the weights, or
are assumed.

Shape letters: H hidden, N heads, D = H / N, C classes.
"""

import dataclasses
import math
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

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
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

GRAPH = release.OBJECT_GRAPH
# Name of a variable's tensor in the graph, and the end of its key.
_VALUE = "VARIABLE_VALUE"
_SUFFIX = f"/.ATTRIBUTES/{_VALUE}"
# Start of the release's names in modules of TensorFlow 1.
_MODULE_SCOPE = "module/"
# The tensor of a SavedModel that says whether text is lowercased.
CASING = f"do_lower_case{_SUFFIX}"
# The beginnings of the keys of counters and rates, and a part of those of slots.
_OF_OPTIMIZER = re.compile(
    r"(optimizer|global_step|save_counter)/|.*/\.OPTIMIZER_SLOT/"
)

_LAYER = r"bert/encoder/layer_\1"
_BLOCK = r"(?:transformer|encoder)/layer_(\d+)"
# Release's name -> the variable's names in all versions of the Model Garden.
_PLACES = {
    "bert/embeddings/word_embeddings": (
        r"word_embeddings/embeddings|masked_lm/embedding_table"
    ),
    "bert/embeddings/position_embeddings": (
        r"position_embedding/embeddings|embedding_postprocessor/position_embeddings"
    ),
    "bert/embeddings/token_type_embeddings": (
        r"type_embeddings/embeddings|embedding_postprocessor/type_embeddings"
    ),
    r"bert/embeddings/LayerNorm/\1": (
        r"(?:embeddings|embedding_postprocessor)/layer_norm/(gamma|beta)"
    ),
    r"bert/pooler/dense/\1": r"pooler_transform/(kernel|bias)",
    r"cls/predictions/transform/dense/\1": (
        r"(?:cls/predictions/transform|masked_lm)/dense/(kernel|bias)"
    ),
    r"cls/predictions/transform/LayerNorm/\1": (
        r"(?:cls/predictions/transform/LayerNorm|masked_lm/layer_norm)/(gamma|beta)"
    ),
    "cls/predictions/output_bias": r"(?:cls/predictions|masked_lm)/output_bias/bias",
    "cls/seq_relationship/output_weights": r"next_sentence/logits/kernel",
    "cls/seq_relationship/output_bias": r"next_sentence/logits/bias",
    "output_weights": r"sentence_prediction/logits/kernel",
    "output_bias": r"sentence_prediction/logits/bias",
    rf"{_LAYER}/attention/self/\2/\3": (
        rf"{_BLOCK}/self_attention/(query|key|value)/(kernel|bias)"
    ),
    rf"{_LAYER}/attention/output/dense/\2": (
        rf"{_BLOCK}/self_attention(?:/attention)?_output/(kernel|bias)"
    ),
    rf"{_LAYER}/attention/output/LayerNorm/\2": (
        rf"{_BLOCK}/self_attention_layer_norm/(gamma|beta)"
    ),
    rf"{_LAYER}/intermediate/dense/\2": rf"{_BLOCK}/intermediate/(kernel|bias)",
    rf"{_LAYER}/output/dense/\2": rf"{_BLOCK}/output/(kernel|bias)",
    rf"{_LAYER}/output/LayerNorm/\2": rf"{_BLOCK}/output_layer_norm/(gamma|beta)",
}
_PATTERNS = {
    re.compile(rf"(?:^|/)(?:{pattern})$"): template
    for template, pattern in _PLACES.items()
}
# The pooler of a head that was trained with its own, beside the encoder's.
_HEAD_POOLER = re.compile(
    r"(?:^|/)(?:next_sentence|sentence_prediction)/pooler_dense/(kernel|bias)$"
)
_HEAD_POOLER_NOTE = (
    "its head has its own pooler, which replaces the encoder's, because the encoder's "
    "was never trained"
)
# Kernels [H, C] of dense layers; [C, H] in the release.
_TRANSPOSED = ("cls/seq_relationship/output_weights", "output_weights")
# Part of a variable's name -> the network with such a variable.
_OTHER_NETWORKS = {
    "embedding_projection": "ALBERT, or another network with factorized embeddings",
    "bottleneck": "MobileBERT",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placed:
    """Where a checkpoint stores the weights of BERT."""

    keys: dict[str, str]  # Release's name -> tensor in the checkpoint.
    unmapped: tuple[str, ...] = ()  # Names of variables without a place.
    transposed: tuple[str, ...] = ()  # Release's names of weights stored as [H, C].
    notes: tuple[str, ...] = ()


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is an object-based checkpoint or the folder of one."""
    try:
        return GRAPH in bundle.read_names_and_shapes(os.fspath(path))
    except (OSError, ValueError):
        return False


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a prefix, or of a folder's latest checkpoint."""
    prefix = bundle.resolve(os.fspath(path))
    source, num_heads = open_weights(prefix)
    folder = os.path.dirname(prefix) or "."
    notes: list[str] = []
    config = companion_files.read_config(folder)
    if config is None:
        config, notes = infer_config(source.shapes, num_heads)
    text = text_encoding.TextEncoding(
        vocabulary=companion_files.read_vocabulary(folder)
    )
    return dataclasses.replace(
        source, config=config, text=text, notes=(*source.notes, *notes)
    )


def open_weights(prefix: str) -> tuple[source_module.Source, int | None]:
    """Returns the `Source` of the weights alone, and the number of heads.

    The number of heads is None if query kernels are matrices.

    Args:
        prefix: of an object checkpoint, or of the variables of a SavedModel.
    """
    stored = bundle.read_names_and_shapes(prefix)
    if GRAPH in stored:
        names, slots = _read_graph(prefix)
    else:  # Of TensorFlow 1, where a tensor has its variable's name.
        names, slots = {key: key for key in stored}, set()
    optimizer = {key for key in stored if key in slots or _OF_OPTIMIZER.match(key)}
    variables = {key: name for key, name in names.items() if key not in optimizer}
    missing = [key for key in variables if key not in stored]
    if missing:
        raise ValueError(f"{prefix} is damaged: it has no tensor {missing[0]}.")
    placed = place(variables)
    own_shapes = {name: tuple(stored[key]) for name, key in placed.keys.items()}
    _check(prefix, own_shapes, placed)
    shapes = {
        name: _release_shape(name, shape, name in placed.transposed)
        for name, shape in own_shapes.items()
    }

    def read_each(wanted: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        wanted = list(wanted)
        arrays = bundle.read_each(prefix, [placed.keys[name] for name in wanted])
        for name, (_, array) in zip(wanted, arrays, strict=True):
            array = array.T if name in placed.transposed else array
            yield name, np.reshape(array, shapes[name]).astype("float32")

    query = own_shapes["bert/encoder/layer_0/attention/self/query/kernel"]
    num_heads = query[1] if len(query) == 3 else None  # [H, N, D]
    source = source_module.Source(
        path=prefix,
        format="model_garden",
        shapes=shapes,
        read_each=read_each,
        head=checkpoint_heads.head_of(shapes),
        unmapped=placed.unmapped,
        optimizer=tuple(key.removesuffix(_SUFFIX) for key in sorted(optimizer)),
        notes=placed.notes,
    )
    return source, num_heads


def infer_config(
    shapes: Mapping[str, Sequence[int]],
    num_heads: int | None,
    *,
    hidden_act: str | None = None,
    layer_norm_epsilon: float | None = None,
) -> tuple[config_module.BertConfig | None, list[str]]:
    """Returns the `BertConfig` that shapes show, and notes about what was assumed.

    Args:
        shapes: {release's name: shape in its layout}.
        num_heads: N; None: unknown. Without it, there is no configuration.
        hidden_act: the activation, which no shape shows; None: unknown.
        layer_norm_epsilon: likewise.
    """
    if num_heads is None:
        return None, ["the number of heads is unknown; pass --bert_config_file"]
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
    stated = {"hidden_act": hidden_act, "layer_norm_epsilon": layer_norm_epsilon}
    unknown = [name for name, value in stated.items() if value is None]
    unknown += ["hidden_dropout_prob", "attention_probs_dropout_prob"]
    assumed = ", ".join(f"{name} {getattr(config, name)}" for name in unknown)
    return config, [
        f"it does not record {assumed}, which are assumed; pass --bert_config_file if "
        "that is wrong"
    ]


def place(variables: Mapping[str, str]) -> Placed:
    """Assigns variables to the release's names.

    Args:
        variables: {tensor in the checkpoint: name of the variable}.
    """
    released = {n.removeprefix(_MODULE_SCOPE): key for key, n in variables.items()}
    if checkpoint_names.WORD_EMBEDDINGS in released:
        return Placed(keys=released)
    keys: dict[str, str] = {}
    head_pooler, unmapped = {}, []
    for key, own_name in sorted(variables.items()):
        matches = ((p.search(own_name), to) for p, to in _PATTERNS.items())
        name = next((match.expand(to) for match, to in matches if match), None)
        if pooler := _HEAD_POOLER.search(own_name):
            head_pooler[f"{checkpoint_names.POOLER}dense/{pooler[1]}"] = key
        elif name is None:
            unmapped.append(own_name)
        elif name in keys:
            raise ValueError(
                f"Two variables are {name}: {keys[name]} and {key}; expected one "
                "encoder. Save the encoder alone."
            )
        else:
            keys[name] = key
    unmapped += [variables[keys[name]] for name in head_pooler if name in keys]
    keys |= head_pooler
    return Placed(
        keys=keys,
        unmapped=tuple(sorted(unmapped)),
        transposed=tuple(name for name in _TRANSPOSED if name in keys),
        notes=(_HEAD_POOLER_NOTE,) if head_pooler else (),
    )


def _check(path: str, stored: Mapping[str, Sequence[int]], placed: Placed) -> None:
    """Raises a ValueError unless there is a complete encoder with consistent shapes."""
    names = (*placed.keys.values(), *placed.unmapped)
    for part, network in _OTHER_NETWORKS.items():
        if any(part in name for name in names):
            raise ValueError(f"{path} is not a BERT: it is {network}.")
    # A checkpoint without any layer lacks the first one; the pooler may be missing.
    expected = checkpoint_names.encoder_names(
        max(1, checkpoint_names.num_layers(stored))
    )
    missing = [
        name for name in checkpoint_names.without_pooler(expected) if name not in stored
    ]
    if missing:
        example = min(placed.unmapped, default=min(stored, default="no variable"))
        raise ValueError(
            f"{path} has no complete BERT encoder: {missing[0]} is missing (it has, "
            f"for example, {example}); expected a BERT of the Model Garden or TF Hub."
        )
    hidden_size = stored[checkpoint_names.WORD_EMBEDDINGS][-1]
    for name, shape in stored.items():
        if name.endswith("query/kernel") and shape[0] != hidden_size:
            raise ValueError(
                f"{path} is not a BERT: {name} has shape {list(shape)}, but its word "
                f"embeddings have {hidden_size} columns."
            )


def _release_shape(
    name: str, stored_shape: Sequence[int], is_transposed: bool
) -> tuple[int, ...]:
    """Returns the shape of a stored weight in the release's layout."""
    if is_transposed:
        return tuple(reversed(stored_shape))
    if name.endswith("/attention/output/dense/kernel"):  # [N, D, H]
        return (math.prod(stored_shape[:-1]), stored_shape[-1])
    if "/attention/self/" not in name:
        return tuple(stored_shape)
    rows = stored_shape[:1] if name.endswith("/kernel") else ()  # [H, N, D] or [N, D]
    return (*rows, math.prod(stored_shape[len(rows) :]))


def _read_graph(prefix: str) -> tuple[dict[str, str], set[str]]:
    """Returns {tensor: the variable's own name}, and the tensors of slots."""
    content = bundle.read(prefix, [GRAPH])[GRAPH]
    try:
        nodes = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
            content.item() if isinstance(content, np.ndarray) else content
        ).nodes
        for node in nodes:
            for child in node.children:
                nodes[child.node_id]
        slots = [
            nodes[slot.slot_variable_node_id]
            for node in nodes
            for slot in node.slot_variables
            if 0 <= slot.slot_variable_node_id < len(nodes)
        ]
    except (message.DecodeError, IndexError) as error:
        raise ValueError(
            f"{prefix}: its object graph is damaged; copy the checkpoint again."
        ) from error
    names = {
        attribute.checkpoint_key: attribute.full_name or attribute.checkpoint_key
        for node in nodes
        for attribute in node.attributes
        if attribute.name == _VALUE and attribute.checkpoint_key != CASING
    }
    return names, {part.checkpoint_key for slot in slots for part in slot.attributes}
