"""Applies a trained classifier, loaded from its run folder or a checkpoint."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from bert_tf import progress as progress_module
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import task as task_module
from bert_tf.tasks.classification import windows


class ClassificationPredictor(fine_tuning_predictor.Predictor):
    """A trained classifier; see `fine_tuning.predictor.Predictor`."""

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
        # A checkpoint without a run does not say whether it was trained on pairs.
        self._is_pair = task.is_pair if has_file else None
        self._logits = self._compiled(lambda features: self.model(features)["logits"])

    def predict(
        self,
        inputs: Iterable[str] | Iterable[Sequence[str]],
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns one answer per input; see `predictions.answers_of`.

        Args:
            inputs: texts, or (text, second text) if the model was trained on pairs.
            progress: see `bert_tf.progress`.

        Raises:
            ValueError: an input has the wrong type.
        """
        texts, texts_b = split_pairs(inputs, is_pair=self._is_pair)
        if texts_b is not None and self._is_pair is None:
            self.config.check_segments(2)
        items = texts if texts_b is None else list(zip(texts, texts_b, strict=True))
        return self._answered(items, self._answers, progress=progress)

    def _answers(self, items):
        texts, texts_b = items, None
        if not isinstance(items[0], str):
            texts, texts_b = zip(*items, strict=True)
        packed, numbers = windows.pack(
            self.tokenizer,
            texts,
            texts_b=texts_b,
            max_seq_length=self.task.max_seq_length,
            doc_stride=self.task.doc_stride,
            truncate_pair=self.task.truncate_pair,
        )
        logits = self._applied(self._logits, packed)
        mean = windows.mean_over_windows(logits, numbers, len(texts))
        return classification_predictions.answers_of(mean, self.task)


def load(
    run_dir: str,
    settings: fine_tuning_predictor.LoadSettings = (
        fine_tuning_predictor.DEFAULT_SETTINGS
    ),
) -> ClassificationPredictor:
    """Returns the predictor of a run folder or a checkpoint."""
    return ClassificationPredictor(run_dir, settings)


def _task_of(settings):
    """Returns the task that a checkpoint without a run describes."""
    head, text = settings.source.head, settings.source.text
    numbers = tuple(map(str, range(head.num_labels)))
    is_regression = head.label_kind == label_kinds.REGRESSION
    return task_module.Task(
        labels=() if is_regression else head.labels or numbers,
        label_kind=head.label_kind,
        output_activation=text.output_activation,
        longer_keeps_more=True,
        **settings.task_values(),
    )


def split_pairs(
    inputs: Iterable[Any], *, is_pair: bool | None
) -> tuple[Sequence[str], Sequence[str] | None]:
    """Returns the first texts, and the second texts or None.

    Args:
        inputs: texts, or (text, second text) if `is_pair`.
        is_pair: whether the model was trained on pairs. None: the first input decides.

    Raises:
        ValueError: the inputs are one string, or an input has the wrong type.
    """
    items = input_items.read(inputs, "a list of texts")
    trained_on = "the model was trained on"
    if is_pair is None:
        is_pair = bool(items) and not isinstance(items[0], str)
        trained_on = "the other inputs are" if items else trained_on
    for index, item in enumerate(items):
        if not is_pair and not isinstance(item, str):
            raise ValueError(
                f"Input {index} is {item!r:.60}, but {trained_on} single "
                "texts; expected a string."
            )
        if is_pair and not _is_pair_of_texts(item):
            raise ValueError(
                f"Input {index} is {item!r:.60}, but {trained_on} pairs; "
                "expected (text, second text)."
            )
    if not is_pair:
        return items, None
    return [first for first, _ in items], [second for _, second in items]


def _is_pair_of_texts(item):
    is_sequence = isinstance(item, tuple | list) and len(item) == 2
    return is_sequence and all(isinstance(text, str) for text in item)
