"""Models by name: the released ones, downloaded and cached; and that in this package.

Files and folders of the same name come first; see `formats.open_source`.

The zips are not trusted: members are looked up by the names of the released files, so
no name in a zip becomes a path, and one that would unpack to too many bytes is refused.

A download is complete or absent, and is resumed after a break; the bytes received so
far are in `TARGET.part`. We do not use a library because the zips are up to 1.2 GB:
pooch and keras.utils.get_file restart a broken download at the first byte, and
huggingface_hub only resumes downloads from its own hub.
"""

import http.client
import logging
import os
import pathlib
import re
import socket
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from typing import Any

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import release
from bert_tf.modeling import released

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "BERT_TF_CACHE"
_NEEDED = (
    f"{release.PREFIX}.data-00000-of-00001",
    f"{release.PREFIX}.index",
    companion_files.CONFIG_FILE,
    companion_files.VOCAB_FILE,
)
# A checkpoint may include both optimizer slots; the rest is graph and vocabulary.
_BYTES_PER_PARAMETER = 3 * 4
_MAX_OTHER_BYTES = 1 << 26
_NOT_RELEASED = "this is not the released file"
# What zipfile and zlib raise for damaged, encrypted or unsupported members.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
BASE_URL = "https://storage.googleapis.com/bert_models"
SHIPPED_FOLDER = str(pathlib.Path(__file__).with_name(kinds.SHIPPED))
# A server that sends nothing for this long is considered unreachable.
TIMEOUT_S = 60.0
# Waits after attempts that received nothing; then the download fails.
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0)
_CHUNK_BYTES = 1 << 20
_BYTES_PER_MB = 1e6
_RETRIED = {408, 416, 425, 429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")
# Name -> path of its zip below the URL, without ".zip", and of its folder in the cache.
# The last part shows the casing.
PATHS = {
    # The small models are called like their folders, unlike those that follow.
    **{name: f"2020_02_20/{name}" for name in released.MODELS},
    "bert-base-uncased": "2018_10_18/uncased_L-12_H-768_A-12",
    "bert-large-uncased": "2018_10_18/uncased_L-24_H-1024_A-16",
    "bert-base-cased": "2018_10_18/cased_L-12_H-768_A-12",
    "bert-large-cased": "2018_10_18/cased_L-24_H-1024_A-16",
    "bert-large-uncased-whole-word-masking": (
        "2019_05_30/wwm_uncased_L-24_H-1024_A-16"
    ),
    "bert-large-cased-whole-word-masking": "2019_05_30/wwm_cased_L-24_H-1024_A-16",
    "bert-base-multilingual-cased": "2018_11_23/multi_cased_L-12_H-768_A-12",
    "bert-base-multilingual-uncased": "2018_11_03/multilingual_L-12_H-768_A-12",
    "bert-base-chinese": "2018_11_03/chinese_L-12_H-768_A-12",
}
# Any known name -> name: names of released folders, and those in the README of the
# small models. The folder uncased_L-12_H-768_A-12 was released twice. Here the name
# means the model of 2020, like the names of all small models; that of 2018 is
# bert-base-uncased.
ALIASES = {
    **{path.rpartition("/")[2]: name for name, path in PATHS.items()},
    **{name: name for name in PATHS},
    **released.ALIASES,
}


def find(name: str, *, path_exists: bool) -> str | None:
    """Returns the folder of the shipped or a released model; None for other names.

    Args:
        name: a path, or the name of a model.
        path_exists: whether it is a path, which takes precedence.

    Raises:
        OSError, ValueError: as `fetch`.
    """
    if path_exists or name not in (kinds.SHIPPED, *ALIASES):
        return None
    return SHIPPED_FOLDER if name == kinds.SHIPPED else fetch(name)


def fetch(name: str, *, cache_dir: str | os.PathLike[str] | None = None) -> str:
    """Returns the folder of a released model; downloads it if it is not cached.

    An interrupted download is resumed. A zip that the user has put where the download
    would go is used instead, and kept.

    Args:
        name: such as "bert-base-uncased", "bert-tiny", or the name of a released
            folder, such as "cased_L-12_H-768_A-12".
        cache_dir: folder of all models; None: `default_cache_dir()`.

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
    if name not in ALIASES:
        released.find(name)  # Raises an error that lists the names.
    path, model = PATHS[ALIASES[name]], released.MODELS[ALIASES[name]]
    cache_dir = os.fspath(cache_dir or default_cache_dir())
    if files.is_remote(cache_dir):
        raise ValueError(f"cache_dir: expected a local folder, got {cache_dir}.")
    folder = os.path.join(cache_dir, *path.split("/"))
    if name == PATHS["bert-base-uncased"].rpartition("/")[2]:
        logger.warning(
            "%s is the model of 2020; that of 2018 is called bert-base-uncased.", name
        )
    if not _missing_from(folder):
        return folder
    files.make_folders(os.path.dirname(folder))
    with locks.output_file(folder, waits=True):
        missing = _missing_from(folder)
        if not missing:  # Another process has fetched it meanwhile.
            return folder
        if os.path.lexists(folder):
            raise ValueError(
                f"{folder} exists, but lacks {', '.join(missing)}; remove it, or "
                "restore the missing files."
            )
        by_hand = f"{folder}.zip"
        if os.path.exists(by_hand):
            logger.info("Using %s as %s.", by_hand, model.name)
            _unpack(by_hand, folder, model)
        else:
            _download(f"{BASE_URL}/{path}.zip", folder, model)
    return folder


def default_cache_dir() -> str:
    """Returns $BERT_TF_CACHE, or else bert_tf in the system's folder for caches."""
    if os.environ.get(CACHE_VARIABLE):
        return os.path.expanduser(os.environ[CACHE_VARIABLE])
    caches = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        caches = "~/Library/Caches"
    return os.path.join(os.path.expanduser(caches), "bert_tf")


def _missing_from(folder: str) -> list[str]:
    return [name for name in _NEEDED if not os.path.exists(os.path.join(folder, name))]


def _download(url: str, folder: str, model: released.ReleasedModel) -> None:
    downloaded = f"{folder}.zip.download"
    if not os.path.exists(downloaded):
        try:
            download(
                url,
                downloaded,
                max_bytes=_max_bytes(model),
                stage=f"download {model.name}",
            )
        except OSError as error:
            reason = str(error).rstrip(".")
            raise OSError(
                f"{url} cannot be downloaded: {reason}. What was received is "
                f"kept. Without a network, copy that file to {folder}.zip; it is then "
                "used instead."
            ) from None
    try:
        _unpack(downloaded, folder, model)
    except ValueError:
        os.remove(downloaded)  # The next fetch downloads it again.
        raise
    os.remove(downloaded)


def _max_bytes(model: released.ReleasedModel) -> int:
    """Returns an upper bound of a released model's size in bytes, zipped or not."""
    hidden = model.hidden_size
    # 12 H^2 per layer, and the tables; biases are covered by the slack.
    parameters = 12 * hidden**2 * model.num_layers + (model.vocab_size + 600) * hidden
    return _BYTES_PER_PARAMETER * parameters + _MAX_OTHER_BYTES


def _unpack(zip_file: str, folder: str, model: released.ReleasedModel) -> None:
    """Unpacks the zip of a released model; the folder appears after all checks."""
    try:
        with (
            locks.complete_or_absent_folder(folder) as temporary,
            zipfile.ZipFile(zip_file) as archive,
        ):
            for name, member in _members(zip_file, archive, model).items():
                member.filename = name
                archive.extract(member, temporary)
            _check(zip_file, temporary, model)
    except _ZIP_ERRORS as error:
        raise ValueError(
            f"{zip_file} is not the released file: it is truncated, damaged or not a "
            f"zip ({error}); download it again."
        ) from None


def _members(
    zip_file: str, archive: zipfile.ZipFile, model: released.ReleasedModel
) -> dict[str, zipfile.ZipInfo]:
    """Returns {released file name: member}."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        # The zips of 2018 and 2019 have a folder around the files, those of 2020 none.
        name = info.filename.rpartition("/")[2]
        if name in members:
            raise ValueError(f"{zip_file} has {name} twice; {_NOT_RELEASED}.")
        if name in _NEEDED:
            members[name] = info
    missing = [name for name in _NEEDED if name not in members]
    if missing:
        raise ValueError(f"{zip_file} has no {', '.join(missing)}; {_NOT_RELEASED}.")
    size = sum(info.file_size for info in members.values())
    if size > _max_bytes(model):
        raise ValueError(
            f"{zip_file} would unpack to {size} bytes, expected at most "
            f"{_max_bytes(model)} for a model of this size; {_NOT_RELEASED}."
        )
    return members


def _check(zip_file: str, folder: str, model: released.ReleasedModel) -> None:
    """Compares configuration, vocabulary and checkpoint with the released sizes."""
    try:
        source = release.open_source(folder)
    except ValueError as error:
        # The temporary folder is removed, so its name would not help.
        sentence = str(error).replace(f"{folder}{os.sep}", "")
        raise ValueError(f"{zip_file}: {sentence}") from None
    config, shapes = source.required_config(), source.shapes
    # Layers, and the sizes of configuration, weights and vocabulary, [V, H].
    got = (
        (config.num_hidden_layers, checkpoint_names.num_layers(shapes)),
        (config.vocab_size, config.hidden_size),
        shapes.get(checkpoint_names.WORD_EMBEDDINGS),
        len(source.vocabulary or ()),
    )
    table = (model.vocab_size, model.hidden_size)
    expected = ((model.num_layers,) * 2, table, table, model.vocab_size)
    if got != expected:
        raise ValueError(
            f"{zip_file}: the sizes of {model.name} are {expected}, but the files have "
            f"{got}; {_NOT_RELEASED}."
        )


class _AttemptError(Exception):
    """A failed attempt that is worth repeating; the text says what happened."""


def download(url: str, target: str, *, max_bytes: int, stage: str) -> None:
    """Downloads a file; an existing part of it is continued.

    Proxies are those of the environment (`https_proxy`, ...). The caller makes sure
    that no other process downloads to the same target, and checks the content: a part
    of another version of the file would be continued, too.

    Args:
        url: http or https.
        target: path. `TARGET.part` stays if the download fails.
        max_bytes: the size above which the download fails.
        stage: name under which progress in megabytes is reported.

    Raises:
        OSError: the download failed; the message is the reason, without the URL.
    """
    part = f"{target}.part"
    num_failed, most = 0, _size(part)
    while True:
        try:
            _receive(url, part, max_bytes, stage)
            break
        except _AttemptError as failure:
            # A download that makes progress is never abandoned.
            num_failed = 0 if _size(part) > most else num_failed + 1
            most = max(most, _size(part))
            if num_failed > len(BACK_OFF_S):
                raise OSError(str(failure)) from None
            wait = BACK_OFF_S[max(num_failed - 1, 0)]
            logger.warning("%s: %s; trying again in %g s.", url, failure, wait)
        time.sleep(wait)
    files.rename(part, target)


def _receive(url: str, part: str, max_bytes: int, stage: str) -> None:
    """Downloads the rest of a part, or the complete file.

    Raises:
        _AttemptError: it is still incomplete.
        OSError: another attempt would not help.
    """
    start = _size(part)
    headers = {"User-Agent": "bert_tf", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            _save(response, part, start, max_bytes, stage)
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"the server answered {error.code} {error.reason}".splitlines()[0]
        if error.code == 416:  # There are no further bytes.
            if error.headers.get("Content-Range") == f"bytes */{start}":
                return
            os.remove(part)  # It does not belong to the current file.
        failure = _AttemptError if error.code in _RETRIED else OSError
        raise failure(reason.rstrip(" .")) from None
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or str(error.reason)
        is_offline = isinstance(error.reason, socket.gaierror) and not start
        raise (OSError if is_offline else _AttemptError)(reason) from None
    except TimeoutError:
        raise _AttemptError(f"nothing was received for {TIMEOUT_S:g} s") from None
    except (ConnectionError, http.client.HTTPException) as error:
        raise _AttemptError(f"the connection broke ({error or 'no reason'})") from None


def _save(response: Any, part: str, start: int, max_bytes: int, stage: str) -> None:
    sent = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if sent is not None and int(sent[1]) == start:
        size, mode = int(sent[2]), "ab"
    else:  # The server sends the complete file.
        size, start, mode = int(response.headers.get("Content-Length", 0)), 0, "wb"
    total_mb = size / _BYTES_PER_MB or None
    with files.open_file(part, mode) as file:
        while chunk := response.read1(_CHUNK_BYTES):
            file.write(chunk)
            file.flush()
            start += len(chunk)
            progress_module.report(stage, start / _BYTES_PER_MB, total_mb, unit="MB")
            if max(start, size) > max_bytes:
                raise OSError(f"it has more than {max_bytes} bytes")
    if start < size:
        raise _AttemptError(f"the connection ended after {start} of {size} bytes")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
