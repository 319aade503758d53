"""The record in `task.json` of how a run cuts windows and chooses answers."""

import dataclasses
from typing import Any

from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import span_predictor
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import windows as question_answering_windows

# Only predicting reads these, so they may change when training is resumed.
FOR_PREDICTING = ("n_best_size", "max_answer_length", "null_score_diff_threshold")
# Options that a finished run fixes.
FIXED = (
    "max_seq_length",
    "do_lower_case",
    "doc_stride",
    "max_query_length",
    "version_2_with_negative",
    "bilstm_on_top",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """The settings needed to apply a question answering model to new questions."""

    KIND = "question_answering"

    doc_stride: int  # Word pieces between the starts of two windows.
    max_query_length: int  # In word pieces.
    version_2_with_negative: bool  # Whether a question may have no answer.
    n_best_size: int  # Number of starts, and of ends, to try per window.
    max_answer_length: int  # In word pieces.
    null_score_diff_threshold: float  # Above it, there is no answer.
    bilstm_on_top: bool = False  # A BiLSTM between encoder and head.

    @property
    def sizes(self) -> question_answering_windows.WindowSizes:
        """The lengths that determine how contexts are divided into windows."""
        return question_answering_windows.WindowSizes(
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            max_query_length=self.max_query_length,
        )

    @property
    def rules(self) -> question_answering_predictions.Rules:
        """The rules by which answers are chosen."""
        return question_answering_predictions.Rules(
            n_best_size=self.n_best_size,
            max_answer_length=self.max_answer_length,
            version_2_with_negative=self.version_2_with_negative,
        )

    @property
    def threshold(self) -> float | None:
        """The null odds above which there is no answer; None: always answer."""
        if not self.version_2_with_negative:
            return None
        return self.null_score_diff_threshold

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 2

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> span_predictor.BertSpanPredictor:
        """See `TaskRecord.create_model`."""
        return span_predictor.BertSpanPredictor(
            config, bilstm_on_top=self.bilstm_on_top, dtype=dtype
        )
