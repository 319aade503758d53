"""Models on Hugging Face's hub by name, through the library huggingface_hub.

Its cache, its checks of complete files and its environment variables (HF_HOME,
HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT) apply. A model in the cache is used as it is,
without asking the hub whether there is a newer version.
"""

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf import progress as progress_module

PREFIX = "hf://"
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
_BYTES_PER_MB = 1e6


@dataclasses.dataclass(frozen=True, kw_only=True)
class HubName:
    """The name of a model on the hub."""

    repository: str  # "organization/model", or "model" for the oldest ones.
    revision: str | None = None  # A branch, tag or commit; None: main.
    is_explicit: bool = False  # It began with hf://.

    def __str__(self) -> str:
        return self.repository + (f"@{self.revision}" if self.revision else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A version of a model in the hub's cache."""

    folder: str
    name: str  # Pinned: "hf://organization/model@commit".


def parse(path: str) -> HubName | None:
    """Returns the `HubName` that a text may be, or None.

    Args:
        path: "hf://organization/model", "organization/model" or "model", each with or
            without "@revision".

    Raises:
        ValueError: it begins with hf:// and is not a name.
    """
    is_explicit = path.startswith(PREFIX)
    match = _NAME.fullmatch(path.removeprefix(PREFIX))
    if match is None:
        if is_explicit:
            raise ValueError(
                f"{path}: expected {PREFIX}ORGANIZATION/MODEL or "
                f"{PREFIX}ORGANIZATION/MODEL@REVISION."
            )
        return None
    return HubName(repository=match[1], revision=match[2], is_explicit=is_explicit)


def cached(name: HubName) -> Snapshot | None:
    """Returns the copy of a model in the hub's cache, or None."""
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        return None
    repositories = [name.repository]
    if "/" not in name.repository:
        repositories += [f"{other}/{name.repository}" for other in _ORGANIZATIONS]
    for repository in repositories:
        for marker in _MARKERS:
            path = huggingface_hub.try_to_load_from_cache(
                repository, marker, revision=name.revision
            )
            if isinstance(path, str):
                return _snapshot(repository, os.path.dirname(path))
    return None


def downloads(name: HubName) -> bool:
    """Returns whether a name that is not in the cache is looked up on the hub.

    A name without an organization is not, because it may be a misspelled path, and
    neither is the name of a file.
    """
    organization, separator, own = name.repository.partition("/")
    is_full = bool(separator) and not files.is_folder(organization)
    return name.is_explicit or (is_full and not _FILE.search(own))


def download(
    name: HubName, *, progress: progress_module.Progress = progress_module.silent
) -> Snapshot:
    """Downloads the files of a model that we read into the hub's cache.

    Weights come last, so that a model with weights in the cache is complete.

    Args:
        name: of the model.
        progress: reports megabytes.

    Raises:
        ImportError: huggingface_hub is not installed.
        OSError: the model does not exist, needs permission, the hub cannot be reached,
            or the cache cannot be written.
        ValueError: the repository has no weights that we read.
    """
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        raise ImportError(
            f"{name} is not a local path. Models on Hugging Face's hub need "
            "huggingface_hub, which is not installed; "
            "pip install 'bert_tf[huggingface]'."
        ) from None
    from huggingface_hub import errors

    try:
        return _download(huggingface_hub, name, progress)
    except errors.OfflineModeIsEnabled:
        reason = "it is not in the cache, and HF_HUB_OFFLINE is set"
    except errors.GatedRepoError:
        reason = (
            "its authors grant access on request: accept their conditions on its page, "
            "then run `hf auth login` or set HF_TOKEN"
        )
    except errors.RepositoryNotFoundError:
        reason = (
            "there is no such model on Hugging Face's hub, or it is private; then run "
            "`hf auth login` or set HF_TOKEN"
        )
    except errors.RevisionNotFoundError:
        reason = f"the model has no revision {name.revision}"
    except ValueError:
        raise
    # Errors of the network have several classes, which vary with the library's version.
    except Exception as error:
        text = " ".join(str(error).split())[:200].rstrip(".")
        reason = (
            "the hub cannot be reached, or the cache (HF_HOME) cannot be written "
            f"({text or type(error).__name__})"
        )
    path = "" if name.is_explicit else f"No such path: {name}; "
    raise OSError(f"{path}{PREFIX}{name} cannot be downloaded: {reason}.")


def wanted_files(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the small files and the weights to download, given a repository's files.

    If a repository has its weights in several formats, only one of them is downloaded.

    Args:
        names: paths of all files in the repository.
    """
    weights: list[str] = []
    for pattern in _WEIGHTS:
        weights = [name for name in names if pattern.fullmatch(name)]
        if weights:
            break
    small = [name for name in names if _SMALL.fullmatch(name) and name not in weights]
    return small, weights


def _download(
    library: Any, name: HubName, progress: progress_module.Progress
) -> Snapshot:
    info = library.HfApi(library_name="bert_tf").model_info(
        name.repository, revision=name.revision, timeout=_TIMEOUT_S
    )
    names = [sibling.rfilename for sibling in info.siblings or ()]
    small, weights = wanted_files(names)
    if not weights:
        others = [one for one in names if one.endswith((".bin", ".ckpt", ".onnx"))]
        raise ValueError(
            f"{PREFIX}{name} has no weights that bert_tf reads, such as "
            f"model.safetensors; its files are {', '.join(others or names)[:200]}."
        )
    revision = name.revision
    for patterns, report in ((small, progress_module.silent), (weights, progress)):
        folder = library.snapshot_download(
            name.repository,
            revision=revision,
            allow_patterns=patterns or weights,
            tqdm_class=_bars(library, report, name),
        )
        # The commit, so that all files have the same version.
        revision = os.path.basename(folder)
    return _snapshot(name.repository, folder)


def _bars(library: Any, progress: progress_module.Progress, name: HubName) -> type:
    """Returns a class of invisible bars that report the bytes to `progress`."""

    class Bar(library.utils.tqdm):
        def __init__(self, *arguments, **keywords):
            # There is one bar for the bytes received and one for those written.
            self._is_shown = keywords.get("name", "").endswith("snapshot_download")
            self._num_bytes = 0.0
            super().__init__(*arguments, **keywords | {"disable": True})

        def update(self, n=1):
            self._num_bytes += n or 0
            if self._is_shown and self.total:
                done = min(self._num_bytes, self.total) / _BYTES_PER_MB
                total = self.total / _BYTES_PER_MB
                progress(f"download {name}", done, total, unit="MB")

    return Bar


def _snapshot(repository: str, folder: str) -> Snapshot:
    commit = os.path.basename(folder)
    return Snapshot(folder=folder, name=f"{PREFIX}{repository}@{commit}")
