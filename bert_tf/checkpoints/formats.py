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


# Name -> module. Paths are tried against the formats in this order. Modules are
# imported on first use, because some of them need an optional package.
FORMATS = {
    "bert": "bert_tf.checkpoints.release",
    "hugging_face": "bert_tf.checkpoints.hugging_face",
    "keras_hub": "bert_tf.checkpoints.keras_hub",
    "keras": "bert_tf.checkpoints.keras_files",
    "saved_model": "bert_tf.checkpoints.tf2.saved_model",
    "model_garden": "bert_tf.checkpoints.tf2.model_garden",
}
_EXPECTED = (
    "bert_model.ckpt.index, or a file named checkpoint (bert); config.json with "
    "model.safetensors or tf_model.h5 (hugging_face); config.json with "
    "model.weights.h5 (keras_hub); a file name that ends in .keras or .weights.h5 "
    "(keras); saved_model.pb (saved_model); an object-based TensorFlow 2 checkpoint "
    "(model_garden)"
)


def module_of(name: str) -> Any:
    """Returns the module of a format.

    Raises:
        ImportError: the format needs a package that is not installed; the message
            names the extra.
    """
    return importlib.import_module(FORMATS[name])


def detect(path: str | os.PathLike[str]) -> str:
    """Returns the name of the format of a prefix, a file or a folder.

    Raises:
        FileNotFoundError: nothing exists at the path.
        ValueError: the format is unknown.
    """
    path = _without_trailing_slash(path)
    for name in FORMATS:
        if module_of(name).is_at(path):
            return name
    if files.exists(path):
        kind = "folder" if files.is_folder(path) else "file"
        raise ValueError(
            f"{path} is a {kind} of an unknown format; expected one of: {_EXPECTED}."
        )
    names = [*released.MODELS, kinds.SHIPPED]
    if near := difflib.get_close_matches(path, names, n=1, cutoff=0.8):
        raise FileNotFoundError(f"No such checkpoint: {path}; did you mean {near[0]}?")
    raise FileNotFoundError(
        f"No such checkpoint: {path}, and no released model has that name (such as "
        f"bert-base-uncased); expected a folder, a file or a prefix: {_EXPECTED}; or a "
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
    if folder := fetching.find(path, path_exists=exists):
        path, exists = folder, True
    snapshot = hub_names.find(path, path_exists=exists)
    if snapshot is not None:
        logger.info("%s is read from %s.", snapshot.name, snapshot.folder)
        source = open_source(snapshot.folder)
        return dataclasses.replace(source, hub_name=snapshot.name)
    return module_of(detect(path)).open_source(path)


def _without_trailing_slash(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    return path.rstrip("/") or path
