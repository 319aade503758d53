"""What `test_contract` needs to know about a task; see `tests/tasks/*/contract.py`."""

import dataclasses
import pathlib
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

TABLES = {
    "train_file": "train.tsv",
    "eval_file": "dev.tsv",
    "predict_file": "test.tsv",
}
# With these options, a tiny model learns most of the data sets.
VALUES = {
    "max_seq_length": 24,
    "train_batch_size": 8,
    "learning_rate": 1e-2,
    "num_train_epochs": 20.0,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contract:
    """A data set that a tiny model learns in seconds, and what the model answers."""

    write_data: Callable[[pathlib.Path], None]  # Writes the files into a folder.
    data: Mapping[str, str]  # Options that name these files; "" is the folder.
    # Other options, with which the model learns the data.
    values: Mapping[str, Any] = dataclasses.field(default_factory=lambda: VALUES)
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

    def evaluations(self):
        """Returns the options with which a run evaluates while it trains."""
        return {"eval_every_steps": self.num_steps // 2}

    def options(self, options_class, folder, golden, quick_config):
        """Returns a function that creates options; keywords replace or add.

        Args:
            options_class: record of the task's options.
            folder: of the data.
            golden: folder with the vocabulary.
            quick_config: path of the configuration of a tiny model.
        """
        fixed = {
            **{name: str(folder / file) for name, file in self.data.items()},
            **self.values,
            "bert_config_file": quick_config,
            "vocab_file": str(golden / "vocab.txt"),
            "do_train": True,
        }
        return lambda output_dir, **values: options_class(
            **{**fixed, "output_dir": str(output_dir), **values}
        )
