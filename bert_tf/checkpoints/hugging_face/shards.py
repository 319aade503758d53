"""The files of a folder that hold weights: model.safetensors, or several with an index.

Everything here speaks of Hugging Face's own names and layouts.
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import struct
import tempfile

import numpy as np
import safetensors

from bert_tf import files

NAME = "model.safetensors"
INDEX_NAME = f"{NAME}.index.json"
# transformers' limit for one file.
MAX_SHARD_BYTES = 5 * 10**9
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
# Weights of other frameworks that a folder may hold in place of safetensors, and what
# `from_pretrained` of transformers must be told to read them.
_FOREIGN = {
    "pytorch_model.bin": "",
    "pytorch_model.bin.index.json": "",
    "tf_model.h5": ", from_tf=True",
    "flax_model.msgpack": ", from_flax=True",
}
_ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")
# dtypes of a safetensors file that hold a weight.
_FLOATS = {"F16", "BF16", "F32", "F64"}
# The data of a safetensors file starts at a multiple of this.
_ALIGNMENT = 8
# Ends the names of files that browsers and hub clients have not downloaded whole.
_UNFINISHED = (".part", ".incomplete", ".crdownload", ".download")
_LFS_POINTER = b"version https://git-lfs"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """Where a tensor is; nothing of its values is in memory."""

    path: str  # The file that holds it.
    dtype: str  # As safetensors calls it, such as "BF16".
    shape: tuple[int, ...]

    @property
    def is_float(self):
        """Whether it can be a weight: integers are buffers or quantized weights."""
        return self.dtype in _FLOATS


def holds_weights(names):
    """Returns whether names of files in a folder include a model's weights."""
    known = {NAME, INDEX_NAME, *_FOREIGN, *_ADAPTERS}
    return any(name in known or _SHARD.fullmatch(name) for name in names)


def stored_tensors(folder, class_name):
    """Returns {name: `StoredTensor`} of all weight files of a folder.

    Args:
        folder: path.
        class_name: class of transformers that the configuration names; for the advice
            on how to convert a pickled file.

    Raises:
        FileNotFoundError: there are no weights, or a shard is missing.
        ValueError: the weights are in a format that safetensors does not read, or a
            file is damaged.
    """
    names = files.list_folder(folder)
    if NAME in names:
        return _tensors_of(os.path.join(folder, NAME))
    if INDEX_NAME in names:
        return _tensors_of_shards(folder, names)
    _check_not_foreign(folder, names, class_name)
    if any(_SHARD.fullmatch(name) for name in names):
        raise FileNotFoundError(
            f"{folder} has shards such as model-00001-of-00002.safetensors, but no "
            f"{INDEX_NAME}; copy it from where the shards are from."
        )
    unfinished = [name for name in names if name.endswith(_UNFINISHED)]
    told = ""
    if unfinished:
        told = f", but {unfinished[0]}, a download that did not finish: go on with it"
    raise FileNotFoundError(f"{folder} has no {NAME} and no {INDEX_NAME}{told}.")


def read_each(tensors):
    """Yields (key, array) of some tensors in their order, one in memory at a time.

    Args:
        tensors: {any key: (name, `StoredTensor`)}.

    Raises:
        OSError: a file is gone.
        ValueError: a file is damaged.
    """
    with contextlib.ExitStack() as stack:
        open_files = {}
        for key, (name, tensor) in tensors.items():
            if tensor.path not in open_files:
                file = stack.enter_context(_opened(tensor.path))
                open_files[tensor.path] = file
            if tensor.dtype == "BF16":
                import ml_dtypes  # noqa: F401 (gives NumPy the dtype)
            yield key, open_files[tensor.path].get_tensor(name)


def write(folder, shapes, read_each, max_shard_bytes=MAX_SHARD_BYTES):
    """Writes float32 tensors: one file, or shards and then their index.

    Args:
        folder: path of a folder that exists.
        shapes: {name: shape}, in the order of the shards.
        read_each: function of names, yields (name, float32 array).
        max_shard_bytes: more are written as several files, each at most that large
            unless one tensor is larger.

    Raises:
        OSError: it cannot be written.
    """
    shards = _divided(shapes, max_shard_bytes)
    if len(shards) == 1:
        _write_file(os.path.join(folder, NAME), read_each(shards[0]))
        return
    weight_map = {}
    for number, names in enumerate(shards, start=1):
        shard = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        _write_file(os.path.join(folder, shard), read_each(names))
        weight_map |= dict.fromkeys(names, shard)
    sizes = map(_num_bytes, shapes.values())
    index = {"metadata": {"total_size": sum(sizes)}, "weight_map": weight_map}
    with files.complete_or_absent(os.path.join(folder, INDEX_NAME)) as file:
        file.write(json.dumps(index, indent=2, sort_keys=True) + "\n")


