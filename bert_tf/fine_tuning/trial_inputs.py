"""Checksums of the files, besides data, that the runs of a search start from.

The record of a run has only their names; see `run_settings.short_name`. Other files of
the same name would give other results.
"""

import os
from typing import Any

from bert_tf import files
from bert_tf.checkpoints.release import rotation
from bert_tf.training import result_files

# Options that name a file or a checkpoint.
_OPTIONS = ("init_checkpoint", "teacher", "vocab_file", "bert_config_file")
_WEIGHTS = (".safetensors", ".h5", ".keras", ".index", ".pb", ".data-00000-of-00001")


def checksums(
    options: Any, known: dict[result_files.DataSet, result_files.DataSet]
) -> dict[str, str]:
    """Returns the SHA-256 of what options name. Names of released models have none.

    Args:
        options: of one run.
        known: data sets whose checksums are computed already, by themselves.

    Raises:
        OSError: a file cannot be read.
    """
    found = {}
    for name in _OPTIONS:
        path = getattr(options, name, None)
        paths = tuple(_paths(path)) if path else ()
        content = result_files.DataSet(name=name, paths=paths)
        checksum = known.setdefault(content, content).checksum
        if checksum is not None:
            found[name] = checksum
    return found


def _paths(path):
    """Returns the files at a path: a file, a prefix, or the weights in a folder."""
    if files.exists(path) and not files.is_folder(path):
        return [path]
    folder, prefix = os.path.split(path)
    if files.is_folder(path):
        latest = rotation.latest(path)
        if latest is None:
            names = [n for n in files.list_folder(path) if n.endswith(_WEIGHTS)]
            return [os.path.join(path, name) for name in names]
        folder, prefix = os.path.split(latest)
    if not files.is_folder(folder):
        return []
    names = files.list_folder(folder)
    endings = (f"{prefix}.index", f"{prefix}.data-")
    return [os.path.join(folder, name) for name in names if name.startswith(endings)]
