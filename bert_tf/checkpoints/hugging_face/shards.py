"""Reads model.safetensors, or several such files with an index; writes one file.

A folder without them may have tf_model.h5, which is also read. Names and layouts in
this module are those of model.safetensors.
"""

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints.hugging_face import h5_weights

NAME = "model.safetensors"
INDEX_NAME = f"{NAME}.index.json"
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
# Weight files of other frameworks -> the argument with which `from_pretrained` of
# transformers reads them.
_FOREIGN = {
    "pytorch_model.bin": "",
    "pytorch_model.bin.index.json": "",
    "tf_model.h5.index.json": ", from_tf=True",
    "flax_model.msgpack": ", from_flax=True",
}
_ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")
# dtypes of weights in a safetensors file.
_FLOATS = {"F16", "BF16", "F32", "F64"}
_LFS_POINTER = b"version https://git-lfs"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """Where a tensor is stored; its values are not in memory."""

    path: str
    dtype: str  # As safetensors calls it, such as "BF16".
    shape: tuple[int, ...]
    h5: h5_weights.StoredWeight | None = None  # Its location in tf_model.h5.

    @property
    def is_float(self) -> bool:
        """Whether it can be a weight: integers are constants or quantized weights."""
        return self.dtype in _FLOATS


def holds_weights(names: Iterable[str]) -> bool:
    """Returns whether a folder's file names include a model's weights."""
    known = {NAME, INDEX_NAME, h5_weights.NAME, *_FOREIGN, *_ADAPTERS}
    return any(name in known or _SHARD.fullmatch(name) for name in names)


def stored_tensors(folder: str, class_name: str) -> dict[str, StoredTensor]:
    """Returns {name: `StoredTensor`} of all weight files of a folder.

    Args:
        folder: path.
        class_name: the configuration's class of transformers; for the advice on how to
            convert a pickled file.

    Raises:
        FileNotFoundError: there are no weights, or a shard is missing.
        ValueError: the weights are pickled, or a file is damaged.
    """
    names = files.list_folder(folder)
    if NAME in names:
        return _tensors_of(os.path.join(folder, NAME))
    if INDEX_NAME in names:
        return _tensors_of_shards(folder, names)
    if h5_weights.NAME in names:
        return _tensors_of_h5(os.path.join(folder, h5_weights.NAME))
    _check_not_foreign(folder, names, class_name)
    if any(_SHARD.fullmatch(name) for name in names):
        raise FileNotFoundError(
            f"{folder} has shards such as model-00001-of-00002.safetensors, but no "
            f"{INDEX_NAME}; copy it from the source of the shards."
        )
    raise FileNotFoundError(f"{folder} has no {NAME} and no {INDEX_NAME}.")


