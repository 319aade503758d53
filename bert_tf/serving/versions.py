"""The folders of a model's versions, as TensorFlow Serving expects them.

A model has a folder, such as `models/topics`, and each of its versions a folder in it
whose name is a number, such as `models/topics/1`. TensorFlow Serving ignores folders
with other names.
"""

import os
import re

from bert_tf import files

MODEL_FILE = "saved_model.pb"
_LARGEST = 2**63 - 1
# Names that are meant as a version: v2, 1.0, 2026-01-31.
_LIKE_A_VERSION = re.compile(r"[vV]?[+-]?\d[\d._-]*")


def next_folder(export_dir: str, model_file: str = MODEL_FILE) -> str:
    """Returns the folder of the version to write.

    It is `export_dir`, if that is the folder of a version, such as `models/topics/1`,
    or else the next number in the folder of a model, whose versions have `model_file`.

    Raises:
        ValueError: the folder has a name that TensorFlow Serving ignores.
    """
    export_dir = export_dir.rstrip("/")
    name = os.path.basename(export_dir)
    if _is_number(name):
        return export_dir
    if _LIKE_A_VERSION.fullmatch(name):
        raise ValueError(
            f"{export_dir}: {name!r} is not a version of TensorFlow Serving; expected "
            "a whole number, as in models/topics/1, or the folder of the model."
        )
    return f"{export_dir}/{max(versions_in(export_dir, model_file), default=0) + 1}"


def latest_folder(export_dir: str) -> str:
    """Returns the folder of a SavedModel, or that of a model's highest version.

    Raises:
        FileNotFoundError: there is none.
    """
    folder = export_dir.rstrip("/")
    numbers = versions_in(folder)
    folder = f"{folder}/{numbers[-1]}" if numbers else folder
    if not files.exists(os.path.join(folder, MODEL_FILE)):
        raise FileNotFoundError(
            f"{export_dir} contains no {MODEL_FILE} and no version of a model; "
            "expected a folder written by bert_tf export."
        )
    return folder


def versions_in(folder: str, model_file: str = MODEL_FILE) -> list[int]:
    """Returns the versions in the folder of a model, in ascending order."""
    if not files.is_folder(folder):
        return []
    names = (entry.rstrip("/") for entry in files.list_folder(folder))
    return sorted(
        int(name)
        for name in names
        if _is_number(name) and files.exists(f"{folder}/{name}/{model_file}")
    )


def _is_number(name):
    is_number = name.isascii() and name.isdigit()
    return is_number and str(int(name)) == name and int(name) <= _LARGEST
