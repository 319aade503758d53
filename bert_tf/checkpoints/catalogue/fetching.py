"""Provides released models by name: downloaded, unpacked and cached."""

import hashlib
import logging
import os
import sys

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints.catalogue import downloading
from bert_tf.checkpoints.catalogue import models
from bert_tf.checkpoints.catalogue import unpacking

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "BERT_TF_CACHE"
_SECONDS_BETWEEN_ATTEMPTS = 0.2
_CHUNK_BYTES = 1 << 20


def fetch(
    name: str,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Returns the folder of a released model; downloads it if it is not cached.

    An interrupted download is resumed. A zip that the user has put where the download
    would go is used instead, and kept.

    Args:
        name: such as "bert-base-uncased" or "bert-tiny", or the name of a released
            folder, such as "cased_L-12_H-768_A-12".
        cache_dir: folder of all models; None: `default_cache_dir()`.
        progress: reports megabytes.

    Returns:
        Path of a folder with `bert_model.ckpt.*`, `bert_config.json` and `vocab.txt`.
        It has the released folder's name, which shows the casing.

    Raises:
        OSError: the download failed (the message names the URL, and the path where the
            user can put the file), or the cache cannot be written.
        ValueError: no released model has this name, or the file is damaged or another
            one.

    Example:
        folder = fetch("bert-tiny")
        report = bert_tf.load_checkpoint(model, f"{folder}/bert_model.ckpt")
    """
    entry = models.find(name)
    cache_dir = os.fspath(cache_dir or default_cache_dir())
    if files.is_remote(cache_dir):
        raise ValueError(f"cache_dir: expected a local folder, got {cache_dir}.")
    folder = os.path.join(cache_dir, *entry.path.split("/"))
    if name == entry.folder and models.is_released_twice(name):
        logger.warning(
            "%s is the model of 2020; that of 2018 is called bert-base-uncased.",
            name,
        )
    if unpacking.is_unpacked(folder):
        return folder
    files.make_folders(os.path.dirname(folder))
    with locks.output_file(folder, waits=True):
        # Another process may have fetched it meanwhile.
        if not unpacking.is_unpacked(folder):
            _fetch(entry, folder, progress)
    return folder


def default_cache_dir() -> str:
    """Returns $BERT_TF_CACHE, or else bert_tf in the system's folder for caches."""
    if os.environ.get(CACHE_VARIABLE):
        return os.path.expanduser(os.environ[CACHE_VARIABLE])
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or os.path.join(
            home, "AppData", "Local"
        )
    elif sys.platform == "darwin":
        caches = os.path.join(home, "Library", "Caches")
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(caches, "bert_tf")


def _fetch(
    entry: models.Entry, folder: str, progress: progress_module.Progress
) -> None:
    if os.path.lexists(folder):
        raise ValueError(
            f"{folder} exists, but lacks {', '.join(unpacking.missing(folder))}; "
            "remove it, or restore the missing files."
        )
    by_hand = f"{folder}.zip"
    if os.path.exists(by_hand):
        logger.info("Using %s as %s.", by_hand, entry.model.name)
        _check_sha256(by_hand, entry)
        unpacking.unpack(by_hand, folder, entry.model, progress=progress)
        return
    downloaded = f"{folder}.zip.download"
    if not os.path.exists(downloaded):
        _download(entry, downloaded, by_hand, progress)
    try:
        _check_sha256(downloaded, entry)
        unpacking.unpack(downloaded, folder, entry.model, progress=progress)
    except ValueError:
        # The file is useless; the next fetch downloads it again.
        os.remove(downloaded)
        raise
    os.remove(downloaded)


def _download(
    entry: models.Entry,
    downloaded: str,
    by_hand: str,
    progress: progress_module.Progress,
) -> None:
    try:
        downloading.download(
            entry.url,
            downloaded,
            max_bytes=unpacking.max_bytes(entry.model),
            stage=f"download {entry.model.name}",
            progress=progress,
        )
    except OSError as error:
        reason = str(error).rstrip(".")
        has_part = downloading.has_begun(downloaded)
        kept = "The part received so far is kept. " if has_part else ""
        raise OSError(
            f"{entry.url} cannot be downloaded: {reason}. {kept}Without a network, "
            f"copy that file to {by_hand}; it is then used instead."
        ) from None


def _check_sha256(path: str, entry: models.Entry) -> None:
    if entry.sha256 is None:
        return
    digest = hashlib.sha256()
    with files.open_file(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest() != entry.sha256:
        raise ValueError(
            f"{path} has the SHA-256 {digest.hexdigest()}, expected {entry.sha256}; it "
            "is damaged or not the released file: download it again."
        )