def read_each(
    tensors: Mapping[str, tuple[str, StoredTensor]],
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields (key, array) of some tensors in their order, one in memory at a time.

    Args:
        tensors: {any key: (name, `StoredTensor`)}.

    Raises:
        OSError: a file has disappeared.
        ValueError: a file is damaged.
    """
    with contextlib.ExitStack() as stack:
        open_files: dict[str, Any] = {}
        for key, (name, tensor) in tensors.items():
            if tensor.path not in open_files:
                opened = _opened if tensor.h5 is None else h5_weights.opened
                file = stack.enter_context(opened(tensor.path))
                open_files[tensor.path] = file
            if tensor.h5 is not None:
                yield key, h5_weights.read(open_files[tensor.path], tensor.h5)
                continue
            if tensor.dtype == "BF16":
                import ml_dtypes  # noqa: F401 (registers bfloat16 with NumPy)
            yield key, open_files[tensor.path].get_tensor(name)


def write(folder: str, tensors: Iterable[tuple[str, np.ndarray]]) -> None:
    """Writes model.safetensors with float32 tensors; all are in memory at once.

    Args:
        folder: an existing folder.
        tensors: (name, float32 array).

    Raises:
        OSError: it cannot be written.
    """
    arrays = {name: np.ascontiguousarray(array, "<f4") for name, array in tensors}
    # transformers only reads files whose metadata names the framework.
    content = safetensors.numpy.save(arrays, {"format": "pt"})
    with files.complete_or_absent(os.path.join(folder, NAME), "wb") as file:
        file.write(content)


def _tensors_of_shards(folder: str, names: Sequence[str]) -> dict[str, StoredTensor]:
    weight_map = _weight_map(os.path.join(folder, INDEX_NAME))
    shards = sorted(set(weight_map.values()))
    missing = [shard for shard in shards if shard not in names]
    if missing:
        raise FileNotFoundError(
            f"{folder}: {len(missing)} of {len(shards)} shards are missing: "
            f"{', '.join(missing)}; copy them into the folder."
        )
    tensors: dict[str, StoredTensor] = {}
    for shard in shards:
        tensors |= _tensors_of(os.path.join(folder, shard))
    lost = sorted(name for name in weight_map if name not in tensors)
    if lost:
        raise ValueError(
            f"{os.path.join(folder, INDEX_NAME)} lists {lost[0]} in "
            f"{weight_map[lost[0]]}, which lacks it ({len(lost)} such tensors); the "
            "files belong to different models: copy all of them again."
        )
    return tensors


def _weight_map(path: str) -> dict[str, str]:
    with files.open_file(path, "rb") as file:
        text = file.read()
    try:
        weight_map = json.loads(text)["weight_map"]
        shards = set(weight_map.values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not an index of shards: expected JSON with a weight_map from "
            "tensors to files."
        ) from error
    for shard in shards:
        if not isinstance(shard, str) or os.path.basename(shard) != shard:
            raise ValueError(
                f"{path} names the shard {shard!r}; expected a file beside it."
            )
    return weight_map


def _tensors_of_h5(path: str) -> dict[str, StoredTensor]:
    return {
        name: StoredTensor(path=path, dtype=weight.dtype, shape=weight.shape, h5=weight)
        for name, weight in h5_weights.read_weights(path).items()
    }


def _tensors_of(path: str) -> dict[str, StoredTensor]:
    with _opened(path) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        return {
            name: StoredTensor(
                path=path, dtype=part.get_dtype(), shape=tuple(part.get_shape())
            )
            for name, part in slices.items()
        }


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    with companion_files.local_copy(path, ".safetensors") as local:
        try:
            with safetensors.safe_open(local, framework="numpy") as file:
                yield file
        except safetensors.SafetensorError as error:
            raise ValueError(_what_is_wrong(path, error)) from error
        except FileNotFoundError:
            raise
        except OSError as error:  # For example a folder; the library does not name it.
            raise OSError(f"{path} cannot be read: {error}.") from error


def _what_is_wrong(path: str, error: Exception) -> str:
    with files.open_file(path, "rb") as file:
        start = file.read(len(_LFS_POINTER))
    if start == _LFS_POINTER:
        return (
            f"{path} is a Git LFS pointer, not the weights; run `git lfs pull` in the "
            "cloned folder."
        )
    reason = str(error).removeprefix("Error while deserializing header: ")
    return (
        f"{path} cannot be read: it is truncated or damaged ({files.size(path)} bytes; "
        f"{reason}); copy or download it again."
    )


def _check_not_foreign(folder: str, names: Sequence[str], class_name: str) -> None:
    for name, argument in _FOREIGN.items():
        if name not in names:
            continue
        version = "transformers<5" if argument else "transformers"
        raise ValueError(
            f"{folder} has {name}, but no {NAME}; where {version} is installed, "
            'convert it with: python -c "import transformers; '
            f"transformers.{class_name}.from_pretrained('{folder}'{argument})"
            f".save_pretrained('{folder}')\""
        )
    if any(name in names for name in _ADAPTERS):
        raise ValueError(
            f"{folder} contains an adapter, not a model; merge it into its model with "
            "the library peft (merge_and_unload), save the result and pass its folder."
        )
