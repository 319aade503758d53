"""Provides released models by name: downloaded, unpacked and cached.

The zips are not trusted: members are looked up by the names of the released files, so
no name in a zip becomes a path, and one that would unpack to too many bytes is refused.
"""

import logging
import os
import shutil
import sys
import zipfile
import zlib

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import release
from bert_tf.checkpoints.catalogue import downloading
from bert_tf.checkpoints.catalogue import models
from bert_tf.checkpoints.release import bundle
from bert_tf.modeling import config as config_module
from bert_tf.modeling import released
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "BERT_TF_CACHE"
_CONFIG_FILE = companion_files.CONFIG_FILE
_VOCAB_FILE = companion_files.VOCAB_FILE
_CHECKPOINT = release.PREFIX
_NEEDED = (
    f"{_CHECKPOINT}.data-00000-of-00001",
    f"{_CHECKPOINT}.index",
    _CONFIG_FILE,
    _VOCAB_FILE,
)
# The graph of 2018. Nothing here reads it, but it belongs to the release.
_WANTED = (*_NEEDED, f"{_CHECKPOINT}.meta")
# A checkpoint may include both optimizer slots; the rest is graph and vocabulary.
_BYTES_PER_PARAMETER = 3 * 4
_MAX_OTHER_BYTES = 1 << 26
_NOT_RELEASED = "this is not the released file"


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
    if name == entry.folder == models.find("bert-base-uncased").folder:
        logger.warning(
            "%s is the model of 2020; that of 2018 is called bert-base-uncased.",
            name,
        )
    if not _missing(folder):
        return folder
    files.make_folders(os.path.dirname(folder))
    with locks.output_file(folder, waits=True):
        if _missing(folder):  # Another process may have fetched it meanwhile.
            _fetch(entry, folder, progress)
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


def _missing(folder: str) -> list[str]:
    return [name for name in _NEEDED if not os.path.exists(os.path.join(folder, name))]


def _fetch(
    entry: models.Entry, folder: str, progress: progress_module.Progress
) -> None:
    if os.path.lexists(folder):
        raise ValueError(
            f"{folder} exists, but lacks {', '.join(_missing(folder))}; remove it, or "
            "restore the missing files."
        )
    by_hand = f"{folder}.zip"
    if os.path.exists(by_hand):
        logger.info("Using %s as %s.", by_hand, entry.model.name)
        _unpack(by_hand, folder, entry.model)
        return
    downloaded = f"{folder}.zip.download"
    if not os.path.exists(downloaded):
        try:
            downloading.download(
                entry.url,
                downloaded,
                max_bytes=_max_bytes(entry.model),
                stage=f"download {entry.model.name}",
                progress=progress,
            )
        except OSError as error:
            reason = str(error).rstrip(".")
            raise OSError(
                f"{entry.url} cannot be downloaded: {reason}. What was received is "
                f"kept. Without a network, copy that file to {by_hand}; it is then "
                "used instead."
            ) from None
    try:
        _unpack(downloaded, folder, entry.model)
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
    temporary = files.temporary_path(folder)  # The lock removes it after a kill.
    files.make_folders(temporary)
    try:
        with zipfile.ZipFile(zip_file) as archive:
            for name, member in _members(zip_file, archive, model).items():
                with (
                    archive.open(member) as packed,
                    open(os.path.join(temporary, name), "wb") as file,
                ):
                    shutil.copyfileobj(packed, file, 1 << 20)
                    os.fsync(file.fileno())
        _check(zip_file, temporary, model)
        os.rename(temporary, folder)
    # What zipfile and zlib raise for damaged, encrypted or unsupported members.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise ValueError(
            f"{zip_file} is not the released file: it is truncated, damaged or not a "
            f"zip ({error}); download it again."
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _members(
    zip_file: str, archive: zipfile.ZipFile, model: released.ReleasedModel
) -> dict[str, zipfile.ZipInfo]:
    """Returns {released file name: member}.

    Raises:
        ValueError: a file is missing or there twice, or all are too large.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        # The zips of 2018 and 2019 have a folder around the files, those of 2020 none.
        name = info.filename.rpartition("/")[2]
        if name in members:
            raise ValueError(f"{zip_file} has {name} twice; {_NOT_RELEASED}.")
        if name in _WANTED:
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
        config = config_module.BertConfig.from_json_file(
            os.path.join(folder, _CONFIG_FILE)
        )
        vocabulary = vocabulary_module.Vocabulary.load(
            os.path.join(folder, _VOCAB_FILE)
        )
        shapes = bundle.read_names_and_shapes(os.path.join(folder, _CHECKPOINT))
    except ValueError as error:
        # The temporary folder is removed, so its name would not help.
        sentence = str(error).replace(f"{folder}{os.sep}", "")
        raise ValueError(f"{zip_file}: {sentence}") from None
    sizes = {
        f"hidden_size in {_CONFIG_FILE}": (config.hidden_size, model.hidden_size),
        f"num_hidden_layers in {_CONFIG_FILE}": (
            config.num_hidden_layers,
            model.num_layers,
        ),
        f"vocab_size in {_CONFIG_FILE}": (config.vocab_size, model.vocab_size),
        f"the number of pieces in {_VOCAB_FILE}": (len(vocabulary), model.vocab_size),
        f"the shape of word_embeddings in {_CHECKPOINT}": (
            shapes.get(checkpoint_names.WORD_EMBEDDINGS),
            [model.vocab_size, model.hidden_size],
        ),
    }
    for what, (got, expected) in sizes.items():
        if got != expected:
            raise ValueError(
                f"{zip_file}: {what} is {got}, expected {expected} for {model.name}; "
                f"{_NOT_RELEASED}."
            )
