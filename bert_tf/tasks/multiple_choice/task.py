"""The record of a multiple choice run in `task.json`: its columns and endings."""

import dataclasses
from typing import Any

from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import multiple_choice
from bert_tf.tasks.multiple_choice import examples as examples_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """How to apply a multiple choice model to new texts."""

    KIND = "multiple_choice"

    num_endings: int  # Of each training example.
    # Columns of the training tables, and the defaults for other tables.
    start_column: str = "startphrase"
    ending_columns: tuple[str, ...] = ()
    label_column: str | None = "label"
    header: tuple[str, ...] = ()

    @property
    def columns(self) -> examples_module.Columns:
        """The columns of the task's tables."""
        return examples_module.Columns(
            start=self.start_column,
            endings=self.ending_columns,
            label=self.label_column,
            header=self.header or None,
        )

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 2

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> multiple_choice.BertMultipleChoice:
        """See `TaskRecord.create_model`."""
        return multiple_choice.BertMultipleChoice(config, dtype=dtype)
