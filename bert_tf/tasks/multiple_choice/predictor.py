"""Applies a trained multiple choice model, loaded from its run or a checkpoint."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import numerics
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import features
from bert_tf.tasks.multiple_choice import predictions
from bert_tf.tasks.multiple_choice import task as task_module


class MultipleChoicePredictor(fine_tuning_predictor.Predictor):
    """A trained multiple choice model; see `fine_tuning.predictor.Predictor`."""

    task: task_module.Task
    uses_pooler = True

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
        # Each ending is scored by itself, so inputs may have any number of endings.
        self._scores = self._compiled(self.model.score_endings)

    def predict(
        self,
        inputs: Iterable[tuple[str, Sequence[str]]],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns one answer per input; see `predictions.prediction`.

        Args:
            inputs: (start, endings), where endings are two or more texts.
            progress: see `bert_tf.progress`.

        Raises:
            ValueError: an input has a different form.
        """
        items = list(zip(*split_choices(inputs), strict=True))
        return self._answered(items, self._answers, progress=progress)

    def _answers(self, items):
        starts, endings = zip(*items, strict=True)
        packed = features.pack_endings(
            self.tokenizer, starts, endings, max_seq_length=self.task.max_seq_length
        )
        scores = self._applied(self._scores, packed)
        ends = np.cumsum([len(own) for own in endings])[:-1]
        return [
            predictions.prediction(np.asarray(numerics.softmax(own)), texts)
            for own, texts in zip(np.split(scores, ends), endings, strict=True)
        ]


def load(
    run_dir: str,
    settings: fine_tuning_predictor.LoadSettings = (
        fine_tuning_predictor.DEFAULT_SETTINGS
    ),
) -> MultipleChoicePredictor:
    """Returns the predictor of a run folder or a checkpoint."""
    return MultipleChoicePredictor(run_dir, settings)


def _task_of(settings):
    """Returns the task of a checkpoint without a run."""
    least = examples_module.MIN_ENDINGS
    return task_module.Task(num_endings=least, **settings.task_values())


def split_choices(inputs: Iterable[Any]) -> tuple[list[str], list[list[str]]]:
    """Returns the starts, and the endings of each start.

    Args:
        inputs: (start, endings) of each example.

    Raises:
        ValueError: an input has a different form, or a text is empty.
    """
    items = input_items.read(inputs, "a list of (start, endings)")
    for index, item in enumerate(items):
        if not _is_choice(item):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected (start, endings): a text and "
                f"a list of {examples_module.MIN_ENDINGS} or more texts, all non-empty."
            )
    return [start for start, _ in items], [list(endings) for _, endings in items]


def _is_choice(item):
    if not (isinstance(item, tuple | list) and len(item) == 2):
        return False
    start, endings = item
    if not isinstance(endings, tuple | list):
        return False
    texts = [start, *endings]
    is_text = all(isinstance(text, str) and text.strip() for text in texts)
    return is_text and len(endings) >= examples_module.MIN_ENDINGS
