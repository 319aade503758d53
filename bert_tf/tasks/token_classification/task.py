"""What a run's `task.json` says about its tags and its sentences."""

import dataclasses
from collections.abc import Mapping

from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module

KIND = "token_classification"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """All that has to be known of a task to apply its model to new sentences."""

    labels: tuple[str, ...]  # The tags, in the order of the outputs.
    tag_scheme: str  # One of `schemes.SCHEMES`.
    max_seq_length: int  # The longest row that the model was trained on.
    doc_stride: int  # Pieces between the starts of two windows.
    do_lower_case: bool  # As the tokenizer was in training.
    document_context: bool = False  # Windows go over documents.
    feature_based: str | None = None  # Key of `model.FEATURE_BASED`; None: fine-tuned.
    word_column: int = 0  # Columns of the files, for the next one.
    tag_column: int = 1
    # Usual forms of words, by the word in lower case; None: no true-casing.
    true_cases: Mapping[str, str] | None = None

    @property
    def columns(self) -> examples.Columns:
        """The columns of the task's files."""
        return examples.Columns(word=self.word_column, tag=self.tag_column)

    @property
    def windowing(self) -> features_module.Windowing:
        """How words become rows."""
        return features_module.Windowing(
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            document_context=self.document_context,
            true_cases=self.true_cases,
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
        known = {name: values[name] for name in names}
        return cls(**known | {"labels": tuple(values["labels"])})

    def to_dict(self) -> dict:
        """Returns what `task.json` holds."""
        values = dataclasses.asdict(self) | {"labels": list(self.labels)}
        return {"task": KIND} | values
