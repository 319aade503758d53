"""Reads the signatures of a SavedModel without loading it, and checks their inputs."""

import base64
import dataclasses
import functools
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
    def ragged_answers(self) -> list[str]:
        """Names of outputs as wide as the answer to the longest of several texts."""
        if max(self.ranks().values()) > 1:
            return []  # The answers to ids and endings are as wide as their input.
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
        if not isinstance(inputs, dict):
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
    items = "Unicode texts" if kind is None else f"whole numbers ({kind.__name__})"
    lists = "a list of" if rank == 1 else "a list of non-empty lists of"
    convert = _encoded
    if kind is not None:
        convert = functools.partial(_whole_number, np.iinfo(kind))

    def refuse(place, part, expected=f"{lists} {items}"):
        raise ValueError(f"{name}{place}: expected {expected}, got {part!r:.80}.")

    def converted(row, place):
        found = [*map(convert, row)]
        if None in found:
            index = found.index(None)
            refuse(f"{place}[{index}]", row[index])
        return found

    if not isinstance(values, list):
        refuse("", values)
    if rank == 1:
        return np.array(converted(values, ""), kind or object)
    for index, row in enumerate(values):
        if not isinstance(row, list) or not row:
            refuse(f"[{index}]", row)
        if len(row) != len(values[0]):
            count = len(values[0])
            refuse(f"[{index}]", row, f"as many items as in the first list, {count}")
    rows = [converted(row, f"[{index}]") for index, row in enumerate(values)]
    return np.array(rows or np.empty([0, 0]), kind or object)


def _whole_number(limits, item):
    """Returns a whole number within the limits of its NumPy type; otherwise None."""
    return item if type(item) is int and limits.min <= item <= limits.max else None


def _encoded(item):
    """Returns the bytes of a text or of {"b64": ...}; None if it is neither."""
    try:
        if isinstance(item, dict) and set(item) == {"b64"}:
            return base64.b64decode(item["b64"], validate=True)
        return item.encode() if isinstance(item, str) else None
    except (TypeError, ValueError):
        return None


def _and(names):
    return " and ".join(f"{name:.40}" for name in sorted(names)[:5]) or "nothing"
