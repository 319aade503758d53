"""What a trained tagger needs to be applied, and its predictor."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import input_names
from bert_tf.modeling import token_classifier
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import words as words_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    """How to apply a tagger to new sentences: the content of task.json."""

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


class Predictor(fine_tuning_predictor.Predictor):
    """A trained tagger; see `fine_tuning.predictor.Predictor`.

    An input is a sentence: a list of words, or a string that `words.split_text`
    divides. An answer has lists with one element per word: `words`, `tags`, `starts`
    and `ends`, such that text[start:end] is the word. A list of words is treated as a
    text with one space between words.
    """

    RECORD = Record
    UNIT = "sentences"

    task: Record

    @classmethod
    def record_of_checkpoint(
        cls, settings: fine_tuning_predictor.LoadSettings
    ) -> Record:
        """See `Predictor.record_of_checkpoint`."""
        head, values = settings.source.head, settings.task_values()
        labels = head.labels or tuple(map(str, range(head.num_labels or 0)))
        return Record(
            labels=labels,
            tag_scheme=schemes.scheme_of_labels(labels),
            doc_stride=max(1, (values["max_seq_length"] - 2) // 2),
            **values,
        )

    def items(self, inputs: Iterable[Any]) -> list[words_module.Words]:
        """See `Predictor.items`."""
        whole_words = frozenset(self.task.whole_words)
        sentences = input_items.read(inputs, "a list of sentences")
        return [
            _words_of(index, sentence, whole_words)
            for index, sentence in enumerate(sentences)
        ]

    def length(self, item: words_module.Words) -> int:
        """See `Predictor.length`."""
        return input_items.total_length(item.words)

    def outputs(self, features: Mapping[str, Any]) -> Any:
        """See `Predictor.outputs`."""
        return self.model(features)["logits"]

    def answers(self, items: Sequence[words_module.Words]) -> list[dict[str, Any]]:
        """See `Predictor.answers`."""
        sentences = [
            examples.Sentence(words=item.words, document=index)
            for index, item in enumerate(items)
            if item.words
        ]
        tags = iter(self._tags(sentences) if sentences else ())
        return [
            {
                "words": list(item.words),
                "tags": [next(tags) for _ in item.words],
                "starts": list(item.starts),
                "ends": list(item.ends),
            }
            for item in items
        ]

    def _tags(self, sentences):
        """Returns the tags of the words of all sentences."""
        labels = self.task.labels
        features = features_module.convert_sentences_to_features(
            sentences, labels, self.tokenizer, self.task.windowing
        )
        lengths = np.sum(features.columns["input_mask"], axis=1)
        best = np.zeros(len(features.rows), np.int64)
        for numbers in fine_tuning_predictor.row_batches(lengths, self.batch_size):
            is_here, part = features.selected(numbers)
            rows = {name: part.columns[name] for name in input_names.SEQUENCE}
            rows = fine_tuning_predictor.without_padding(rows)
            logits = part.first_pieces(np.asarray(self.apply(rows)))
            best[is_here] = np.argmax(logits, axis=-1)
        return [labels[index] for index in best]


def _words_of(index, item, whole_words):
    if isinstance(item, str):
        return words_module.split_text(item, whole_words)
    if not isinstance(item, Sequence) or not all(
        isinstance(word, str) and word for word in item
    ):
        raise ValueError(
            f"Input {index} is {item!r:.60}; expected a string or a list of non-empty "
            "words."
        )
    lengths = np.array([len(word) for word in item], np.int64)
    starts = np.cumsum(lengths + 1) - lengths - 1
    return words_module.Words(
        words=tuple(item),
        starts=tuple(starts.tolist()),
        ends=tuple((starts + lengths).tolist()),
    )
