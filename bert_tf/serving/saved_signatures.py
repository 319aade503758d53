"""Reads the signatures of a SavedModel without loading it, and checks their inputs."""

import base64
import dataclasses
import os
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.serving import versions

_TAG = "serve"
# Of `tf.saved_model.save`; it initializes tables and takes no input.
_INITIALIZER = "__saved_model_init_op"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signature:
    """A signature of a SavedModel."""

    name: str
    definition: Any  # The `SignatureDef`.

    @property
    def takes_text(self) -> bool:
        """Whether all inputs are text."""
        return all(kind is None for kind in self._kinds().values())

    @property
    def ragged_answers(self) -> list[str]:
        """Names of outputs as wide as the answer to the longest of several texts."""
        if not self.takes_text or max(self.ranks().values()) > 1:
            return []  # The answers to endings are as wide as their input.
        return [
            name
            for name, info in self.definition.outputs.items()
            if any(dimension.size == -1 for dimension in info.tensor_shape.dim[1:])
        ]

    def ranks(self) -> dict[str, int]:
        """Returns the rank of every input by name."""
        return {
            name: len(info.tensor_shape.dim)
            for name, info in self.definition.inputs.items()
        }

    def arrays(self, inputs: Any) -> dict[str, np.ndarray]:
        """Returns the inputs of a request as arrays, texts in UTF-8.

        Args:
            inputs: a dict of lists, one per input, or the list of the only input.

        Raises:
            ValueError: they are not what the signature takes.
        """
        kinds = self._kinds()
        if not isinstance(inputs, dict) or set(inputs) == {"b64"}:
            if len(kinds) != 1:
                raise ValueError(f"inputs must be an object with {_and(kinds)}.")
            inputs = {next(iter(kinds)): inputs}
        if set(inputs) != set(kinds):
            raise ValueError(
                f"The signature {self.name} takes {_and(kinds)}, got {_and(inputs)}."
            )
        ranks = self.ranks()
        arrays = {
            name: _array(name, values, kinds[name], ranks[name])
            for name, values in inputs.items()
        }
        counts = {name: len(array) for name, array in arrays.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{count} of {name}" for name, count in counts.items())
            raise ValueError(f"All inputs must have the same length, got {found}.")
        return arrays

    def _kinds(self):
        """Returns the NumPy kind of every input by name; None: text."""
        import tensorflow as tf

        kinds = {
            name: tf.dtypes.as_dtype(info.dtype)
            for name, info in self.definition.inputs.items()
        }
        return {
            name: None if kind == tf.string else kind.as_numpy_dtype
            for name, kind in kinds.items()
        }


def read(export_dir: str) -> dict[str, Signature]:
    """Returns the signatures of a SavedModel by name.

    Raises:
        OSError: the folder has no SavedModel, or it cannot be read.
        ValueError: the file is damaged, or has no signature for serving.
    """
    found = {
        name: Signature(name=name, definition=definition)
        for graph in read_definition(export_dir).meta_graphs
        if _TAG in graph.meta_info_def.tags
        for name, definition in graph.signature_def.items()
        if name != _INITIALIZER
    }
    if not found:
        raise ValueError(
            f"{os.path.join(export_dir, versions.MODEL_FILE)} has no signature; "
            "expected a model written by bert_tf export."
        )
    return found


def read_definition(export_dir: str) -> Any:
    """Returns the message `SavedModel` of a SavedModel.

    Raises:
        OSError: the folder has no SavedModel, or it cannot be read.
        ValueError: the file is damaged.
    """
    path = os.path.join(export_dir, versions.MODEL_FILE)
    from google.protobuf import message
    from tensorflow.core.protobuf import saved_model_pb2

    with files.open_file(path, "rb") as file:
        try:
            return saved_model_pb2.SavedModel.FromString(file.read())
        except message.DecodeError as error:
            raise ValueError(f"{path} is damaged; export the model again.") from error


def _array(name, values, kind, rank):
    """Returns nested lists as an array: texts in UTF-8, or whole numbers of a kind."""
    values = _decoded(values)
    array = _converted(values, kind, rank)
    if array is not None:
        return array
    place, part = _first_bad(values, kind, rank)
    lists = " of ".join(["a list", *["non-empty lists"] * (rank - 1)])
    items = "Unicode texts" if kind is None else f"whole numbers ({kind.__name__})"
    expected = f"{lists} of {items}"
    if place and _converted([part], kind, rank) is not None:
        expected = f"as many items as in the first list, {len(values[0])}"
    raise ValueError(f"{name}{place}: expected {expected}, got {part!r:.80}.")


def _converted(values, kind, rank):
    """Returns nested lists as an array, or None if they are no lists of that kind."""
    types = (str, bytes) if kind is None else (int,)
    try:
        array = np.array(values, object)
        if array.shape[:1] == (0,):
            array = array.reshape([0] * rank)
        if array.ndim != rank or not all(type(item) in types for item in array.flat):
            return None
        if len(array) > 0 and array.size == 0:
            return None
        if kind is None:
            return np.frompyfunc(_encoded, 1, 1)(array)
        numbers = array.astype(np.int64).astype(kind)
    except (ValueError, OverflowError):
        return None
    return numbers if np.array_equal(numbers, array) else None


def _first_bad(values, kind, rank):
    """Returns the indices, such as "[1][0]", of the first bad part, and the part."""
    if rank == 0 or not isinstance(values, list) or not values:
        return "", values
    good, bad = 0, len(values)  # values[:good] are good, values[:bad] are not.
    while bad - good > 1:
        middle = (good + bad) // 2
        if _converted(values[:1] + values[good:middle], kind, rank) is None:
            bad = middle
        else:
            good = middle
    part = values[good]
    if _converted([part], kind, rank) is not None:  # But of another length.
        return f"[{good}]", part
    place, part = _first_bad(part, kind, rank - 1)
    return f"[{good}]{place}", part


def _encoded(text):
    return text.encode() if isinstance(text, str) else text


def _decoded(values):
    """Returns nested lists with {"b64": ...} replaced by the bytes that it encodes."""
    if isinstance(values, list):
        return [_decoded(value) for value in values]
    if isinstance(values, dict) and set(values) == {"b64"}:
        try:
            return base64.b64decode(values["b64"], validate=True)
        except (ValueError, TypeError) as error:
            raise ValueError(f"b64 is not valid base64: {error}.") from error
    return values


def _and(names):
    return " and ".join(f"{name:.40}" for name in sorted(names)[:5]) or "nothing"
