"""The format "bert": a checkpoint of the release and the files beside it.

A released model is a folder with `bert_model.ckpt.*`, `bert_config.json` and
`vocab.txt`. The folder of a run or of a conversion also has a `task.json`.

The native format keeps the release's variable names. So any program that reads BERT
reads our checkpoints, and a run begun by the 2018 code can be continued here.
"""

import os
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import bundle

NAME = "bert"
# The prefix of the checkpoint in every released folder.
PREFIX = "bert_model.ckpt"
# A tensor of TensorFlow 2's object-based checkpoints, whose other tensors do not have
# the names of 2018.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a name-based checkpoint or the folder of one."""
    path = os.fspath(path)
    try:
        prefix = bundle.resolve(path)
        return OBJECT_GRAPH not in bundle.read_names_and_shapes(prefix)
    except (OSError, ValueError):
        return bundle.looks_like_checkpoint(path)


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a prefix, a released folder, or a run's folder."""
    prefix = bundle.resolve(path)
    stored = bundle.read_names_and_shapes(prefix)
    shapes = {
        name: tuple(stored[name])
        for name in sorted(stored)
        if not checkpoint_names.is_of_optimizer(name)
    }
    folder = os.path.dirname(prefix) or "."
    task = companion_files.read_task(folder)
    return source_module.Source(
        path=prefix,
        format=NAME,
        shapes=shapes,
        read_each=lambda wanted: _read_each(prefix, wanted),
        head=checkpoint_heads.head_of_task(shapes, task),
        config=companion_files.read_config(folder),
        text=companion_files.read_text(folder),
        optimizer=tuple(sorted(set(stored) - set(shapes))),
    )


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a `Source`: every weight keeps its name."""
    return source_module.Placement(places={name: name for name in source.shapes})


def write(source: source_module.Source, path: str) -> None:
    """Writes a checkpoint and its files into a folder, as the released zips have them.

    A `task.json` records casing and head. The complete checkpoint is in memory at once,
    because `SaveV2` takes it in one call. `path` is the folder, or a prefix in it that
    ends in .ckpt.
    """
    folder, name = os.path.split(path) if path.endswith(".ckpt") else (path, PREFIX)
    tensors = {
        tensor_name: tf.constant(array)
        for tensor_name, array in source.read_each(source.shapes)
    }
    if source.config is not None:
        path = os.path.join(folder, companion_files.CONFIG_FILE)
        with files.complete_or_absent(path) as file:
            file.write(source.config.to_json_string())
    if source.vocabulary is not None:
        source.vocabulary.save(os.path.join(folder, companion_files.VOCAB_FILE))
    task_file = os.path.join(folder, companion_files.TASK_FILE)
    task = {**source.task_values(), companion_files.CONVERTED: True}
    companion_files.write_json(
        task_file, companion_files.with_fingerprint(task, source.vocabulary)
    )
    bundle.save(os.path.join(folder, name), tensors)


def _read_each(prefix: str, wanted: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    for name, tensor in bundle.read_each(prefix, wanted):
        yield name, tensor.astype("float32", copy=False)
