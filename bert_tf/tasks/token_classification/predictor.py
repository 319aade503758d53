"""Loads a trained tagger from its run folder."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import input_names
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import predictions
from bert_tf.tasks.token_classification import task as task_module
from bert_tf.tasks.token_classification import words as words_module


class TokenClassificationPredictor(fine_tuning_predictor.Predictor):
    """A trained tagger; see `fine_tuning.predictor.Predictor`."""

    task: task_module.Task

    def __init__(self, run_dir: str):
        super().__init__(run_dir, task_module.Task.read(run_dir))
        self._logits = fine_tuning_predictor.compiled(
            lambda features: self.model(features)["logits"]
        )

    def predict(self, inputs: Iterable[str | Sequence[str]]) -> list[dict[str, Any]]:
        """Returns the tags of sentences.

        Args:
            inputs: sentences, each a list of words or a string. `words.split_text`
                splits strings at white space and splits off outer punctuation.

        Returns:
            One dict of lists per sentence, with one element per word: `words`, `tags`,
            `starts` and `ends`, such that text[start:end] is the word. A list of words
            is treated as a text with one space between words.

        Raises:
            ValueError: an input is not a sentence.
        """
        if isinstance(inputs, str):
            raise ValueError("Expected a list of sentences, got a string.")
        whole_words = frozenset(self.task.whole_words)
        split = [
            _words_of(index, item, whole_words) for index, item in enumerate(inputs)
        ]
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
        logits = []
        for part in features.parts(fine_tuning_predictor.ROWS_PER_CALL):
            rows = {name: part.columns[name] for name in input_names.SEQUENCE}
            rows = fine_tuning_predictor.without_padding(rows)
            logits.append(part.first_pieces(self._logits(rows).numpy()))
        return predictions.best_tags(np.concatenate(logits), self.task.labels)


def load(run_dir: str) -> TokenClassificationPredictor:
    """Returns the predictor of a run folder."""
    return TokenClassificationPredictor(run_dir)


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
