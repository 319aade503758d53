"""Opens `.keras` and `.weights.h5` files without creating anything that they describe.

A `.keras` file is a zip of `config.json`, `metadata.json` and `model.weights.h5`.
"""

import contextlib
import errno
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import hdf5

SUFFIX = ".keras"
WEIGHTS_SUFFIX = ".weights.h5"
METADATA_MEMBER = "metadata.json"
_WEIGHTS_MEMBER = "model.weights.h5"
_CHUNK_BYTES = 1 << 20
# What zipfile and zlib raise for damaged, encrypted or unsupported members.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
)


def read_members(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the JSON members of a `.keras` file.

    Returns:
        The model as Keras serialized it (class_name, config, ...), and the metadata:
        keras_version, and what this package adds.
    """
    with _archive(path) as archive:
        config = _read_json(archive, "config.json", path)
        return config, _read_json(archive, METADATA_MEMBER, path)


@contextlib.contextmanager
def opened_weights(path: str) -> Iterator[Any]:
    """Yields the `h5py.File` with the weights of either file."""
    with contextlib.ExitStack() as stack:
        local = None
        if path.endswith(SUFFIX):
            # Keras can read them within the zip, but it seeks in them, and zipfile then
            # reads the member again from its start.
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            local = os.path.join(folder, _WEIGHTS_MEMBER)
            with _archive(path) as archive, open(local, "wb") as copy:
                shutil.copyfileobj(archive.open(_WEIGHTS_MEMBER), copy, _CHUNK_BYTES)
        # Keras before 3.15 reads values of other files.
        yield stack.enter_context(hdf5.opened(path, local))


@contextlib.contextmanager
def _archive(path: str) -> Iterator[zipfile.ZipFile]:
    """Yields a `.keras` file; reading a member to its end also checks its checksum."""
    try:
        with files.open_file(path, "rb") as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(set(names)) != len(names):
                raise ValueError(
                    f"{path} has a member twice; expected a file that model.save wrote."
                )
            yield archive
    except KeyError as error:
        raise ValueError(
            f"{path}: {error.args[0]}; expected a file that model.save wrote, with "
            "config.json, metadata.json and model.weights.h5."
        ) from None
    except (*_ZIP_ERRORS, OSError) as error:
        # A wrong offset in the list of members is an EINVAL.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise companion_files.damaged(path, error) from None


def _read_json(archive: zipfile.ZipFile, name: str, path: str) -> dict[str, Any]:
    text = archive.read(name)
    values = files.parse_json(text, f"{path}: its {name}", advice="save it again")
    if not isinstance(values, dict):
        raise ValueError(f"{path}: its {name} is not a JSON object.")
    return values
