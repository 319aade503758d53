"""The format "saved_model": BERT of TF Hub and Kaggle, series 1 to 4, and our own.

A SavedModel is read, not loaded: its weights are a checkpoint, its sizes are in their
shapes, its activation and epsilon in its functions, which are looked at and never run.
So no op of TensorFlow Text has to be registered, and nothing foreign is executed.
`saved_model_writing` writes them.
"""

import dataclasses
import json
import os

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import object_graph
from bert_tf.checkpoints.tf2 import saved_model_graph
from bert_tf.checkpoints.tf2 import saved_model_writing
from bert_tf.modeling import numerics

NAME = "saved_model"
_VARIABLES = os.path.join("variables", "variables")
_ASSETS = "assets"
_HIDDEN_ACT = "gelu"
# Before the names of a module's variables, in modules of TensorFlow 1.
_MODULE_SCOPE = "module/"
_WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"

placement = saved_model_writing.placement
write = saved_model_writing.write
library_outputs = saved_model_writing.library_outputs


def is_at(path):
    """Returns whether a path is that of a SavedModel's folder."""
    return files.exists(os.path.join(os.fspath(path), saved_model_graph.MODEL_FILE))


def open_source(path):
    """Returns the `Source` of a SavedModel.

    Args:
        path: the folder with saved_model.pb.

    Raises:
        OSError: a file of it is missing.
        ValueError: it is damaged, or holds no BERT.
    """
    path = os.fspath(path)
    meta_graph = saved_model_graph.read(path)
    prefix = os.path.join(path, _VARIABLES)
    if not files.exists(f"{prefix}.index"):
        raise ValueError(
            f"{path} is no BERT: it is a SavedModel without variables, such as one "
            "that prepares text; give that of the encoder."
        )
    computation = saved_model_graph.computation(meta_graph)
    weights = _weights(prefix)
    assets = os.path.join(path, _ASSETS)
    config = object_graph.config_beside(assets)
    notes = list(weights.notes)
    if config is None:
        config = _config(weights, computation)
        notes += _notes(config, computation)
    return source_module.Source(
        path=path,
        format=NAME,
        shapes=weights.shapes,
        read_each=weights.read_each,
        head=_head(assets, weights.shapes),
        config=config,
        vocabulary=object_graph.vocabulary_beside(assets),
        do_lower_case=_do_lower_case(prefix, computation),
        unmapped=weights.unmapped,
        optimizer=weights.optimizer,
        own_names=weights.own_names,
        notes=tuple(notes),
    )


def _weights(prefix):
    stored = bundle.read_names_and_shapes(prefix)
    if object_graph.GRAPH in stored:
        return object_graph.open_weights(prefix)
    # A module of TensorFlow 1: series 1 and 2 have the release's own names.
    names = {key.removeprefix(_MODULE_SCOPE): key for key in stored}
    if _WORD_EMBEDDINGS not in names:
        raise ValueError(
            f"{prefix} holds no BERT encoder: expected variables such as "
            f"{_WORD_EMBEDDINGS}, got {min(stored, default='none')}."
        )
    return object_graph.Weights(
        prefix=prefix,
        keys=names,
        own_names={name: key for name, key in names.items() if name != key},
        shapes={name: tuple(stored[key]) for name, key in names.items()},
        transposed=(),
        num_heads=None,
        unmapped=(),
        optimizer=(),
        notes=(),
    )


def _config(weights, computation):
    """Returns the `BertConfig` of shapes and functions, or None without N."""
    if weights.num_heads is None and computation.size_per_head:
        hidden_size = weights.shapes[_WORD_EMBEDDINGS][1]
        num_heads = hidden_size // computation.size_per_head
        weights = dataclasses.replace(weights, num_heads=num_heads)
    epsilon = computation.layer_norm_epsilon
    return object_graph.config_of(
        weights,
        hidden_act=computation.hidden_act or _HIDDEN_ACT,
        layer_norm_epsilon=numerics.LAYER_NORM_EPSILON if epsilon is None else epsilon,
    )


def _notes(config, computation):
    if config is None:
        yield (
            "the number of its attention heads is not to be seen; give "
            "--bert_config_file"
        )
        return
    if computation.hidden_act is None:
        yield (
            f"its functions do not show the activation; taken as {_HIDDEN_ACT}: give "
            "--bert_config_file where that is wrong"
        )
    elif computation.head_act not in (None, computation.hidden_act):
        yield (
            f"its masked-word head computes {computation.head_act}, its encoder "
            f"{computation.hidden_act}; a configuration has one activation, the "
            "encoder's"
        )
    if computation.layer_norm_epsilon is None:
        yield f"layer_norm_epsilon is not to be seen; {config.layer_norm_epsilon:g}"
    yield object_graph.dropout_note(config)


def _head(assets, shapes):
    path = os.path.join(assets, saved_model_writing.HEAD_FILE)
    if not files.exists(path):
        return checkpoint_heads.head_of(shapes)
    with files.open_file(path) as file:
        try:
            values = json.load(file)
            return checkpoint_heads.head_of(
                shapes,
                kind=values["kind"],
                labels=values["labels"],
                label_kind=values.get("label_kind", checkpoint_heads.LABEL_KINDS[0]),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} does not describe its head: {error}.") from error


def _do_lower_case(prefix, computation):
    if computation.do_lower_case is not None:
        return computation.do_lower_case
    value = object_graph.read_value(prefix, "do_lower_case")
    return None if value is None else bool(value)
