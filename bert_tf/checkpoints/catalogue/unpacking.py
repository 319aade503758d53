"""Unpacks the zip of a released model into a folder: complete or not at all.

The zip is not trusted: no name in it becomes a path, and a zip that would unpack to too
many bytes is refused in advance.
"""

import os
import shutil
import stat
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from collections.abc import Sequence

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import folder as release_folder
from bert_tf.modeling import config as config_module
from bert_tf.modeling import released
from bert_tf.tokenization import vocabulary as vocabulary_module

CHECKPOINT = release_folder.PREFIX
CONFIG_FILE = companion_files.CONFIG_FILE
VOCAB_FILE = companion_files.VOCAB_FILE
NEEDED = (
    f"{CHECKPOINT}.data-00000-of-00001",
    f"{CHECKPOINT}.index",
    CONFIG_FILE,
    VOCAB_FILE,
)
# The graph of 2018. Nothing here reads it, but it belongs to the release.
_WANTED = (*NEEDED, f"{CHECKPOINT}.meta")
# Suffix of a folder that is still being filled.
_UNFINISHED = ".unpacking"
_CHUNK_BYTES = 1 << 20
_BYTES_PER_MB = 1e6
# A checkpoint may include both optimizer slots; the rest is graph and vocabulary.
_BYTES_PER_PARAMETER = 3 * 4
_MAX_OTHER_BYTES = 1 << 26
# Weights hardly compress, but a graph may compress more than tenfold.
_MAX_EXPANSION = 200


def max_bytes(model: released.ReleasedModel) -> int:
    """Returns an upper bound of a released model's size in bytes, zipped or not.

    Args:
        model: `released.ReleasedModel`.
    """
    hidden = model.hidden_size
    # 12 H^2 per layer, and the tables; biases are covered by the slack.
    parameters = 12 * hidden**2 * model.num_layers + (model.vocab_size + 600) * hidden
    return _BYTES_PER_PARAMETER * parameters + _MAX_OTHER_BYTES


def missing(folder: str) -> list[str]:
    """Returns the names of a released model's files that a folder lacks."""
    return [name for name in NEEDED if not os.path.exists(os.path.join(folder, name))]


def is_unpacked(folder: str) -> bool:
    """Returns whether a folder has all files of a released model."""
    return not missing(folder)


