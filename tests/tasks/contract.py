"""What `test_contract` needs to know about a task; see `tests/tasks/*/contract.py`."""

import dataclasses
import pathlib
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contract:
    """A data set that a tiny model learns in seconds, and what the model answers."""

    write_data: Callable[[pathlib.Path], None]  # Writes the files into a folder.
    # Options that name these files, by the folder.
    data: Callable[[pathlib.Path], Mapping[str, Any]]
    values: Mapping[str, Any]  # Other options, with which the model learns the data.
    # Writes a development set with errors; returns the options that name it.
    write_errors: Callable[[pathlib.Path], Mapping[str, Any]]
    errors: Sequence[str]  # The beginnings of the errors that --check finds in it.
    scores: Mapping[str, float]  # The least value of some scores after training.
    num_steps: int
    inputs: Sequence[Any]  # For `predict`, with different lengths.
    answers: Sequence[Mapping[str, Any]]  # Parts of the answers.
    wrong_inputs: Sequence[Any]
    expected: str  # What the message about wrong inputs expects.
    needs_head: bool = True  # Whether an encoder without a head is refused.
