"""Applies a question answering model, loaded from its run or a checkpoint."""

import dataclasses
import functools
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import spans
from bert_tf.tasks.question_answering import task as task_module
from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.tokenization import full

LOGITS = ("start_logits", "end_logits")


class QuestionAnsweringPredictor(fine_tuning_predictor.Predictor):
    """A trained question answering model; see `fine_tuning.predictor.Predictor`."""

    task: task_module.Task

    def __init__(
        self,
        run_dir: str,
        settings: fine_tuning_predictor.LoadSettings = (
            fine_tuning_predictor.DEFAULT_SETTINGS
        ),
    ):
        has_file = settings.has_task_file
        super().__init__(
            run_dir,
            task_module.Task.read(run_dir) if has_file else _task_of(settings),
            create_tokenizer=full.FullTokenizer,
            settings=settings,
        )
        # A checkpoint does not say whether it was trained on SQuAD 2.0.
        self._may_decline = not has_file or self.task.version_2_with_negative
        self._logits = self._compiled(lambda features: self.model(features))

    def predict(
        self,
        inputs: Iterable[Sequence[str]],
        *,
        null_score_diff_threshold: float | None = None,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns the answers to questions.

        Args:
            inputs: (question, context) pairs.
            null_score_diff_threshold: for a model of SQuAD 2.0: there is no answer if
                `no_answer_score - score` is higher. None: the value in task.json. A
                checkpoint without a run has no such value and always answers.
            progress: see `bert_tf.progress`.

        Returns:
            One dict per pair: `answer`, "" if there is none; `start` and `end`, such
            that the answer is context[start:end] with one space between words; `score`
            of the best answer; `no_answer_score`.

        Raises:
            ValueError: an input is not such a pair, its context is blank or too long,
                or there is a threshold although the model always answers.
        """
        task = self.task
        if null_score_diff_threshold is not None:
            if not self._may_decline:
                raise ValueError(
                    "null_score_diff_threshold has no effect on a model that always "
                    "answers; omit it, or train with version_2_with_negative."
                )
            task = dataclasses.replace(
                task,
                version_2_with_negative=True,
                null_score_diff_threshold=null_score_diff_threshold,
            )
        return self._answered(
            examples_of(inputs),
            functools.partial(self._answers, task),
            progress=progress,
            unit="questions",
            # Questions about one context stay together, so it is tokenized once.
            length_of=lambda one: len(one.context.text),
            # A long context has many windows, which are in memory at once.
            batches_sorted=4,
        )

    def _answers(self, task, examples):
        windows = features_module.convert_examples_to_features(
            examples, self.tokenizer, task.sizes, is_training=False
        )
        found = question_answering_predictions.predictions_of(
            windows,
            self._window_logits(windows),
            task.rules,
            alignment.Aligner(self.vocabulary, **task.tokenizer_arguments()),
        )
        return [
            question_answering_predictions.answer_record(
                one, one.answer(task.threshold)
            )
            for one in found
        ]

    def _window_logits(self, windows):
        shape = (len(windows), self.task.max_seq_length)
        found = {name: np.zeros(shape, np.float32) for name in LOGITS}
        for batch in fine_tuning_predictor.row_batches(
            windows.lengths, self.batch_size
        ):
            numbers = np.array(batch)
            longest = int(windows.lengths[numbers].max())
            columns = windows.rows(numbers)
            outputs = self._logits(
                {name: column[:, :longest] for name, column in columns.items()}
            )
            for name in LOGITS:
                found[name][numbers, :longest] = np.asarray(outputs[name])
        return [spans.without_padding(windows, found[name]) for name in LOGITS]


def load(
    run_dir: str,
    settings: fine_tuning_predictor.LoadSettings = (
        fine_tuning_predictor.DEFAULT_SETTINGS
    ),
) -> QuestionAnsweringPredictor:
    """Returns the predictor of a run folder or a checkpoint."""
    return QuestionAnsweringPredictor(run_dir, settings)


def _task_of(settings):
    """Returns the task of a checkpoint without a run, with the release's settings."""
    values = settings.task_values(longest=384)
    room = values["max_seq_length"] - question_answering_windows.NUM_SPECIAL
    max_query_length = min(64, room // 2)
    return task_module.Task(
        doc_stride=max(1, min(128, (room - max_query_length) // 2)),
        max_query_length=max_query_length,
        version_2_with_negative=False,
        n_best_size=20,
        max_answer_length=30,
        null_score_diff_threshold=0.0,
        **values,
    )


def examples_of(
    inputs: Iterable[Any],
) -> list[question_answering_examples.SquadExample]:
    """Converts (question, context) pairs to examples.

    Raises:
        ValueError: an input is not such a pair, or its context is blank or too long.
    """
    items = input_items.read(inputs, "a list of (question, context) pairs")
    contexts: dict[str, question_answering_examples.Context] = {}
    examples = []
    for index, item in enumerate(items):
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
