"""The weight files of a Hugging Face folder, and the names of the weights in them.

model.safetensors, several such files with an index, or tf_model.h5 is read;
model.safetensors is written. The names in it follow from the release's by rule, except
for two output layers. Dense kernels are transposed, [out, in]; the heads' output
weights are [classes, H] in both.

TensorFlow's classes of transformers 4 saved tf_model.h5. Each layer has a group with
datasets such as "bert/encoder/layer_._0/output/dense/kernel:0" or, if the model was
called before it was saved, "tf_bert_model/bert/encoder/...". They are returned under
the names and in the layout of model.safetensors.
"""

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import ml_dtypes  # noqa: F401 (registers bfloat16 with NumPy)
import numpy as np
import safetensors
import safetensors.numpy

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import hdf5

NAME = "model.safetensors"
INDEX_NAME = f"{NAME}.index.json"
H5_NAME = "tf_model.h5"
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
# dtypes of weights in a safetensors file; integers are constants or quantized weights.
FLOATS = {"F16", "BF16", "F32", "F64"}
_H5_DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64"}
_MAX_TENSORS = 100_000  # A BERT of 1,000 layers has fewer.

ENCODER_PREFIX = "bert."
# Starts of the encoder's names; the file of a bare BertModel leaves the prefix out.
_ENCODER_PARTS = ("embeddings.", "encoder.", "pooler.")
_LAYER = re.compile(r"/layer_(\d+)/")
_LAST_PARTS = {
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "beta": "bias",
    "output_weights": "weight",
    "output_bias": "bias",
}
# Scopes of output layers that do not follow the rule.
_OUTPUT_SCOPES = {"": "classifier", "cls/squad": "qa_outputs"}
# Prefixes that torch.nn.DataParallel and torch.compile add to all names.
_WRAPPERS = re.compile(r"^(module\.|_orig_mod\.)+")
# Layers in tf_model.h5 with the weights of BERT; the name of a head follows "___".
_H5_LAYERS = ("bert", "mlm___cls", "nsp___cls", "classifier", "qa_outputs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """Where a tensor is stored; its values are not in memory."""

    path: str
    name: str  # As in model.safetensors, unless it is no weight of BERT.
    dtype: str  # As safetensors calls it, such as "BF16".
    shape: tuple[int, ...]  # As in model.safetensors.
    data_set: str | None = None  # Its location in tf_model.h5.
    is_transposed: bool = False  # Relative to model.safetensors.


def holds_weights(names: Iterable[str]) -> bool:
    """Returns whether a folder's file names include a model's weights."""
    known = {NAME, INDEX_NAME, H5_NAME, *_FOREIGN, *_ADAPTERS}
    return any(name in known or _SHARD.fullmatch(name) for name in names)


def stored_tensors(folder: str, class_name: str) -> dict[str, StoredTensor]:
    """Returns {name: `StoredTensor`} of all weight files of a folder.

    Args:
        folder: path.
        class_name: the configuration's class of transformers; for the advice on how to
            convert a pickled file.
    """
    names = files.list_folder(folder)
    if NAME in names:
        return _tensors_of(os.path.join(folder, NAME))
    if INDEX_NAME in names:
        return _tensors_of_shards(folder, names)
    if H5_NAME in names:
        return _tensors_of_h5(os.path.join(folder, H5_NAME))
    for name, argument in _FOREIGN.items():
        if name in names:
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
    if any(map(_SHARD.fullmatch, names)):
        raise FileNotFoundError(
            f"{folder} has shards such as model-00001-of-00002.safetensors, but no "
            f"{INDEX_NAME}; copy it from the source of the shards."
        )
    raise FileNotFoundError(f"{folder} has no {NAME} and no {INDEX_NAME}.")


def read_each(
    tensors: Mapping[str, StoredTensor],
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields (key, array) of some tensors in their order, one in memory at a time."""
    with contextlib.ExitStack() as stack:
        open_files: dict[str, Any] = {}
        for key, tensor in tensors.items():
            path, data_set = tensor.path, tensor.data_set
            if path not in open_files:
                is_h5 = data_set is not None
                opened = hdf5.opened(path) if is_h5 else _opened(path)
                open_files[path] = stack.enter_context(opened)
            if data_set is None:
                yield key, open_files[path].get_tensor(tensor.name)
            else:
                array = open_files[path][data_set][()]
                yield key, array.T if tensor.is_transposed else array


def write(folder: str, tensors: Iterable[tuple[str, np.ndarray]]) -> None:
    """Writes model.safetensors with float32 tensors; all are in memory, twice."""
    arrays = {name: np.ascontiguousarray(array, "<f4") for name, array in tensors}
    # transformers only reads files whose metadata names the framework.
    content = safetensors.numpy.save(arrays, {"format": "pt"})
    with files.complete_or_absent(os.path.join(folder, NAME), "wb") as file:
        file.write(content)


def hugging_face_name(name: str) -> str:
    """Returns the name of a weight in Hugging Face folders, with the prefix `bert.`.

    Args:
        name: the release's name.

    Example:
        hugging_face_name("bert/encoder/layer_0/output/LayerNorm/gamma")
        # "bert.encoder.layer.0.output.LayerNorm.weight"
    """
    if name.endswith("_embeddings"):  # A table, whose release name has no last part.
        name = f"{name}/weight"
    scope, _, last = _LAYER.sub(r"/layer/\1/", name).rpartition("/")
    scope = _OUTPUT_SCOPES.get(scope, scope)
    return f"{scope}/{_LAST_PARTS.get(last, last)}".replace("/", ".")


def normal_name(name: str) -> str:
    """Returns a weight's name in any version of transformers as it is written today.

    Until 2019 the weights of LayerNorm were called gamma and beta. The file of a
    `BertModel` leaves out the prefix `bert.`, and PyTorch's wrappers add one.
    """
    name = _WRAPPERS.sub("", name)
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
    return f"{ENCODER_PREFIX}{name}" if name.startswith(_ENCODER_PARTS) else name


def is_transposed(name: str) -> bool:
    """Returns whether Hugging Face stores a weight of the release transposed."""
    return name.endswith("/kernel")


def transposed_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Converts a shape between the release's layout and Hugging Face's, either way."""
    return tuple(reversed(shape)) if is_transposed(name) else tuple(shape)


def _tensors_of_shards(folder: str, names: Sequence[str]) -> dict[str, StoredTensor]:
    path = os.path.join(folder, INDEX_NAME)
    weight_map = files.read_json(path).get("weight_map")
    if not isinstance(weight_map, dict):
        raise ValueError(
            f"{path} is not an index of shards: expected JSON with a weight_map from "
            "tensors to files."
        )
    for shard in weight_map.values():
        if not isinstance(shard, str) or os.path.basename(shard) != shard:
            raise ValueError(
                f"{path} names the shard {shard!r}; expected a file beside it."
            )
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
            f"{path} lists {lost[0]} in {weight_map[lost[0]]}, which lacks it "
            f"({len(lost)} such tensors); the files belong to different models: copy "
            "all of them again."
        )
    return tensors


def _tensors_of(path: str) -> dict[str, StoredTensor]:
    with _opened(path) as file:
        names = file.keys()
        if len(names) > _MAX_TENSORS:
            raise ValueError(
                f"{path} has {len(names):,} tensors; expected the weights of a BERT, "
                f"at most {_MAX_TENSORS:,}."
            )
        slices = {name: file.get_slice(name) for name in names}
        return {
            name: StoredTensor(
                path=path,
                name=name,
                dtype=part.get_dtype(),
                shape=tuple(part.get_shape()),
            )
            for name, part in slices.items()
        }


def _tensors_of_h5(path: str) -> dict[str, StoredTensor]:
    tensors: dict[str, StoredTensor] = {}
    with hdf5.opened(path) as file:
        for place, data_set in hdf5.data_sets(file).items():
            name, shape = _name_of_h5(place), tuple(data_set.shape)
            is_kernel = name is not None and place.endswith("/kernel:0")
            dtype = data_set.dtype.name
            tensor = StoredTensor(
                path=path,
                name=name or f"/{place}",
                dtype=_H5_DTYPES.get(dtype, dtype),
                shape=shape[::-1] if is_kernel else shape,
                data_set=place,
                is_transposed=is_kernel,
            )
            # A head's group contains a second copy of the shared embeddings.
            tensors.setdefault(tensor.name, tensor)
    if not tensors:
        raise ValueError(f"{path} contains no weights; copy or download it again.")
    return tensors


def _name_of_h5(data_set: str) -> str | None:
    """Returns the name in model.safetensors; None if it is not a weight of BERT."""
    parts = data_set.removesuffix(":0").replace("layer_._", "layer/").split("/")[1:]
    start = next((i for i, part in enumerate(parts) if part in _H5_LAYERS), None)
    if start is None:
        return None
    layer, last = parts[start].rpartition("___")[2], parts[-1]
    return ".".join([layer, *parts[start + 1 : -1], _LAST_PARTS.get(last, last)])


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    with companion_files.local_copy(path, ".safetensors") as local:
        try:
            with safetensors.safe_open(local, framework="numpy") as file:
                yield file
        except safetensors.SafetensorError as error:
            reason = str(error).removeprefix("Error while deserializing header: ")
            raise companion_files.damaged(path, reason) from error
        except FileNotFoundError:
            raise
        except OSError as error:  # For example a folder; the library does not name it.
            raise OSError(f"{path} cannot be read: {error}.") from error
