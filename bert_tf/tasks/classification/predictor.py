"""Applies a trained classifier, loaded from its run folder."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import task as task_module
from bert_tf.tasks.classification import windows


class ClassificationPredictor(fine_tuning_predictor.Predictor):
    """A trained classifier; see `fine_tuning.predictor.Predictor`."""

    task: task_module.Task

    def __init__(self, run_dir: str):
        super().__init__(run_dir, task_module.Task.read(run_dir))
        self._logits = fine_tuning_predictor.compiled(
            lambda features: self.model(features)["logits"]
        )

    def predict(
        self, inputs: Iterable[str] | Iterable[Sequence[str]]
    ) -> list[dict[str, Any]]:
        """Returns one answer per input; see `predictions.answers_of`.

        Args:
            inputs: texts, or (text, second text) if the model was trained on pairs.

        Raises:
            ValueError: an input has the wrong type.
        """
        texts, texts_b = split_pairs(inputs, is_pair=self.task.is_pair)
        if not texts:
            return []
        packed, numbers = windows.pack(
            self.tokenizer,
            texts,
            texts_b=texts_b,
            max_seq_length=self.task.max_seq_length,
            doc_stride=self.task.doc_stride,
            truncate_pair=self.task.truncate_pair,
        )
        logits = fine_tuning_predictor.apply_in_parts(self._logits, packed)
        mean = windows.mean_over_windows(logits, numbers, len(texts))
        return classification_predictions.answers_of(mean, self.task)


def load(run_dir: str) -> ClassificationPredictor:
    """Returns the predictor of a run folder."""
    return ClassificationPredictor(run_dir)


def split_pairs(
    inputs: Iterable[Any], *, is_pair: bool
) -> tuple[Sequence[str], Sequence[str] | None]:
    """Returns the first texts, and the second texts or None.

    Args:
        inputs: texts, or (text, second text) if `is_pair`.
        is_pair: whether the model was trained on pairs.

    Raises:
        ValueError: the inputs are one string, or an input has the wrong type.
    """
    if isinstance(inputs, str):
        raise ValueError("Expected a list of texts, got one string.")
    inputs = list(inputs)
    for index, item in enumerate(inputs):
        if not is_pair and not isinstance(item, str):
            raise ValueError(
                f"Input {index} is {item!r:.60}, but the model was trained on single "
                "texts; expected a string."
            )
        if is_pair and not _is_pair_of_texts(item):
            raise ValueError(
                f"Input {index} is {item!r:.60}, but the model was trained on pairs; "
                "expected (text, second text)."
            )
    if not is_pair:
        return inputs, None
    return [first for first, _ in inputs], [second for _, second in inputs]


def _is_pair_of_texts(item):
    is_sequence = isinstance(item, tuple | list) and len(item) == 2
    return is_sequence and all(isinstance(text, str) for text in item)