def _divided(shapes, max_bytes):
    shards, size = [[]], 0
    for name, shape in shapes.items():
        if shards[-1] and size + _num_bytes(shape) > max_bytes:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += _num_bytes(shape)
    return shards


def _num_bytes(shape):
    return 4 * int(np.prod(shape, dtype=np.int64))


def _write_file(path, tensors):
    # safetensors' own `save_file` needs a local path and a second copy of everything,
    # and hides the file from others. The format is a length, a header and the bytes.
    arrays = {name: np.ascontiguousarray(array, "<f4") for name, array in tensors}
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": "F32",
            "shape": array.shape,
            "data_offsets": (start, end),
        }
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    with files.complete_or_absent(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


def _tensors_of_shards(folder, names):
    weight_map = _weight_map(os.path.join(folder, INDEX_NAME))
    shards = sorted(set(weight_map.values()))
    missing = [shard for shard in shards if shard not in names]
    if missing:
        raise FileNotFoundError(
            f"{folder}: {len(missing)} of {len(shards)} shards missing: "
            f"{', '.join(missing)}; copy them to the others."
        )
    tensors = {}
    for shard in shards:
        tensors |= _tensors_of(os.path.join(folder, shard))
    lost = sorted(name for name in weight_map if name not in tensors)
    if lost:
        raise ValueError(
            f"{os.path.join(folder, INDEX_NAME)} says that {lost[0]} is in "
            f"{weight_map[lost[0]]}, but it is not ({len(lost)} such tensors); the "
            "files do not belong together: copy all of them again."
        )
    return tensors


def _weight_map(path):
    with files.open_file(path, "rb") as file:
        text = file.read()
    try:
        weight_map = json.loads(text)["weight_map"]
        shards = set(weight_map.values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is no index of shards: expected JSON with a weight_map from "
            "tensors to files."
        ) from error
    for shard in shards:
        if not isinstance(shard, str) or os.path.basename(shard) != shard:
            raise ValueError(
                f"{path} names the shard {shard!r}; expected a file beside it."
            )
    return weight_map


def _tensors_of(path):
    with _opened(path) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        return {
            name: StoredTensor(
                path=path, dtype=part.get_dtype(), shape=tuple(part.get_shape())
            )
            for name, part in slices.items()
        }


@contextlib.contextmanager
def _opened(path):
    with _local(path) as local:
        try:
            with safetensors.safe_open(local, framework="numpy") as file:
                yield file
        except safetensors.SafetensorError as error:
            raise ValueError(_what_is_wrong(path, error)) from error
        except FileNotFoundError:
            raise
        except OSError as error:  # Such as a folder, which it does not name.
            raise OSError(f"{path} cannot be read: {error}.") from error


@contextlib.contextmanager
def _local(path):
    """Yields the path of a file on this machine: of itself, or of a copy."""
    if not files.is_remote(path):
        yield path
        return
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as copy:
        with files.open_file(path, "rb") as file:
            shutil.copyfileobj(file, copy, 1 << 24)
        copy.flush()
        yield copy.name


def _what_is_wrong(path, error):
    with files.open_file(path, "rb") as file:
        start = file.read(len(_LFS_POINTER))
    if start == _LFS_POINTER:
        return (
            f"{path} is a Git LFS pointer and not the weights; run `git lfs pull` in "
            "the folder that it was cloned to."
        )
    reason = str(error).removeprefix("Error while deserializing header: ")
    return (
        f"{path} cannot be read: it is cut short or damaged ({files.size(path)} bytes; "
        f"{reason}); copy or download it again."
    )


def _check_not_foreign(folder, names, class_name):
    for name, argument in _FOREIGN.items():
        if name not in names:
            continue
        version = "transformers<5" if argument else "transformers"
        raise ValueError(
            f"{folder} has {name}, but no {NAME}; where {version} is installed, "
            f'convert it by: python -c "import transformers; transformers.{class_name}'
            f".from_pretrained('{folder}'{argument}).save_pretrained('{folder}')\""
        )
    if any(name in names for name in _ADAPTERS):
        raise ValueError(
            f"{folder} holds an adapter and no model; merge it into its model with "
            "the library peft (merge_and_unload), save that and give its folder."
        )
