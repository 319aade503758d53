"""Applies a trained tagger, loaded from its run folder or a checkpoint."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import input_names
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import predictions
from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import task as task_module
from bert_tf.tasks.token_classification import words as words_module


class TokenClassificationPredictor(fine_tuning_predictor.Predictor):
    """A trained tagger; see `fine_tuning.predictor.Predictor`."""

    task: task_module.Task

    def __init__(
        self,
        run_dir: str,
        settings: fine_tuning_predictor.LoadSettings = (
            fine_tuning_predictor.DEFAULT_SETTINGS
        ),
    ):
        has_file = settings.has_task_file
        task = task_module.Task.read(run_dir) if has_file else _task_of(settings)
        super().__init__(run_dir, task, settings=settings)
        self._logits = self._compiled(lambda features: self.model(features)["logits"])

    def predict(
        self,
        inputs: Iterable[str | Sequence[str]],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns the tags of sentences.

        Args:
            inputs: sentences, each a list of words or a string. `words.split_text`
                splits strings at white space and splits off outer punctuation.
            progress: see `bert_tf.progress`.

        Returns:
            One dict of lists per sentence, with one element per word: `words`, `tags`,
            `starts` and `ends`, such that text[start:end] is the word. A list of words
            is treated as a text with one space between words.

        Raises:
            ValueError: an input is not a sentence.
        """
        whole_words = frozenset(self.task.whole_words)
        items = input_items.read(inputs, "a list of sentences")
        split = [
            _words_of(index, item, whole_words) for index, item in enumerate(items)
        ]
        return self._answered(
            split,
            self._answers,
            progress=progress,
            unit="sentences",
            length_of=lambda item: input_items.total_length(item.words),
        )

    def _answers(self, split):
        sentences = [
            examples.Sentence(words=item.words, document=index)
            for index, item in enumerate(split)
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
            for item in split
        ]

    def _tags(self, sentences):
        """Returns the tags of the words of all sentences."""
        features = features_module.convert_sentences_to_features(
            sentences, self.task.labels, self.tokenizer, self.task.windowing
        )
        lengths = np.sum(features.columns["input_mask"], axis=1)
        logits = np.zeros((len(features.rows), len(self.task.labels)), np.float32)
        for numbers in fine_tuning_predictor.row_batches(lengths, self.batch_size):
            is_here, part = features.selected(numbers)
            rows = {name: part.columns[name] for name in input_names.SEQUENCE}
            rows = fine_tuning_predictor.without_padding(rows)
            logits[is_here] = part.first_pieces(np.asarray(self._logits(rows)))
        return predictions.best_tags(logits, self.task.labels)


def load(
    run_dir: str,
    settings: fine_tuning_predictor.LoadSettings = (
        fine_tuning_predictor.DEFAULT_SETTINGS
    ),
) -> TokenClassificationPredictor:
    """Returns the predictor of a run folder or a checkpoint."""
    return TokenClassificationPredictor(run_dir, settings)


def _task_of(settings):
    """Returns the task of a checkpoint without a run."""
    head, values = settings.source.head, settings.task_values()
    labels = head.labels or tuple(map(str, range(head.num_labels)))
    return task_module.Task(
        labels=labels,
        tag_scheme=schemes.scheme_of_labels(labels),
        doc_stride=max(1, (values["max_seq_length"] - 2) // 2),
        **values,
    )


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
