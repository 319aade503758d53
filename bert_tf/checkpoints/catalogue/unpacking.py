"""The zip of a released model, unpacked into a folder that is whole or not there.

Nothing of the zip is trusted: no name in it becomes a path, and what would be too
large is refused before it is unpacked.
"""

import os
import shutil
import stat
import uuid
import zipfile
import zlib

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints.release import bundle
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module

CHECKPOINT = "bert_model.ckpt"
CONFIG_FILE = "bert_config.json"
VOCAB_FILE = "vocab.txt"
NEEDED = (
    f"{CHECKPOINT}.data-00000-of-00001",
    f"{CHECKPOINT}.index",
    CONFIG_FILE,
    VOCAB_FILE,
)
# The graph of 2018, which nothing reads; it belongs to the release all the same.
_WANTED = (*NEEDED, f"{CHECKPOINT}.meta")
# Ends the name of a folder that is being filled.
_UNFINISHED = ".unpacking"
_CHUNK_BYTES = 1 << 20
_BYTES_A_MB = 1e6
# A checkpoint may have both slots of the optimizer; the rest is graph and vocabulary.
_BYTES_A_PARAMETER = 3 * 4
_MAX_OTHER_BYTES = 1 << 26
# Weights hardly compress, a graph does tenfold and more.
_MAX_EXPANSION = 200


def max_bytes(model):
    """Returns the most bytes that a released model may have, zipped or not.

    Args:
        model: `released.ReleasedModel`.
    """
    hidden = model.hidden_size
    # 12 H^2 a layer, and the tables; biases are far less than the slack.
    parameters = 12 * hidden**2 * model.num_layers + (model.vocab_size + 600) * hidden
    return _BYTES_A_PARAMETER * parameters + _MAX_OTHER_BYTES


def missing(folder):
    """Returns the names of a released model's files that a folder lacks."""
    return [name for name in NEEDED if not os.path.exists(os.path.join(folder, name))]


def is_unpacked(folder):
    """Returns whether a folder has all files of a released model."""
    return not missing(folder)


def unpack(zip_file, folder, model, *, progress=progress_module.silent):
    """Unpacks the zip of a released model, and checks what was in it.

    Args:
        zip_file: path.
        folder: path that is not there yet. It appears when all of it is well.
        model: `released.ReleasedModel`; sizes are compared with it.
        progress: `progress.Progress`; counts megabytes.

    Raises:
        OSError: the folder cannot be written.
        ValueError: the zip is cut short, damaged, hostile, or holds something else.
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


def _remove_unfinished(parent, name):
    """Removes what a killed process left; whoever unpacks has the lock."""
    for found in files.list_folder(parent):
        if found.startswith(f".{name}.") and found.endswith(_UNFINISHED):
            shutil.rmtree(os.path.join(parent, found), ignore_errors=True)


def _extract(zip_file, folder, model, progress):
    with files.open_file(zip_file, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise ValueError(_not_a_zip(zip_file, error)) from None
        with archive:
            members = _members(zip_file, archive.infolist(), max_bytes(model))
            total = sum(info.file_size for info in members.values()) / _BYTES_A_MB
            done = 0.0
            for name, info in members.items():
                target = os.path.join(folder, name)
                for size in _extract_one(zip_file, archive, info, target):
                    done += size / _BYTES_A_MB
                    progress(f"unpack {model.name}", done, total, unit="MB")


def _extract_one(zip_file, archive, info, target):
    """Writes a member into a file of our own naming; yields bytes written."""
    with files.complete_or_absent(target, "wb") as file:
        try:
            with archive.open(info) as member:
                while chunk := member.read(_CHUNK_BYTES):
                    file.write(chunk)
                    yield len(chunk)
        # What zipfile and zlib make of damaged bytes; the disk's errors are OSErrors.
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(
                f"{zip_file}: {info.filename} in it is damaged ({error}); download it "
                "again."
            ) from None
        except (NotImplementedError, RuntimeError) as error:
            raise ValueError(
                f"{zip_file}: {info.filename} cannot be unpacked: {error}."
            ) from None


def _members(zip_file, infos, limit):
    """Returns {our file name: member} of what is wanted, once all are found harmless.

    Raises:
        ValueError: a name leads out of the folder, a link, a file twice, a password,
            or something missing or too large.
    """
    found = {}
    for info in infos:
        _check_harmless(zip_file, info)
        # Old zips have a folder around the files, those of 2020 have none.
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


def _check_harmless(zip_file, info):
    # zipfile puts "/" for "\\" where that separates folders; a name keeps its own.
    names = {info.filename, info.orig_filename}
    parts = [part for name in names for part in name.replace("\\", "/").split("/")]
    is_absolute = any(name.startswith(("/", "\\")) for name in names)
    if is_absolute or ".." in parts or any(":" in part for part in parts):
        raise ValueError(
            f"{zip_file} has a file {info.orig_filename!r}, whose name leads out of "
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


def _check(zip_file, folder, model):
    """Compares configuration, vocabulary and checkpoint with the released sizes."""
    try:
        config = config_module.BertConfig.from_json_file(
            os.path.join(folder, CONFIG_FILE)
        )
        vocabulary = vocabulary_module.Vocabulary.load(os.path.join(folder, VOCAB_FILE))
        shapes = bundle.read_names_and_shapes(os.path.join(folder, CHECKPOINT))
    except ValueError as error:
        # The folder is gone when this is read; its name would help nobody.
        sentence = str(error).replace(f"{folder}{os.sep}", "")
        raise ValueError(f"{zip_file}: {sentence}") from None
    table = shapes.get("bert/embeddings/word_embeddings", ["none"])
    expected = [model.vocab_size, model.hidden_size]
    found = {
        f"hidden_size in {CONFIG_FILE}": (config.hidden_size, model.hidden_size),
        f"num_hidden_layers in {CONFIG_FILE}": (
            config.num_hidden_layers,
            model.num_layers,
        ),
        f"vocab_size in {CONFIG_FILE}": (config.vocab_size, model.vocab_size),
        f"the number of pieces in {VOCAB_FILE}": (len(vocabulary), model.vocab_size),
        f"the shape of word_embeddings in {CHECKPOINT}": (list(table), expected),
    }
    for what, (got, wanted) in found.items():
        if got != wanted:
            raise ValueError(
                f"{zip_file}: {what} is {got}, expected {wanted} for {model.name}; "
                "this is not the released file."
            )


def _not_a_zip(zip_file, error):
    with files.open_file(zip_file, "rb") as file:
        start = file.read(20)
    if start.startswith(b"PK"):
        return f"{zip_file} is cut short or damaged ({error}); download it again."
    return (
        f"{zip_file} is no zip: it begins with {start!r} (a page of a proxy or of a "
        "log-in, perhaps); download it again."
    )
