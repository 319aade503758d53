"""The table of checkpoint formats, and how the format of a path is found.

Every format is a module with the functions `is_at` and `open_source` and, if it is
written, `placement` and `write`; see CONTRIBUTING.md.
"""

import dataclasses
import difflib
import importlib
import logging
import os
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.checkpoints.catalogue import hub_names
from bert_tf.modeling import released

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format:
    """One checkpoint format."""

    module: str  # The module with the format's functions.
    shown_by: str  # What identifies the format at a path; for messages.


# Paths are tried against the formats in this order. Modules are imported on first use,
# because some of them need an optional package.
FORMATS = {
    "bert": Format(
        module="bert_tf.checkpoints.release",
        shown_by="bert_model.ckpt.index, or a file named checkpoint",
    ),
    "hugging_face": Format(
        module="bert_tf.checkpoints.hugging_face",
        shown_by="config.json with model.safetensors or tf_model.h5",
    ),
    "keras_hub": Format(
        module="bert_tf.checkpoints.keras_hub",
        shown_by="config.json with model.weights.h5",
    ),
    "keras": Format(
        module="bert_tf.checkpoints.keras_files",
        shown_by="a file name that ends in .keras or .weights.h5",
    ),
    "saved_model": Format(
        module="bert_tf.checkpoints.tf2.saved_model", shown_by="saved_model.pb"
    ),
    "model_garden": Format(
        module="bert_tf.checkpoints.tf2.model_garden",
        shown_by="an object-based TensorFlow 2 checkpoint",
    ),
}


def module_of(name: str) -> Any:
    """Returns the module of a format.

    Raises:
        ValueError: there is no such format.
        ImportError: the format needs a package that is not installed; the message
            names the extra.
    """
    if name not in FORMATS:
        raise ValueError(
            f"Unknown format {name!r}; expected one of {', '.join(FORMATS)}."
        )
    return importlib.import_module(FORMATS[name].module)


def detect(path: str | os.PathLike[str]) -> str:
    """Returns the name of the format of a checkpoint.

    Args:
        path: a checkpoint's prefix, a file or a folder.

    Raises:
        FileNotFoundError: nothing exists at the path.
        ValueError: the format is unknown.
    """
    path = _without_trailing_slash(path)
    for name in FORMATS:
        if module_of(name).is_at(path):
            return name
    expected = "; ".join(f"{one.shown_by} ({name})" for name, one in FORMATS.items())
    if files.exists(path):
        kind = "folder" if files.is_folder(path) else "file"
        raise ValueError(
            f"{path} is a {kind} of an unknown format; expected one of: {expected}."
        )
    names = [*released.MODELS, kinds.SHIPPED]
    if near := difflib.get_close_matches(path, names, n=1, cutoff=0.8):
        raise FileNotFoundError(f"No such checkpoint: {path}; did you mean {near[0]}?")
    raise FileNotFoundError(
        f"No such checkpoint: {path}, and no released model has that name (such as "
        f"bert-base-uncased); expected a folder, a file or a prefix: {expected}; or a "
        f"model on Hugging Face's hub, such as {files.HUB_PREFIX}ORGANIZATION/MODEL."
    )


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a checkpoint of any format.

    Args:
        path: a checkpoint's prefix, a file, a folder, or the name of a model: that of
            a released one, such as "bert-base-uncased", which is downloaded unless a
            file of that name exists; or "bert-tf-mini", a small English model that is
            part of this package. "hf://organization/model", or "organization/model" if
            there is no such path, is a model on Hugging Face's hub; "@revision" may
            follow.

    Raises:
        OSError: there is no such checkpoint, or it cannot be read or downloaded.
        ValueError: the format is unknown, the files are damaged, or the model is not a
            BERT.
        ImportError: the format needs a package that is not installed.
    """
    path = _without_trailing_slash(path)
    exists = files.exists(path) or files.exists(f"{path}.index")
    if path == kinds.SHIPPED and not exists:
        path, exists = fetching.SHIPPED_FOLDER, True
    if path in fetching.ALIASES and not exists:
        return module_of("bert").open_source(fetching.fetch(path))
    snapshot = hub_names.find(path, path_exists=exists)
    if snapshot is not None:
        logger.info("%s is read from %s.", snapshot.name, snapshot.folder)
        source = open_source(snapshot.folder)
        return dataclasses.replace(source, hub_name=snapshot.name)
    return module_of(detect(path)).open_source(path)


def _without_trailing_slash(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    return path.rstrip("/") or path