def unpack(
    zip_file: str,
    folder: str,
    model: released.ReleasedModel,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> None:
    """Unpacks the zip of a released model and checks its content.

    Args:
        zip_file: path.
        folder: path that does not exist yet; it appears when all checks have passed.
        model: the model whose sizes are expected.
        progress: reports megabytes.

    Raises:
        OSError: the folder cannot be written.
        ValueError: the zip is truncated, damaged, hostile, or of something else.
    """
    parent, name = os.path.split(os.path.abspath(folder))
    files.make_folders(parent)
    _remove_unfinished(parent, name)
    temporary = os.path.join(parent, f".{name}.{uuid.uuid4().hex}{_UNFINISHED}")
    files.make_folders(temporary)
    try:
        _extract(zip_file, temporary, model, progress)
        _check(zip_file, temporary, model)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _remove_unfinished(parent: str, name: str) -> None:
    """Removes what a killed process left behind; the caller holds the lock."""
    for found in files.list_folder(parent):
        if found.startswith(f".{name}.") and found.endswith(_UNFINISHED):
            shutil.rmtree(os.path.join(parent, found), ignore_errors=True)


def _extract(
    zip_file: str,
    folder: str,
    model: released.ReleasedModel,
    progress: progress_module.Progress,
) -> None:
    with files.open_file(zip_file, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise ValueError(_not_a_zip(zip_file, error)) from None
        with archive:
            members = _members(zip_file, archive.infolist(), max_bytes(model))
            total = sum(info.file_size for info in members.values()) / _BYTES_PER_MB
            done = 0.0
            for name, info in members.items():
                target = os.path.join(folder, name)
                for size in _extract_one(zip_file, archive, info, target):
                    done += size / _BYTES_PER_MB
                    progress(f"unpack {model.name}", done, total, unit="MB")


def _extract_one(
    zip_file: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: str
) -> Iterator[int]:
    """Writes a member into a file that we name; yields numbers of bytes written."""
    with files.complete_or_absent(target, "wb") as file:
        try:
            with archive.open(info) as member:
                while chunk := member.read(_CHUNK_BYTES):
                    file.write(chunk)
                    yield len(chunk)
        # Raised by zipfile and zlib for damaged bytes; errors of the disk are OSErrors.
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(
                f"{zip_file}: {info.filename} in it is damaged ({error}); download it "
                "again."
            ) from None
        except (NotImplementedError, RuntimeError) as error:
            raise ValueError(
                f"{zip_file}: {info.filename} cannot be unpacked: {error}."
            ) from None


def _members(
    zip_file: str, infos: Sequence[zipfile.ZipInfo], limit: int
) -> dict[str, zipfile.ZipInfo]:
    """Returns {our file name: member} of the needed files, after checking all members.

    Raises:
        ValueError: a name points outside the folder; there is a link, a password or a
            duplicate; or something is missing or too large.
    """
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        _check_harmless(zip_file, info)
        # The zips of 2018 and 2019 have a folder around the files, those of 2020 none.
        name = info.filename.rpartition("/")[2]
        if name not in _WANTED:
            continue
        if name in found:
            raise ValueError(
                f"{zip_file} has {name} twice: {found[name].filename} and "
                f"{info.filename}; this is not the released file."
            )
        found[name] = info
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise ValueError(
            f"{zip_file} has no {', '.join(missing)}; expected the zip of a released "
            "model."
        )
    size = sum(info.file_size for info in found.values())
    if size > limit:
        raise ValueError(
            f"{zip_file} would unpack to {size} bytes, expected at most {limit} for a "
            "model of this size; this is not the released file."
        )
    return found


def _check_harmless(zip_file: str, info: zipfile.ZipInfo) -> None:
    # On some systems zipfile replaces "\\" by "/"; orig_filename is unchanged.
    names = {info.filename, info.orig_filename}
    parts = [part for name in names for part in name.replace("\\", "/").split("/")]
    is_absolute = any(name.startswith(("/", "\\")) for name in names)
    if is_absolute or ".." in parts or any(":" in part for part in parts):
        raise ValueError(
            f"{zip_file} has a file {info.orig_filename!r}, whose name points outside "
            "its folder; this is not the released file."
        )
    if stat.S_ISLNK(info.external_attr >> 16):
        raise ValueError(
            f"{zip_file} has a link {info.filename!r}; this is not the released file."
        )
    if info.flag_bits & 1:
        raise ValueError(
            f"{zip_file}: {info.filename} is encrypted; this is not the released file."
        )
    if info.file_size > _CHUNK_BYTES + _MAX_EXPANSION * info.compress_size:
        raise ValueError(
            f"{zip_file}: {info.filename} would unpack from {info.compress_size} to "
            f"{info.file_size} bytes; this is not the released file."
        )


def _check(zip_file: str, folder: str, model: released.ReleasedModel) -> None:
    """Compares configuration, vocabulary and checkpoint with the released sizes."""
    try:
        config = config_module.BertConfig.from_json_file(
            os.path.join(folder, CONFIG_FILE)
        )
        vocabulary = vocabulary_module.Vocabulary.load(os.path.join(folder, VOCAB_FILE))
        shapes = bundle.read_names_and_shapes(os.path.join(folder, CHECKPOINT))
    except ValueError as error:
        # The temporary folder is removed, so its name would not help.
        sentence = str(error).replace(f"{folder}{os.sep}", "")
        raise ValueError(f"{zip_file}: {sentence}") from None
    table: list[object] = [*shapes.get(checkpoint_names.WORD_EMBEDDINGS, ["none"])]
    expected = [model.vocab_size, model.hidden_size]
    found: dict[str, tuple[object, object]] = {
        f"hidden_size in {CONFIG_FILE}": (config.hidden_size, model.hidden_size),
        f"num_hidden_layers in {CONFIG_FILE}": (
            config.num_hidden_layers,
            model.num_layers,
        ),
        f"vocab_size in {CONFIG_FILE}": (config.vocab_size, model.vocab_size),
        f"the number of pieces in {VOCAB_FILE}": (len(vocabulary), model.vocab_size),
        f"the shape of word_embeddings in {CHECKPOINT}": (table, expected),
    }
    for what, (got, wanted) in found.items():
        if got != wanted:
            raise ValueError(
                f"{zip_file}: {what} is {got}, expected {wanted} for {model.name}; "
                "this is not the released file."
            )


def _not_a_zip(zip_file: str, error: Exception) -> str:
    with files.open_file(zip_file, "rb") as file:
        start = file.read(20)
    if start.startswith(b"PK"):
        return f"{zip_file} is truncated or damaged ({error}); download it again."
    return (
        f"{zip_file} is not a zip file: it begins with {start!r} (perhaps a proxy's "
        "error page or a login page); download it again."
    )
