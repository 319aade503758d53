"""The record in `task.json` of a run's tags and of how it cuts sentences."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import token_classifier
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """The settings needed to apply a tagger to new sentences."""

    KIND = "token_classification"

    labels: tuple[str, ...]  # The tags, in the order of the outputs.
    tag_scheme: str  # One of `schemes.SCHEMES`.
    doc_stride: int  # Word pieces between the starts of two windows.
    document_context: bool = False  # Windows cover documents, not sentences.
    # Key of `token_classifier.FEATURE_BASED`. None: the encoder is fine-tuned.
    feature_based: str | None = None
    # Columns of the training files, also used for other files by default.
    word_column: int = 0
    tag_column: int = 1
    # The usual form of words, by the word in lower case. None: no true-casing.
    true_cases: Mapping[str, str] | None = None
    # Words of the training data that plain text keeps whole; see `words.split_text`.
    whole_words: tuple[str, ...] = ()

    @property
    def columns(self) -> examples.Columns:
        """The columns of the task's files."""
        return examples.Columns(word=self.word_column, tag=self.tag_column)

    @property
    def windowing(self) -> features_module.Windowing:
        """The settings for converting words to rows."""
        return features_module.Windowing(
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            document_context=self.document_context,
            true_cases=self.true_cases,
        )

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> token_classifier.BertTokenClassifier:
        """See `TaskRecord.create_model`."""
        return token_classifier.BertTokenClassifier(
            config,
            num_labels=len(self.labels),
            feature_based=self.feature_based,
            dtype=dtype,
        )
