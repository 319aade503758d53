"""Finds models in the local cache of the Hugging Face Hub by their hub names.

Nothing is downloaded from the hub.
"""

import os
import re

from bert_tf import files
from bert_tf.checkpoints.catalogue import models

# "google-bert/bert-base-uncased"; names from before 2024 have no organization.
_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*")
# Organizations of the release's authors on the hub.
_RELEASED_BY = ("google-bert", "google")
# Organizations whose models may be named without the organization.
_ORGANIZATIONS = ("google-bert", "sentence-transformers")
_WEIGHTS = re.compile(r".*\.(safetensors|bin|h5|msgpack)(\.index\.json)?")


def cached_folder(name: str) -> str | None:
    """Returns the folder of a model in the hub's cache, or None.

    Args:
        name: such as "google-bert/bert-base-uncased" or "bert-base-german-cased".

    Raises:
        ValueError: the cache has several versions and does not say which one is used.
    """
    if not _NAME.fullmatch(name):
        return None
    names = [name]
    if "/" not in name:
        names += [f"{organization}/{name}" for organization in _ORGANIZATIONS]
    for full_name in names:
        folder = _snapshot(f"models--{full_name.replace('/', '--')}")
        if folder is not None:
            return folder
    return None


def released_name(name: str) -> str | None:
    """Returns the catalogue's name of a released model, given its name on the hub.

    Args:
        name: such as "google/bert_uncased_L-2_H-128_A-2".
    """
    organization, _, own = name.partition("/")
    own = own.removeprefix("bert_")
    is_released = organization in _RELEASED_BY and models.is_name(own)
    return own if is_released else None


def is_full_name(path: str) -> bool:
    """Returns whether a path that does not exist looks like "organization/model"."""
    organization, separator, _ = path.partition("/")
    is_name = bool(separator) and _NAME.fullmatch(path) is not None
    return is_name and not files.is_folder(organization)


def cache_dir() -> str:
    """Returns the folder where Hugging Face's libraries keep models."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"):
        if os.environ.get(variable):
            return os.path.expanduser(os.environ[variable])
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    home = os.environ.get("HF_HOME") or os.path.join(caches, "huggingface")
    return os.path.expanduser(os.path.join(home, "hub"))


def _snapshot(model: str) -> str | None:
    folder = os.path.join(cache_dir(), model)
    snapshots = os.path.join(folder, "snapshots")
    if not files.is_folder(snapshots):
        return None
    complete = [
        version
        for version in files.list_folder(snapshots)
        if any(map(_WEIGHTS.fullmatch, files.list_folder(f"{snapshots}/{version}")))
    ]
    main = os.path.join(folder, "refs", "main")
    if files.exists(main):
        with files.open_file(main) as file:
            version = file.read().strip()
        if version in complete:
            return os.path.join(snapshots, version)
    if len(complete) > 1:
        raise ValueError(
            f"{snapshots} has {len(complete)} versions, and refs/main names none of "
            "them; pass the folder of one of them."
        )
    return os.path.join(snapshots, complete[0]) if complete else None
