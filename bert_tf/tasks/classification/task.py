"""What a classifier's `task.json` records about its classes and its texts."""

import dataclasses
from typing import Any

from bert_tf.fine_tuning import task_record
from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """All that is needed to apply a classifier to new texts."""

    KIND = "classification"

    labels: tuple[str, ...]  # Classes in the order of the outputs; () for regression.
    task_name: str | None = None  # A task of GLUE, or XNLI; None: own data.
    # Columns of the training tables; other tables have the same unless flags say so.
    text_column: str = "text"
    text_b_column: str | None = None  # None for a model of single texts.
    label_column: str = "label"
    label_kind: str = label_kinds.SINGLE_LABEL
    label_separator: str | None = None  # Between several classes of one text.
    threshold: float | None = None  # Least probability that counts, for multi-label.
    doc_stride: int = 0  # Word pieces between windows of long texts; 0: truncate.
    bilstm_on_top: bool = False  # Whether a BiLSTM sits between encoder and head.

    @property
    def num_outputs(self) -> int:
        """The number of logits."""
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

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> heads.TaskModel:
        """See `TaskRecord.create_model`."""
        return classifier.create(
            config,
            self.label_kind,
            self.num_outputs,
            bilstm_on_top=self.bilstm_on_top,
            dtype=dtype,
        )
