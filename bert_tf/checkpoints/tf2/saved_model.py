"""The format "saved_model": BERT of TF Hub and Kaggle, series 1 to 4, and our own.

A SavedModel is parsed and never loaded: its weights are a checkpoint, their shapes show
the sizes, and its functions show activation and epsilon without being run. So
TensorFlow Text's ops do not have to be registered, and no foreign code is executed.
"""

import dataclasses
import os
from collections.abc import Iterator

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import object_graph
from bert_tf.checkpoints.tf2 import saved_model_graph
from bert_tf.checkpoints.tf2 import saved_model_writing
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

NAME = "saved_model"
_VARIABLES = os.path.join("variables", "variables")
_ASSETS = "assets"
_EXPORT_ASSETS = "assets.extra"  # Of an export that answers texts; see `serving`.
_HIDDEN_ACT = "gelu"
# Prefix of variable names in modules of TensorFlow 1.
_MODULE_SCOPE = "module/"

placement = saved_model_writing.placement
write = saved_model_writing.write
library_outputs = saved_model_writing.library_outputs


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is the folder of a SavedModel."""
    return files.exists(os.path.join(os.fspath(path), saved_model_graph.MODEL_FILE))


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a SavedModel.

    Args:
        path: the folder with saved_model.pb.

    Raises:
        OSError: a file of the SavedModel is missing.
        ValueError: it is damaged, or not a BERT.
    """
    path = os.fspath(path)
    if files.exists(os.path.join(path, _EXPORT_ASSETS, companion_files.TASK_FILE)):
        raise ValueError(
            f"{path} was written by export_saved_model, and no checkpoint can be read "
            "from it; pass the run or the checkpoint that was exported, or query the "
            "export with query_saved_model."
        )
    meta_graph = saved_model_graph.read(path)
    prefix = os.path.join(path, _VARIABLES)
    if not files.exists(f"{prefix}.index"):
        raise ValueError(
            f"{path} is not a BERT: it is a SavedModel without variables, such as a "
            "text preprocessor; pass the SavedModel of the encoder."
        )
    computation = saved_model_graph.computation(meta_graph)
    weights = _weights(prefix)
    assets = os.path.join(path, _ASSETS)
    config = companion_files.read_config(assets)
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
        text=_text(assets, _do_lower_case(prefix, computation)),
        unmapped=weights.unmapped,
        optimizer=weights.optimizer,
        own_names=weights.own_names,
        notes=tuple(notes),
    )


def _weights(prefix: str) -> object_graph.Weights:
    stored = bundle.read_names_and_shapes(prefix)
    if object_graph.GRAPH in stored:
        return object_graph.open_weights(prefix)
    # A module of TensorFlow 1: series 1 and 2 have the release's own names.
    names = {key.removeprefix(_MODULE_SCOPE): key for key in stored}
    if checkpoint_names.WORD_EMBEDDINGS not in names:
        raise ValueError(
            f"{prefix} has no BERT encoder: expected variables such as "
            f"{checkpoint_names.WORD_EMBEDDINGS}, got {min(stored, default='none')}."
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


def _config(
    weights: object_graph.Weights, computation: saved_model_graph.Computation
) -> config_module.BertConfig | None:
    """Returns the `BertConfig` of shapes and functions; None if N is unknown."""
    if weights.num_heads is None and computation.size_per_head:
        hidden_size = weights.shapes[checkpoint_names.WORD_EMBEDDINGS][1]
        num_heads = hidden_size // computation.size_per_head
        weights = dataclasses.replace(weights, num_heads=num_heads)
    epsilon = computation.layer_norm_epsilon
    return object_graph.config_of(
        weights,
        hidden_act=computation.hidden_act or _HIDDEN_ACT,
        layer_norm_epsilon=numerics.LAYER_NORM_EPSILON if epsilon is None else epsilon,
    )


def _notes(
    config: config_module.BertConfig | None, computation: saved_model_graph.Computation
) -> Iterator[str]:
    if config is None:
        yield "the number of its attention heads is unknown; pass --bert_config_file"
        return
    if computation.hidden_act is None:
        yield (
            f"its functions do not show the activation; {_HIDDEN_ACT} is assumed: pass "
            "--bert_config_file if that is wrong"
        )
    elif computation.head_act not in (None, computation.hidden_act):
        yield (
            f"its masked-word head computes {computation.head_act}, its encoder "
            f"{computation.hidden_act}; a configuration has one activation, the "
            "encoder's"
        )
    if computation.layer_norm_epsilon is None:
        yield (
            "its functions do not show layer_norm_epsilon; "
            f"{config.layer_norm_epsilon:g} is assumed"
        )
    yield object_graph.dropout_note(config)


def _head(
    assets: str, shapes: dict[str, checkpoint_names.Shape]
) -> checkpoint_heads.Head:
    path = os.path.join(assets, saved_model_writing.HEAD_FILE)
    if not files.exists(path):
        return checkpoint_heads.head_of(shapes)
    values = files.read_json(path)
    try:
        return checkpoint_heads.head_of(
            shapes,
            kind=values["kind"],
            labels=values["labels"],
            label_kind=values.get("label_kind", checkpoint_heads.SINGLE_LABEL),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} does not describe a head: {error}.") from error


def _text(assets: str, do_lower_case: bool | None) -> text_encoding.TextEncoding:
    path = os.path.join(assets, saved_model_writing.TEXT_FILE)
    values = files.read_json(path) if files.exists(path) else {}
    return text_encoding.TextEncoding.from_dict(
        {"do_lower_case": do_lower_case} | values,
        path=path,
        vocabulary=companion_files.read_vocabulary(assets),
    )


def _do_lower_case(
    prefix: str, computation: saved_model_graph.Computation
) -> bool | None:
    if computation.do_lower_case is not None:
        return computation.do_lower_case
    value = object_graph.read_value(prefix, "do_lower_case")
    return None if value is None else bool(value)
