"""What a question answering run's `task.json` records about windows and answers."""

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """All that is needed to apply a question answering model to new questions."""

    KIND = "question_answering"

    doc_stride: int  # Word pieces from the start of a window to that of the next.
    max_query_length: int  # In word pieces.
    version_2_with_negative: bool  # Whether a question may have no answer.
    n_best_size: int  # Starts, and ends, that are tried in each window.
    max_answer_length: int  # In word pieces.
    null_score_diff_threshold: float  # No answer if the null odds exceed it.
    bilstm_on_top: bool = False  # Whether a BiLSTM sits between encoder and head.

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
        """The null odds above which there is no answer; None: there always is one."""
        if not self.version_2_with_negative:
            return None
        return self.null_score_diff_threshold

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> span_predictor.BertSpanPredictor:
        """See `TaskRecord.create_model`."""
        return span_predictor.BertSpanPredictor(
            config, bilstm_on_top=self.bilstm_on_top, dtype=dtype
        )
