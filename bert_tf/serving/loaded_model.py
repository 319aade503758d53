"""A SavedModel in memory: its signatures, and the inputs of requests to them."""

import dataclasses
import functools
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from bert_tf.serving import export_layout

Columns = dict[str, np.ndarray]


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

    def check_names(self, names: Iterable[str]) -> None:
        """Raises ValueError if a request has other inputs than the signature."""
        if set(names) != set(self.inputs):
            raise ValueError(
                f"The signature {self.name} takes {_and(self.inputs)}, got "
                f"{_and(names)}."
            )

    def arrays(self, inputs: Any) -> Columns:
        """Returns a dict of lists, or the list of the only input, as arrays.

        Raises:
            ValueError: they are not what the signature takes.
        """
        if not isinstance(inputs, dict):
            if len(self.inputs) != 1:
                raise ValueError(f"inputs must be an object with {_and(self.inputs)}.")
            inputs = {next(iter(self.inputs)): inputs}
        self.check_names(inputs)
        arrays = {
            name: _array(name, inputs[name], self.inputs[name]) for name in inputs
        }
        check_lengths(arrays)
        return arrays


class LoadedModel:
    """A SavedModel in memory.

    Args:
        model: what `tf.saved_model.load` returns.

    Attributes:
        signatures: name -> `Signature`.
    """

    def __init__(self, model: Any):
        self._model = model
        self.signatures = {
            name: Signature(
                name=name,
                inputs=function.structured_input_signature[1],
                outputs=function.structured_outputs,
            )
            for name, function in model.signatures.items()
        }

    def compute(self, signature: str, inputs: dict[str, Any]) -> Columns:
        """Returns the outputs of a signature, name -> array [B, ...].

        Raises:
            ValueError: the inputs are to blame.
            OSError: the model cannot answer.
        """
        import tensorflow as tf

        columns = {name: tf.constant(column) for name, column in inputs.items()}
        try:
            outputs = self._model.signatures[signature](**columns)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(_refusal_reason(error)) from error
        except tf.errors.OpError as error:
            raise OSError(_refusal_reason(error)) from error
        return {name: value.numpy() for name, value in outputs.items()}


def load(export_dir: str) -> Any:
    """Loads a SavedModel, or the newest of a folder, with errors that name the file.

    Raises:
        ImportError: TensorFlow Text is not installed.
        OSError: the SavedModel does not exist or cannot be read.
    """
    export_dir = export_layout.latest_folder(export_dir)
    import tensorflow as tf

    from bert_tf.tokenization import in_graph

    in_graph.check_ops()
    try:
        return tf.saved_model.load(export_dir)
    except IndexError as error:  # It reads less than expected.
        path = os.path.join(export_dir, "variables", "variables.data-00000-of-00001")
        raise OSError(f"{path} is truncated; export the model again.") from error
    except Exception as error:  # Of a damaged graph, TensorFlow raises any.
        reason = " ".join(f"{type(error).__name__}, {error}".split())[:300].rstrip(".")
        raise OSError(
            f"{export_dir} cannot be loaded ({reason}); if a file is damaged or "
            "missing, export the model again."
        ) from error


def check_lengths(columns: dict[str, Any]) -> None:
    """Raises ValueError unless all inputs have the same number of rows."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise ValueError(f"All inputs must have the same length, got {counts}.")


def _refusal_reason(error):
    """Returns why a model refused its inputs, without the names of nodes around it."""
    text = " ".join(str(getattr(error, "message", error)).split())
    text = text.rpartition("<stack traces unavailable> ")[2]
    # From a Python function in the graph.
    text = text.split(" Traceback (most recent")[0].removeprefix("ValueError: ")
    text = text.split(" [[{{node")[0].split(" [Op:")[0]
    if text.startswith(check := "assertion failed: ["):  # Each value has brackets.
        text = text.removeprefix(check).removesuffix("]").replace("] [", " ")
    return text


def _array(name, values, spec):
    """Returns lists as an array: texts in UTF-8, or whole numbers of the input's type.

    `tf.constant` would let large numbers overflow, and ends the process for lists in
    very many lists.
    """
    rank, kind = spec.shape.rank, spec.dtype.as_numpy_dtype
    item, convert = "Unicode text", _encoded
    if spec.dtype.is_integer:
        item = f"whole number ({kind.__name__})"
        convert = functools.partial(_whole_number, np.iinfo(kind))
    expected = f"a list of {item}s"
    if rank > 1:
        expected = f"a list of non-empty lists of {item}s, all of one length"
    rows = values if rank > 1 and isinstance(values, list) else [values]
    converted = []
    for number, row in enumerate(rows):
        place = f"{name}[{number}]" if rows is values else name
        is_row = isinstance(row, list) and len(row) == len(rows[0])
        if not is_row or (rank > 1 and not row):
            raise ValueError(f"{place}: expected {expected}, got {row!r:.80}.")
        converted.append([*map(convert, row)])
        if None in converted[-1]:
            index = converted[-1].index(None)
            shown = f"{row[index]!r:.80}"
            raise ValueError(f"{place}[{index}]: expected {item}, got {shown}.")
    array = np.array(converted or np.empty([0, 0]), kind)
    return array if rank > 1 else array[0]


def _whole_number(limits, item):
    """Returns a whole number within the limits of its NumPy type; otherwise None."""
    return item if type(item) is int and limits.min <= item <= limits.max else None


def _encoded(item):
    """Returns a text in UTF-8; otherwise None, also for half a surrogate pair."""
    try:
        return item.encode() if isinstance(item, str) else None
    except UnicodeEncodeError:
        return None


def _and(names):
    return " and ".join(f"{name:.40}" for name in sorted(names)[:5]) or "nothing"
