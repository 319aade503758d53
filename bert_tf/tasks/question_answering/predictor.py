"""Loads a trained question answering model from its run folder."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import spans
from bert_tf.tasks.question_answering import task as task_module
from bert_tf.tokenization import full

LOGITS = ("start_logits", "end_logits")


class QuestionAnsweringPredictor(fine_tuning_predictor.Predictor):
    """A trained question answering model; see `fine_tuning.predictor.Predictor`."""

    task: task_module.Task

    def __init__(self, run_dir: str):
        super().__init__(
            run_dir,
            task_module.Task.read(run_dir),
            create_tokenizer=full.FullTokenizer,
        )
        self._logits = fine_tuning_predictor.compiled(
            lambda features: self.model(features)
        )

    def predict(
        self,
        inputs: Iterable[Sequence[str]],
        *,
        null_score_diff_threshold: float | None = None,
    ) -> list[dict[str, Any]]:
        """Returns the answers to questions.

        Args:
            inputs: (question, context) pairs.
            null_score_diff_threshold: for a model of SQuAD 2.0: there is no answer if
                `no_answer_score - score` is higher. None: the value in task.json.

        Returns:
            One dict per pair: `answer`, "" if there is none; `start` and `end`, such
            that the answer is context[start:end] with one space between words; `score`
            of the best answer; `no_answer_score`.

        Raises:
            ValueError: an input is not such a pair, its context is blank or too long,
                or there is a threshold although the model always answers.
        """
        threshold = self.task.threshold
        if null_score_diff_threshold is not None:
            if threshold is None:
                raise ValueError(
                    "null_score_diff_threshold has no effect on a model that always "
                    "answers; omit it, or train with version_2_with_negative."
                )
            threshold = null_score_diff_threshold
        examples = examples_of(inputs)
        if not examples:
            return []
        windows = features_module.convert_examples_to_features(
            examples, self.tokenizer, self.task.sizes, is_training=False
        )
        found = question_answering_predictions.predictions_of(
            windows,
            self._window_logits(windows),
            self.task.rules,
            alignment.Aligner(self.vocabulary, **self.task.tokenizer_arguments()),
        )
        return [
            question_answering_predictions.answer_record(one, one.answer(threshold))
            for one in found
        ]

    def _window_logits(self, windows):
        shape = (len(windows), self.task.max_seq_length)
        found = {name: np.zeros(shape, np.float32) for name in LOGITS}
        rows_per_call = fine_tuning_predictor.ROWS_PER_CALL
        for begin in range(0, len(windows), rows_per_call):
            numbers = np.arange(begin, min(begin + rows_per_call, len(windows)))
            longest = int(windows.lengths[numbers].max())
            columns = windows.rows(numbers)
            outputs = self._logits(
                {name: column[:, :longest] for name, column in columns.items()}
            )
            for name in LOGITS:
                found[name][numbers, :longest] = outputs[name].numpy()
        return [spans.without_padding(windows, found[name]) for name in LOGITS]


def load(run_dir: str) -> QuestionAnsweringPredictor:
    """Returns the predictor of a run folder."""
    return QuestionAnsweringPredictor(run_dir)


def examples_of(
    inputs: Iterable[Any],
) -> list[question_answering_examples.SquadExample]:
    """Converts (question, context) pairs to examples.

    Raises:
        ValueError: an input is not such a pair, or its context is blank or too long.
    """
    if isinstance(inputs, str):
        raise ValueError("Expected a list of (question, context) pairs, got a string.")
    contexts: dict[str, question_answering_examples.Context] = {}
    examples = []
    for index, item in enumerate(inputs):
        is_pair = isinstance(item, tuple | list) and len(item) == 2
        if not is_pair or not all(isinstance(text, str) for text in item):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected a (question, context) pair."
            )
        question, text = item
        if text not in contexts:
            contexts[text] = question_answering_examples.checked_context(
                text, f"Input {index}"
            )
        examples.append(
            question_answering_examples.SquadExample(
                qas_id=str(index), question_text=question, context=contexts[text]
            )
        )
    return examples
