"""Applies a trained multiple choice model, loaded from its run folder."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import numerics
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import features
from bert_tf.tasks.multiple_choice import predictions
from bert_tf.tasks.multiple_choice import task as task_module


class MultipleChoicePredictor(fine_tuning_predictor.Predictor):
    """A trained multiple choice model; see `fine_tuning.predictor.Predictor`."""

    task: task_module.Task

    def __init__(self, run_dir: str):
        super().__init__(run_dir, task_module.Task.read(run_dir))
        # Each ending is scored by itself, so inputs may have any number of endings.
        self._scores = fine_tuning_predictor.compiled(self.model.score_endings)

    def predict(
        self, inputs: Iterable[tuple[str, Sequence[str]]]
    ) -> list[dict[str, Any]]:
        """Returns one answer per input; see `predictions.prediction`.

        Args:
            inputs: (start, endings), where endings are two or more texts.

        Raises:
            ValueError: an input has a different form.
        """
        starts, endings = split_choices(inputs)
        answers = []
        choices_per_call = fine_tuning_predictor.ROWS_PER_CALL
        for first in range(0, len(starts), choices_per_call):
            part = slice(first, first + choices_per_call)
            scores = self._score(starts[part], endings[part])
            ends = np.cumsum([len(own) for own in endings[part]])[:-1]
            for own, texts in zip(np.split(scores, ends), endings[part], strict=True):
                probabilities = np.asarray(numerics.softmax(own))
                answers.append(predictions.prediction(probabilities, texts))
        return answers

    def _score(self, starts, endings):
        packed = features.pack_endings(
            self.tokenizer, starts, endings, max_seq_length=self.task.max_seq_length
        )
        return fine_tuning_predictor.apply_in_parts(self._scores, packed)


def load(run_dir: str) -> MultipleChoicePredictor:
    """Returns the predictor of a run folder."""
    return MultipleChoicePredictor(run_dir)


def split_choices(inputs: Iterable[Any]) -> tuple[list[str], list[list[str]]]:
    """Returns the starts, and the endings of each start.

    Args:
        inputs: (start, endings) of each example.

    Raises:
        ValueError: an input has a different form, or a text is empty.
    """
    if isinstance(inputs, str):
        raise ValueError("Expected a list of (start, endings), got one string.")
    inputs = list(inputs)
    for index, item in enumerate(inputs):
        if not _is_choice(item):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected (start, endings): a text and "
                f"a list of {examples_module.MIN_ENDINGS} or more texts, all non-empty."
            )
    return [start for start, _ in inputs], [list(endings) for _, endings in inputs]


def _is_choice(item):
    if not (isinstance(item, tuple | list) and len(item) == 2):
        return False
    start, endings = item
    if not isinstance(endings, tuple | list):
        return False
    texts = [start, *endings]
    is_text = all(isinstance(text, str) and text.strip() for text in texts)
    return is_text and len(endings) >= examples_module.MIN_ENDINGS
