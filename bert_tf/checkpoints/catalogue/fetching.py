"""Released models by name: downloaded, unpacked and kept in a cache."""

import contextlib
import hashlib
import logging
import os
import sys
import time

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints.catalogue import downloading
from bert_tf.checkpoints.catalogue import models
from bert_tf.checkpoints.catalogue import unpacking

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "BERT_TF_CACHE"
_SECONDS_BETWEEN_LOOKS = 0.2
_CHUNK_BYTES = 1 << 20


def fetch(name, *, cache_dir=None, progress=progress_module.silent) -> str:
    """Returns the folder of a released model, which is downloaded where it is missing.

    A download that broke off goes on where it stopped. A zip that lies where the
    download would go, put there by hand, is taken instead, and stays.

    Args:
        name: such as "bert-base-uncased" or "bert-tiny", or the name of a released
            folder, such as "cased_L-12_H-768_A-12".
        cache_dir: folder of all models; None: `default_cache_dir()`.
        progress: `progress.Progress`; counts megabytes.

    Returns:
        Path of a folder with `bert_model.ckpt.*`, `bert_config.json` and `vocab.txt`.
        It is named as the released one, so that its name tells the casing.

    Raises:
        OSError: it cannot be downloaded; the message names the URL, and the path at
            which the file can be put by hand. Or the cache cannot be written.
        ValueError: no released model has this name, or the file is not what it should
            be.

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
            "%s is the model of 2020; that of 2018 is called bert-base-uncased.", name
        )
    if unpacking.is_unpacked(folder):
        return folder
    files.make_folders(os.path.dirname(folder))
    with _lock(f"{folder}.lock", entry):
        # Another process may have been at it.
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


def _fetch(entry, folder, progress):
    if os.path.lexists(folder):
        raise ValueError(
            f"{folder} is there, but lacks {', '.join(unpacking.missing(folder))}; "
            "remove it, or bring back what is missing."
        )
    by_hand = f"{folder}.zip"
    if os.path.exists(by_hand):
        logger.info("%s: taken as %s.", by_hand, entry.model.name)
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
        # It is of no use to anyone; the next fetch gets another one.
        os.remove(downloaded)
        raise
    os.remove(downloaded)


def _download(entry, downloaded, by_hand, progress):
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
        kept = "What has come so far is kept. " * downloading.has_begun(downloaded)
        raise OSError(
            f"{entry.url} cannot be downloaded: {reason}. {kept}Without a network, get "
            "that file elsewhere and put it into the folder "
            f"{os.path.dirname(by_hand)} under the name {os.path.basename(by_hand)}; "
            "it is then taken from there."
        ) from None


def _check_sha256(path, entry):
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


@contextlib.contextmanager
def _lock(path, entry):
    """Holds a lock that ends with the process, however that ends."""
    with files.open_file(path, "ab") as file:
        is_told = False
        while not _try_lock(file):
            if not is_told:
                logger.info("Another process fetches %s; waiting.", entry.model.name)
                is_told = True
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        # Closing gives it back. The file stays: removing it would open a gap between
        # two who wait for it.
        yield


def _try_lock(file):
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
