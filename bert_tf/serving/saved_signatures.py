"""The signatures of a loaded SavedModel, and the inputs of requests to them."""

import base64
import dataclasses
import functools
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signature:
    """A signature of a SavedModel."""

    name: str
    inputs: dict[str, Any]  # Name -> `tf.TensorSpec`.
    outputs: dict[str, Any]

    @property
    def ragged_answers(self) -> list[str]:
        """Names of outputs as wide as the answer to the longest of several texts."""
        if any(spec.shape.rank > 1 for spec in self.inputs.values()):
            return []  # The answers to ids and endings are as wide as their input.
        return [
            name
            for name, spec in self.outputs.items()
            if None in spec.shape.as_list()[1:]
        ]

    def arrays(self, inputs: Any) -> dict[str, np.ndarray]:
        """Returns the inputs of a request as arrays, texts in UTF-8.

        Args:
            inputs: a dict of lists, one per input, or the list of the only input.

        Raises:
            ValueError: they are not what the signature takes.
        """
        if not isinstance(inputs, dict):
            if len(self.inputs) != 1:
                raise ValueError(f"inputs must be an object with {_and(self.inputs)}.")
            inputs = {next(iter(self.inputs)): inputs}
        if set(inputs) != set(self.inputs):
            raise ValueError(
                f"The signature {self.name} takes {_and(self.inputs)}, got "
                f"{_and(inputs)}."
            )
        arrays = {
            name: _array(name, inputs[name], self.inputs[name]) for name in inputs
        }
        counts = {name: len(array) for name, array in arrays.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{count} of {name}" for name, count in counts.items())
            raise ValueError(f"All inputs must have the same length, got {found}.")
        return arrays


def read(model: Any) -> dict[str, Signature]:
    """Returns the signatures of a loaded SavedModel by name."""
    return {
        name: Signature(
            name=name,
            inputs=function.structured_input_signature[1],
            outputs=function.structured_outputs,
        )
        for name, function in model.signatures.items()
    }


def _array(name, values, spec):
    """Returns lists as an array: texts in UTF-8, or whole numbers of the input's type.

    `tf.constant` would let large numbers overflow, and ends the process for lists in
    very many lists.
    """
    rank, kind = spec.shape.rank, spec.dtype.as_numpy_dtype
    items, convert = "Unicode texts", _encoded
    if spec.dtype.is_integer:
        items = f"whole numbers ({kind.__name__})"
        convert = functools.partial(_whole_number, np.iinfo(kind))
    expected = f"a list of {items}"
    if rank > 1:
        expected = f"a list of non-empty lists of {items}, all of one length"
    rows = values if rank > 1 and isinstance(values, list) else [values]
    converted = []
    for row in rows:
        wrong = [row]
        if isinstance(row, list) and len(row) == len(rows[0]) and (row or rank == 1):
            converted.append([*map(convert, row)])
            pairs = zip(row, converted[-1], strict=True)
            wrong = [item for item, value in pairs if value is None]
        if wrong:
            raise ValueError(f"{name}: expected {expected}, got {wrong[0]!r:.80}.")
    array = np.array(converted or np.empty([0, 0]), kind)
    return array if rank > 1 else array[0]


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
