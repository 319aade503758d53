"""Models on Hugging Face's hub by name, through the library huggingface_hub.

Its cache, its checks of complete files and its environment variables (HF_HOME,
HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT) apply. A model in the cache is used as it is,
without asking the hub whether there is a newer version.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf import machine

# "google-bert/bert-base-uncased"; names from before 2024 have no organization.
_NAME = re.compile(r"((?:\w[\w.-]*/)?\w[\w.-]*)(?:@(\w[\w./-]*))?")
# Organizations whose models may be named without the organization.
_ORGANIZATIONS = ("google-bert", "sentence-transformers")
# Weights of the formats that we read, the best one first. Pickled weights
# (pytorch_model.bin) are never downloaded: they can run code.
_WEIGHTS = (
    re.compile(r"model(-\d+-of-\d+)?\.safetensors(\.index\.json)?"),
    re.compile(r"tf_model\.h5"),
    re.compile(r"(model|task)\.weights\.(h5|json)|model_\d+\.weights\.h5"),
    re.compile(r"checkpoint|[\w.-]*\.ckpt(-\d+)?\.(index|data-\d+-of-\d+)"),
)
_MARKERS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "tf_model.h5",
    "model.weights.h5",
    "model.weights.json",
    "bert_model.ckpt.index",
    "checkpoint",
)
# Configuration and tokenizer, and those of the modules of sentence-transformers.
_SMALL = re.compile(r"(\d+_\w+/|assets/tokenizer/)?[\w.-]+\.(json|txt)")
_FILE = re.compile(r"ckpt|\.(h5|keras|safetensors|bin|index)$")
_TIMEOUT_S = 10.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A version of a model in the hub's cache."""

    folder: str
    name: str  # Pinned: "hf://organization/model@commit".


def find(path: str, *, path_exists: bool) -> Snapshot | None:
    """Returns the copy in the hub's cache of the model that a text names, or None.

    A name is "hf://organization/model", "organization/model" or "model", each with or
    without "@revision". An existing path takes precedence over a name without hf://. A
    model that is not in the cache is downloaded, unless the name may be a misspelled
    path: it has no organization, or is the name of a file.

    Raises:
        ImportError: huggingface_hub is not installed.
        OSError: the model does not exist, needs permission, the hub cannot be reached,
            or the cache cannot be written.
        ValueError: the text begins with hf:// and is not a name, or the repository has
            no weights that we read.
    """
    is_explicit = path.startswith(files.HUB_PREFIX)
    match = _NAME.fullmatch(path.removeprefix(files.HUB_PREFIX))
    if match is None and is_explicit:
        raise ValueError(
            f"{path}: expected {files.HUB_PREFIX}ORGANIZATION/MODEL or "
            f"{files.HUB_PREFIX}ORGANIZATION/MODEL@REVISION."
        )
    if match is None or (path_exists and not is_explicit):
        return None
    # "organization/model", or "model" for the oldest ones; a branch, tag or commit.
    repository, revision = match.groups()
    snapshot = _cached(repository, revision)
    if snapshot is not None:
        return snapshot
    organization, separator, model = repository.partition("/")
    is_full = bool(separator) and not files.is_folder(organization)
    if is_explicit or (is_full and not _FILE.search(model)):
        name = path.removeprefix(files.HUB_PREFIX)
        return _download(name, repository, revision, is_explicit)
    return None


def _cached(repository: str, revision: str | None) -> Snapshot | None:
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        return None
    repositories = [repository]
    if "/" not in repository:
        repositories += [f"{one}/{repository}" for one in _ORGANIZATIONS]
    for name, marker in itertools.product(repositories, _MARKERS):
        path = huggingface_hub.try_to_load_from_cache(name, marker, revision=revision)
        if isinstance(path, str):
            return _snapshot(name, os.path.dirname(path))
    return None


def _download(
    name: str, repository: str, revision: str | None, is_explicit: bool
) -> Snapshot:
    """Downloads the files of a model that we read into the hub's cache."""
    library = machine.package(
        "huggingface_hub",
        extra="huggingface",
        needed_for=f"{name} is not a local path, and a model on Hugging Face's hub",
    )
    from huggingface_hub import errors

    reasons = {
        errors.OfflineModeIsEnabled: (
            "it is not in the cache, and HF_HUB_OFFLINE is set"
        ),
        errors.GatedRepoError: (
            "its authors grant access on request: accept their conditions on its page, "
            "then run `hf auth login` or set HF_TOKEN"
        ),
        errors.RepositoryNotFoundError: (
            "there is no such model on Hugging Face's hub, or it is private; then run "
            "`hf auth login` or set HF_TOKEN"
        ),
        errors.RevisionNotFoundError: f"the model has no revision {revision}",
    }
    try:
        return _download_files(library, name, repository, revision)
    except ValueError:
        raise
    # Errors of the network have several classes, which vary with the library's version.
    except Exception as error:
        text = " ".join(str(error).split())[:200].rstrip(".")
        unknown = (
            "the hub cannot be reached, or the cache (HF_HOME) cannot be written "
            f"({text or type(error).__name__})"
        )
        known = (reasons[one] for one in reasons if isinstance(error, one))
        reason = next(known, unknown)
    start = "" if is_explicit else f"No such path: {name}; "
    raise OSError(f"{start}{files.HUB_PREFIX}{name} cannot be downloaded: {reason}.")


def wanted_files(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the small files and the weights to download, given a repository's files.

    If a repository has its weights in several formats, only one of them is downloaded.
    """
    formats = (list(filter(pattern.fullmatch, names)) for pattern in _WEIGHTS)
    weights: list[str] = next(filter(None, formats), [])
    small = [name for name in names if _SMALL.fullmatch(name) and name not in weights]
    return small, weights


def _download_files(
    library: Any, name: str, repository: str, revision: str | None
) -> Snapshot:
    """Downloads the weights last, so that a model with weights is complete."""
    info = library.HfApi(library_name="bert_tf").model_info(
        repository, revision=revision, timeout=_TIMEOUT_S
    )
    names = [sibling.rfilename for sibling in info.siblings or ()]
    small, weights = wanted_files(names)
    if not weights:
        others = [one for one in names if one.endswith((".bin", ".ckpt", ".onnx"))]
        raise ValueError(
            f"{files.HUB_PREFIX}{name} has no weights that bert_tf reads, such as "
            f"model.safetensors; its files are {', '.join(others or names)[:200]}."
        )
    for patterns in (small, weights):
        folder = library.snapshot_download(
            repository, revision=revision, allow_patterns=patterns or weights
        )
        # The commit, so that all files have the same version.
        revision = os.path.basename(folder)
    return _snapshot(repository, folder)


def _snapshot(repository: str, folder: str) -> Snapshot:
    commit = os.path.basename(folder)
    return Snapshot(folder=folder, name=f"{files.HUB_PREFIX}{repository}@{commit}")
