"""Reads tf_model.h5: the weights that TensorFlow's classes of transformers 4 saved.

Each layer has a group with datasets such as
"bert/encoder/layer_._0/output/dense/kernel:0" or, if the model was called before it was
saved, "tf_bert_model/bert/encoder/...". They are returned under the names of
model.safetensors, so that all later steps treat both files alike.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints.hugging_face import names

NAME = "tf_model.h5"
# Scope of a layer -> the release's scope.
_SCOPES = {
    "bert": "bert",
    "mlm___cls": "cls",
    "nsp___cls": "cls",
    "classifier": "",
    "qa_outputs": "cls/squad",
}
# Output layers -> the release's names of their weights. The kernels are transposed.
_OUTPUTS = {"kernel": "output_weights", "bias": "output_bias"}
_OUTPUT_SCOPES = ("", "cls/squad", "cls/predictions", "cls/seq_relationship")
_DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredWeight:
    """A dataset of the file."""

    data_set: str
    dtype: str  # Name of the type in safetensors.
    shape: tuple[int, ...]  # As in model.safetensors.
    is_transposed: bool  # Relative to model.safetensors.


def read_weights(path: str) -> dict[str, StoredWeight]:
    """Returns {name in model.safetensors: `StoredWeight`} of a file.

    Weights that do not belong to BERT keep the names of their datasets.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged.
    """
    weights: dict[str, StoredWeight] = {}

    def describe(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            name, weight = _described(item)
            # A head's group contains a second copy of the shared embeddings.
            weights.setdefault(name, weight)

    with opened(path) as file:
        file.visititems(describe)
    if not weights:
        raise ValueError(f"{path} contains no weights; copy or download it again.")
    return weights


def read(file: h5py.File, weight: StoredWeight) -> np.ndarray:
    """Returns a weight as it is in model.safetensors."""
    array = file[weight.data_set][()]
    return array.T if weight.is_transposed else array


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """Yields the open file; a remote one is copied first."""
    try:
        with companion_files.local_copy(path, ".h5") as local, h5py.File(local) as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read: it is truncated or damaged ({files.size(path)} "
            "bytes); copy or download it again."
        ) from error


def _described(data_set: h5py.Dataset) -> tuple[str, StoredWeight]:
    shape = tuple(data_set.shape)
    release_name = _release_name(data_set.name)
    name, is_transposed = data_set.name, False
    if release_name is not None:
        name = names.hugging_face_name(release_name)
        is_output = release_name.endswith(checkpoint_heads.OUTPUT_WEIGHTS)
        is_transposed = names.is_transposed(release_name) or is_output
    return name, StoredWeight(
        data_set=data_set.name,
        dtype=_DTYPES.get(data_set.dtype.name, data_set.dtype.name),
        shape=shape[::-1] if is_transposed else shape,
        is_transposed=is_transposed,
    )


def _release_name(data_set: str) -> str | None:
    """Returns the release's name of a dataset; None if it is not a weight of BERT."""
    parts = data_set.strip("/").removesuffix(":0").split("/")[1:]
    start = next((i for i, part in enumerate(parts) if part in _SCOPES), None)
    if start is None:
        return None
    scope, last = "/".join([_SCOPES[parts[start]], *parts[start + 1 : -1]]), parts[-1]
    scope = scope.strip("/").replace("/layer_._", "/layer_")
    if scope.endswith("_embeddings"):
        return scope
    if scope in _OUTPUT_SCOPES:
        last = _OUTPUTS.get(last, last)
    return f"{scope}/{last}" if scope else last
