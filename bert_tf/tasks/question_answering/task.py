"""What a run's `task.json` says about its windows and its answers."""

import dataclasses

from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import windows as question_answering_windows

KIND = "question_answering"
# What may differ between a run and its continuation: it is for predicting only.
FOR_PREDICTING = ("n_best_size", "max_answer_length", "null_score_diff_threshold")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """All that has to be known of a task to apply its model to new questions."""

    max_seq_length: int  # The longest window that the model was trained on.
    do_lower_case: bool  # As the tokenizer was in training.
    doc_stride: int  # Pieces from one window's start to the next's.
    max_query_length: int  # The most pieces of a question.
    version_2_with_negative: bool  # Whether there may be no answer.
    n_best_size: int  # Starts, and ends, that are tried in each window.
    max_answer_length: int  # In pieces.
    null_score_diff_threshold: float  # No answer where the null odds are higher.
    bilstm_on_top: bool = False  # Whether a BiLSTM stands between encoder and head.

    @property
    def sizes(self) -> question_answering_windows.WindowSizes:
        """How questions and contexts are cut."""
        return question_answering_windows.WindowSizes(
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            max_query_length=self.max_query_length,
        )

    @property
    def rules(self) -> question_answering_predictions.Rules:
        """What an answer may be."""
        return question_answering_predictions.Rules(
            n_best_size=self.n_best_size,
            max_answer_length=self.max_answer_length,
            version_2_with_negative=self.version_2_with_negative,
        )

    @property
    def threshold(self) -> float | None:
        """The null odds above which there is no answer; None where there always is."""
        if not self.version_2_with_negative:
            return None
        return self.null_score_diff_threshold

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
        return cls(**{name: values[name] for name in names if name in values})

    def to_dict(self) -> dict:
        """Returns what `task.json` holds."""
        return {"task": KIND} | dataclasses.asdict(self)
