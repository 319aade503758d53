"""The record of a masked-word model: how to apply it to new texts."""

import dataclasses
from typing import Any

from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """How to fill the masks of texts.

    It is made from a checkpoint. The task.json of a pretraining run describes the
    records that it trains on instead.
    """

    KIND = "pretraining"

    top_k: int = 5  # Candidates per mask of a SavedModel.

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> pretrainer.BertPretrainer:
        """See `TaskRecord.create_model`."""
        return pretrainer.BertPretrainer(config, next_sentence=False, dtype=dtype)
