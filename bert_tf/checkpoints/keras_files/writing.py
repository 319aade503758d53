"""Writes `.keras` and `.weights.h5` files, with Keras."""

import errno
import json
import os
import shutil
import tempfile
import zipfile
from typing import Any

import h5py
import keras

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.keras_files import archive
from bert_tf.checkpoints.keras_files import reading
from bert_tf.checkpoints.keras_files import settings as settings_module

# A pooler that other formats leave out is initialized, the same way in every file.
_POOLER_SEED = 12345
_CHUNK_BYTES = 1 << 20
_OVERHEAD_BYTES = 1 << 18  # Upper bound for HDF5 and the settings.


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a `Source`: Keras names weights by itself.

    Raises:
        ValueError: the source has no configuration.
    """
    config = source.required_config()
    known = {
        *checkpoint_names.encoder_names(config.num_hidden_layers),
        *source.head.row.weights,
    }
    return source_module.Placement(
        places={name: name for name in source.shapes if name in known},
        without_place=tuple(sorted(set(source.shapes) - known)),
    )


def write(source: source_module.Source, path: str | os.PathLike[str]) -> None:
    """Writes a `.keras` or a `.weights.h5` file, complete or not at all.

    The complete model is in memory once. A pooler that the source lacks gets a new
    model's values, which are the same every time.

    Args:
        source: `Source` with a configuration.
        path: the file; its suffix decides between the two.

    Raises:
        OSError: it cannot be written.
        ValueError: a different suffix, no configuration, or a missing weight.
    """
    path = os.fspath(path)
    suffix = next((end for end in reading.SUFFIXES if path.endswith(end)), None)
    if suffix is None:
        raise ValueError(
            f"{path}: expected a name that ends with {' or '.join(reading.SUFFIXES)}."
        )
    model = _model_of(source)
    beside = None if files.is_remote(path) else os.path.dirname(path) or "."
    if beside is not None:
        files.make_folders(beside)
    with tempfile.TemporaryDirectory(dir=beside, prefix=".keras.") as folder:
        _check_room(model, folder, path)
        saved = os.path.join(folder, f"saved{suffix}")
        if suffix == archive.ARCHIVE_SUFFIX:
            model.save(saved)
            _copy_archive(saved, path, source)
        else:
            model.save_weights(saved)
            _add_settings(saved, source)
            with open(saved, "rb") as old, files.complete_or_absent(path, "wb") as new:
                shutil.copyfileobj(old, new)


def _check_room(model: Any, folder: str, path: str) -> None:
    """Raises an OSError if the disk is too small for a file and its copy.

    If the disk fills up, HDF5 crashes the process instead of raising an error.
    """
    num_bytes = sum(weight.numpy().nbytes for weight in model.weights)
    if shutil.disk_usage(folder).free < 2 * (num_bytes + _OVERHEAD_BYTES):
        raise OSError(f"{path}: cannot be written: {os.strerror(errno.ENOSPC)}.")


def _model_of(source: source_module.Source) -> Any:
    """Returns a built model with the weights of a `Source`."""
    # A file must not depend on the default dtype of this process.
    model = checkpoint_heads.create_model(
        source.required_config(), source.head, dtype="float32"
    )
    variables = checkpoint_names.checkpoint_variables(model)
    missing = [name for name in variables if name not in source.shapes]
    source.check_complete(missing)
    if missing:
        _initialize_pooler(model)
    wanted = [name for name in variables if name in source.shapes]
    for name, array in source.read_each(wanted):
        if tuple(array.shape) != tuple(variables[name].shape):
            raise ValueError(
                f"{name} has shape {list(array.shape)} in {source.path}, expected "
                f"{list(variables[name].shape)}; pass the bert_config.json that "
                "belongs to it."
            )
        variables[name].assign(array)
    return model


def _initialize_pooler(model: Any) -> None:
    encoder = getattr(model, "bert", model)
    dense = encoder.pooler.dense
    initializer = keras.initializers.TruncatedNormal(
        stddev=model.config.initializer_range, seed=_POOLER_SEED
    )
    dense.kernel.assign(initializer(dense.kernel.shape))
    dense.bias.assign(keras.ops.zeros_like(dense.bias))


def _add_settings(path: str, source: source_module.Source) -> None:
    values = settings_module.values_of(source, with_vocabulary=False)
    values["config"] = source.required_config().to_dict()
    with h5py.File(path, "a") as weights:
        weights.attrs[archive.OWN_KEY] = json.dumps(values)


def _copy_archive(saved: str, path: str, source: source_module.Source) -> None:
    """Copies what Keras saved and adds to its metadata what Keras leaves out."""
    own = settings_module.values_of(source, with_vocabulary=True)
    with (
        zipfile.ZipFile(saved) as old,
        files.complete_or_absent(path, "wb") as file,
        zipfile.ZipFile(file, "w") as new,
    ):
        for info in old.infolist():
            if info.filename == archive.METADATA_MEMBER:
                values = {**json.loads(old.read(info)), archive.OWN_KEY: own}
                new.writestr(info.filename, json.dumps(values, ensure_ascii=False))
                continue
            # zipfile does not know the size in advance, so allow for more than 4 GB.
            with (
                old.open(info) as source_member,
                new.open(info.filename, "w", force_zip64=True) as target_member,
            ):
                shutil.copyfileobj(source_member, target_member, _CHUNK_BYTES)
