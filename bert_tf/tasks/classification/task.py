"""The record of a classifier in `task.json`: its classes, columns and windows."""

import dataclasses
from typing import Any

from bert_tf.data import packing
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """How to apply a classifier to new texts."""

    KIND = "classification"

    labels: tuple[str, ...]  # In the order of the outputs. Empty for regression.
    task_name: str | None = None  # GLUE task or XNLI. None for your own data.
    # Columns of the training tables, and the defaults for other tables.
    text_column: str = "text"
    text_b_column: str | None = None  # None if the model reads single texts.
    label_column: str = "label"
    label_kind: str = label_kinds.SINGLE_LABEL
    label_separator: str | None = (
        None  # Between class names, if a text can have several.
    )
    # The examples of the training file that were held out, and their checksum.
    validation_split: float = 0.0
    validation_sha256: str | None = None
    threshold: float | None = None  # Minimum probability of a class, if several.
    doc_stride: int = 0  # Word pieces between the starts of windows. 0: truncate.
    bilstm_on_top: bool = False  # Whether a BiLSTM replaces the pooler.
    # Only for an external ranker that is applied without training; see `TextEncoding`
    # and `packing.truncate_longer`.
    output_activation: str | None = None
    longer_keeps_more: bool = False

    @property
    def num_outputs(self) -> int:
        """The number of logits."""
        return 1 if self.label_kind == label_kinds.REGRESSION else len(self.labels)

    @property
    def truncate_pair(self) -> packing.TruncatePair:
        """The function that truncates a pair of texts that is too long."""
        if self.longer_keeps_more:
            return packing.truncate_longer
        return packing.truncate_pair

    @property
    def is_pair(self) -> bool:
        """Whether an example is a pair of texts."""
        return self.text_b_column is not None

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 2 if self.is_pair else 1

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
        """See `TaskRecord.create_model`.

        Fine-tuning adds only one linear layer with C x H weights, on the pooled vector
        of [CLS] (section 4.1 of the paper). The encoder is fine-tuned as a whole, so
        [CLS] learns to summarize what the task needs. A larger head would only
        add weights that have to be learned from few labels.
        """
        return classifier.create(
            config,
            self.label_kind,
            self.num_outputs,
            bilstm_on_top=self.bilstm_on_top,
            dtype=dtype,
        )
