"""What a run's `task.json` says about its endings and its texts."""

import dataclasses

from bert_tf.tasks.multiple_choice import examples as examples_module

KIND = "multiple_choice"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """All that has to be known of a task to apply its model to new texts."""

    num_endings: int  # Of every example that the model was trained on.
    max_seq_length: int  # The longest sequence that the model was trained on.
    do_lower_case: bool  # As the tokenizer was in training.
    start_column: str = "startphrase"  # Columns of the tables, for the next one.
    ending_columns: tuple[str, ...] = ()
    label_column: str = "label"
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

    @classmethod
    def from_dict(cls, values: dict, source: str) -> "Task":
        """Returns the task of a `task.json`.

        Args:
            values: what the file holds.
            source: its name, for messages.

        Raises:
            ValueError: it is another kind of task, or lacks a key.
        """
        if values.get("task") != KIND:
            raise ValueError(
                f"{source} is of the task {values.get('task')!r}; expected {KIND!r}."
            )
        names = [field.name for field in dataclasses.fields(cls)]
        missing = [name for name in names if name not in values]
        if missing:
            raise ValueError(f"{source} lacks {', '.join(missing)}; train again.")
        lists = {name: tuple(values[name]) for name in ("ending_columns", "header")}
        return cls(**{name: values[name] for name in names} | lists)

    def to_dict(self) -> dict:
        """Returns what `task.json` holds."""
        values = dataclasses.asdict(self)
        lists = {name: list(values[name]) for name in ("ending_columns", "header")}
        return {"task": KIND} | values | lists
