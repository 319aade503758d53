"""What a run's `task.json` says about its classes and its texts."""

import dataclasses

from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds

KIND = "classification"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """All that has to be known of a task to apply its model to new texts."""

    # Names of the classes, in the order of the outputs; none where it finds a number.
    labels: tuple[str, ...]
    max_seq_length: int  # The longest row that the model was trained on.
    do_lower_case: bool  # As the tokenizer was in training.
    task_name: str | None = None  # Of GLUE, or None for own data.
    text_column: str = "text"  # Columns of the tables, for the next one.
    text_b_column: str | None = None  # None for a model of single texts.
    label_column: str = "label"
    label_kind: str = label_kinds.SINGLE_LABEL  # What a label is; see `label_kinds`.
    label_separator: str | None = None  # Between the classes of one cell.
    threshold: float | None = None  # Of several classes: the least that counts as one.
    doc_stride: int = 0  # Pieces between the windows of a long text; 0: it is cut.
    bilstm_on_top: bool = False  # Whether a BiLSTM stands between encoder and head.

    @property
    def num_outputs(self) -> int:
        """How many logits the model has."""
        return 1 if self.label_kind == label_kinds.REGRESSION else len(self.labels)

    @property
    def is_pair(self) -> bool:
        """Whether an example is a pair of texts."""
        return self.text_b_column is not None

    @property
    def columns(self) -> examples_module.Columns:
        """The columns of the task's tables."""
        return examples_module.Columns(
            text=self.text_column,
            text_b=self.text_b_column,
            label=self.label_column,
            kind=self.label_kind,
            separator=self.label_separator,
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
        names = {field.name: field.default for field in dataclasses.fields(cls)}
        required = [name for name, d in names.items() if d is dataclasses.MISSING]
        missing = [name for name in required if name not in values]
        if missing:
            raise ValueError(f"{source} lacks {', '.join(missing)}; train again.")
        known = {name: values[name] for name in names if name in values}
        return cls(**known | {"labels": tuple(values["labels"])})

    def to_dict(self) -> dict:
        """Returns what `task.json` holds."""
        values = dataclasses.asdict(self) | {"labels": list(self.labels)}
        return {"task": KIND} | values
