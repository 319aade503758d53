"""The record that a retrieval run keeps in `task.json`."""

import dataclasses
import typing
from typing import Any

from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import options as retrieval_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """How to apply a retrieval model to new texts.

    `max_seq_length` limits a passage or, for a cross-encoder, a query with a passage.
    """

    KIND = "retrieval"

    model: str  # One of `options.MODELS`.
    max_query_length: int  # In word pieces, including [CLS] and [SEP].
    # None for a cross-encoder.
    pooling: str | None = None
    temperature: float | None = None

    @property
    def is_bi_encoder(self) -> bool:
        """Whether the model embeds queries and passages separately."""
        return self.model == retrieval_options.BI_ENCODER

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> heads.TaskModel:
        """See `TaskRecord.create_model`."""
        if not self.is_bi_encoder:
            return rankers.BertCrossEncoder(config, dtype=dtype)
        return rankers.BertBiEncoder(
            config,
            pooling=typing.cast(str, self.pooling),
            temperature=typing.cast(float, self.temperature),
            dtype=dtype,
        )
