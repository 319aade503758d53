"""The format "bert": a checkpoint of the release with its files, opened and written.

A released model is a folder with `bert_model.ckpt.*`, `bert_config.json` and
`vocab.txt`. A run folder has a `task.json` besides, which says what no name in the
checkpoint does: casing, kind of head, names of classes.
"""

import dataclasses
import json
import os

import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import state_file
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

NAME = "bert"
CONFIG_FILE = "bert_config.json"
VOCAB_FILE = "vocab.txt"
TASK_FILE = "task.json"
# The prefix of the checkpoint in every released folder.
PREFIX = "bert_model.ckpt"
# In the task.json of a retrieval run: its head gives a pair of texts a number.
_CROSS_ENCODER = "cross_encoder"
# In a TF2 object checkpoint, whose tensors are not named as in 2018.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def is_at(path):
    """Returns whether a path is that of a checkpoint by names, or of one's folder."""
    path = os.fspath(path)
    try:
        prefix = bundle.resolve(path)
        return _OBJECT_GRAPH not in bundle.read_names_and_shapes(prefix)
    except (OSError, ValueError):
        return _is_meant(path)


def open_source(path):
    """Returns the `Source` of a checkpoint, with what lies beside it.

    Args:
        path: a prefix such as "uncased_L-12_H-768_A-12/bert_model.ckpt", or a folder:
            that of a run, whose latest checkpoint is taken, or a released one.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: it, or a file beside it, cannot be understood.
    """
    prefix = bundle.resolve(path)
    found = bundle.read_names_and_shapes(prefix)
    if _OBJECT_GRAPH in found:
        raise ValueError(
            f"{prefix} is an object-based checkpoint of TensorFlow 2, whose tensors "
            "are not named as in 2018; expected one of the release's format."
        )
    shapes = {
        name: tuple(found[name])
        for name in sorted(found)
        if not checkpoint_names.is_of_optimizer(name)
    }
    folder = os.path.dirname(prefix) or "."
    task = _read_task(os.path.join(folder, TASK_FILE))
    return source_module.Source(
        path=prefix,
        format=NAME,
        shapes=shapes,
        read_each=lambda wanted: _read_each(prefix, wanted),
        head=_head(shapes, task),
        config=_beside(folder, CONFIG_FILE, config_module.BertConfig.from_json_file),
        vocabulary=_beside(folder, VOCAB_FILE, vocabulary_module.Vocabulary.load),
        do_lower_case=_do_lower_case(prefix, task),
        pooling=task.get("pooling"),
        optimizer=tuple(sorted(set(found) - set(shapes))),
    )


def placement(source):
    """Returns the `Placement` of a `Source`: every weight keeps its name."""
    return source_module.Placement(places={name: name for name in source.shapes})


def write(source, folder, *, name=PREFIX):
    """Writes a checkpoint and its files into a folder, as the released zips have them.

    Where casing or head are known there is a `task.json` too. The whole checkpoint is
    in memory at once: so `SaveV2` takes it.

    Args:
        source: `Source`.
        folder: an empty folder.
        name: of the checkpoint in it.

    Raises:
        OSError: it cannot be written.
        ValueError: the source cannot be read.
    """
    tensors = {
        tensor_name: tf.constant(array)
        for tensor_name, array in source.read_each(source.shapes)
    }
    if source.config is not None:
        with files.complete_or_absent(os.path.join(folder, CONFIG_FILE)) as file:
            file.write(source.config.to_json_string())
    if source.vocabulary is not None:
        source.vocabulary.save(os.path.join(folder, VOCAB_FILE))
    task = {"task": source.head.kind, "do_lower_case": source.do_lower_case}
    if source.head.labels is not None:
        task["labels"] = list(source.head.labels)
    if source.head.label_kind != checkpoint_heads.LABEL_KINDS[0]:
        task["label_kind"] = source.head.label_kind
    if source.pooling is not None:
        task["pooling"] = source.pooling
    with files.complete_or_absent(os.path.join(folder, TASK_FILE)) as file:
        file.write(json.dumps(task, indent=2, ensure_ascii=False) + "\n")
    bundle.save(os.path.join(folder, name), tensors)


def _is_meant(path):
    """Returns whether a path looks like a checkpoint that cannot be read."""
    if files.is_folder(path):
        folder_files = files.list_folder(path)
        return state_file.NAME in folder_files or bool(bundle.prefixes_in(path))
    if bundle.is_part(path):
        return True
    return files.exists(f"{path}.index") or bool(state_file.data_files(path))


def _read_each(prefix, wanted):
    for name, tensor in bundle.read_each(prefix, wanted):
        yield name, tensor.astype("float32", copy=False)


def _beside(folder, name, load):
    path = os.path.join(folder, name)
    return load(path) if files.exists(path) else None


def _read_task(path):
    """Returns what a task.json says, or an empty dict where there is none."""
    if not files.exists(path):
        return {}
    with files.open_file(path) as file:
        try:
            task = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not JSON: {error}.") from None
    if not isinstance(task, dict):
        raise ValueError(f"{path} holds no JSON object; remove or correct it.")
    return task


def _head(shapes, task):
    head = checkpoint_heads.head_of(shapes)
    kind, labels = task.get("task"), task.get("labels")
    label_kind = task.get("label_kind", checkpoint_heads.LABEL_KINDS[0])
    if task.get("model") == _CROSS_ENCODER:
        kind, label_kind = "classification", "regression"
    if checkpoint_heads.OUTPUT_WEIGHTS not in shapes:
        return head
    if kind not in checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS:
        return head
    head = checkpoint_heads.head_of(shapes, kind=kind, label_kind=label_kind)
    # A regression has one output and no names.
    if not isinstance(labels, list) or len(labels) != head.num_labels:
        return head
    return dataclasses.replace(head, labels=tuple(labels))


def _do_lower_case(prefix, task):
    recorded = task.get("do_lower_case")
    if recorded is not None:
        return recorded
    folder = os.path.basename(os.path.dirname(os.path.abspath(prefix)))
    return full.is_lower_cased(folder)
