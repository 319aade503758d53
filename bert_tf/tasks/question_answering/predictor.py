"""How to apply a trained question answering model: its record and its predictor."""

import dataclasses
import functools
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import span_predictor
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import scores as question_answering_scores
from bert_tf.tokenization import full
from bert_tf.training import run_folder

LOGITS = ("start_logits", "end_logits")
# Only predicting reads these, so they may change when training is resumed.
FOR_PREDICTING = ("n_best_size", "max_answer_length", "null_score_diff_threshold")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    """How to cut windows and choose answers: the content of task.json."""

    KIND = "question_answering"

    doc_stride: int  # Word pieces between the starts of two windows.
    max_query_length: int  # In word pieces.
    version_2_with_negative: bool  # Whether a question may have no answer.
    n_best_size: int  # Number of starts, and of ends, to try per window.
    max_answer_length: int  # In word pieces.
    null_score_diff_threshold: float  # Above it, there is no answer.
    bilstm_on_top: bool = False  # A BiLSTM between encoder and head.

    @property
    def sizes(self) -> features_module.WindowSizes:
        """How contexts are divided into windows."""
        return features_module.WindowSizes(
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            max_query_length=self.max_query_length,
        )

    @property
    def rules(self) -> question_answering_predictions.Rules:
        """The rules by which answers are chosen."""
        return question_answering_predictions.Rules(
            n_best_size=self.n_best_size,
            max_answer_length=self.max_answer_length,
            version_2_with_negative=self.version_2_with_negative,
        )

    @property
    def threshold(self) -> float | None:
        """The null odds above which there is no answer; None: always answer."""
        if not self.version_2_with_negative:
            return None
        return self.null_score_diff_threshold

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 2

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> span_predictor.BertSpanPredictor:
        """See `TaskRecord.create_model`."""
        return span_predictor.BertSpanPredictor(
            config, bilstm_on_top=self.bilstm_on_top, dtype=dtype
        )


class Predictor(fine_tuning_predictor.Predictor):
    """A trained question answering model; see `fine_tuning.predictor.Predictor`."""

    RECORD = Record
    UNIT = "questions"
    # The graph of a SavedModel divides contexts and answers as `predict` does.
    WORD_SEPARATORS = question_answering_examples.WORD_SEPARATORS
    NO_CANDIDATE = question_answering_predictions.NO_CANDIDATE

    task: Record

    def __init__(
        self,
        run_dir: str,
        task: Record,
        *,
        settings: fine_tuning_predictor.LoadSettings = (
            fine_tuning_predictor.DEFAULT_SETTINGS
        ),
    ):
        super().__init__(
            run_dir, task, create_tokenizer=full.FullTokenizer, settings=settings
        )
        # A checkpoint does not say whether it was trained on SQuAD 2.0.
        self._may_decline = not settings.has_task_file or task.version_2_with_negative

    @classmethod
    def record_of_checkpoint(
        cls, settings: fine_tuning_predictor.LoadSettings
    ) -> Record:
        """See `Predictor.record_of_checkpoint`. The settings are the release's."""
        values = settings.task_values(longest=384)
        room = values["max_seq_length"] - features_module.NUM_SPECIAL
        max_query_length = min(64, room // 2)
        return Record(
            doc_stride=max(1, min(128, (room - max_query_length) // 2)),
            max_query_length=max_query_length,
            version_2_with_negative=False,
            n_best_size=20,
            max_answer_length=30,
            null_score_diff_threshold=0.0,
            **values,
        )

    def predict(
        self,
        inputs: Iterable[Sequence[str]],
        *,
        null_score_diff_threshold: float | None = None,
        progress: progress_module.Progress = progress_module.report,
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
            self.items(inputs),
            functools.partial(self._answers, task),
            progress=progress,
            unit=self.UNIT,
            # Questions about one context stay together, so it is tokenized once.
            length_of=lambda one: len(one.context.text),
            # A long context has many windows, which are in memory at once.
            batches_sorted=4,
        )

    def items(
        self, inputs: Iterable[Any]
    ) -> list[question_answering_examples.SquadExample]:
        """See `Predictor.items`. Contexts that are blank or too long are refused."""
        items = input_items.read(inputs, "a list of (question, context) pairs")
        contexts: dict[str, question_answering_examples.Context] = {}
        examples = []
        for index, item in enumerate(items):
            is_pair = isinstance(item, tuple | list) and len(item) == 2
            if not is_pair or not all(isinstance(text, str) for text in item):
                raise ValueError(
                    f"Input {index} is {item!r:.60}; expected a (question, context) "
                    "pair."
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

    def outputs(self, features: Mapping[str, Any]) -> Any:
        """See `Predictor.outputs`."""
        return self.model(features)

    def _answers(self, task, examples):
        windows = features_module.convert_examples_to_features(
            examples, self.tokenizer, task.sizes, is_training=False
        )
        predictions = question_answering_predictions.predictions_of(
            windows,
            self._window_logits(windows),
            task.rules,
            alignment.Aligner(self.vocabulary, **task.tokenizer_arguments()),
        )
        return [
            question_answering_predictions.answer_record(one, task.threshold)
            for one in predictions
        ]

    def _window_logits(self, windows):
        shape = (len(windows), self.task.max_seq_length)
        logits = {name: np.zeros(shape, np.float32) for name in LOGITS}
        for batch in fine_tuning_predictor.row_batches(
            windows.lengths, self.batch_size
        ):
            numbers = np.array(batch)
            longest = int(windows.lengths[numbers].max())
            columns = windows.rows(numbers)
            outputs = self.apply(
                {name: column[:, :longest] for name, column in columns.items()}
            )
            for name in LOGITS:
                logits[name][numbers, :longest] = np.asarray(outputs[name])
        return [
            question_answering_predictions.without_padding(windows, logits[name])
            for name in LOGITS
        ]


def run(options: question_answering_options.RunSquadOptions) -> str:
    """Runs the task, or answers with several trained runs; returns a report.

    The best answers of the paper are an ensemble's (section 4.2).
    """
    if not options.ensemble:
        return fine_tuning_run.single_run(options)
    with run_folder.locked(options):
        return _ensemble_report(options)


def _ensemble_report(options):
    """Answers with several trained runs together; returns a report."""
    _check_one_kind(options)
    if rotation.latest(options.output_dir) is not None:
        raise ValueError(
            f"{options.output_dir} contains a run, whose results those of the ensemble "
            "would replace; choose another --output_dir."
        )
    members = []
    for run_dir in options.ensemble:
        member = dataclasses.replace(options, output_dir=run_dir, ensemble=())
        task: Any = fine_tuning_run.Run(member).task
        members.append(task.predictions())
    record, data_set = task.record, task.identities["test"]
    predictions = question_answering_predictions.averaged(
        members, n_best_size=record.n_best_size
    )
    folder = run_folder.RunFolder(options.output_dir)
    folder.create()
    lines = []
    if options.do_predict:
        name = question_answering_predictions.JSON_LINES_FILE
        paths = question_answering_predictions.write_predictions(
            options.output_dir,
            predictions,
            record.threshold,
            suffix=folder.suffix_of(name, data_set),
        )
        lines.append(f"Predictions are in {', '.join(paths)}.")
    if options.do_eval:
        scores = question_answering_scores.prediction_scores(
            task.squad_file, predictions, record.threshold
        )
        folder.write_eval_results(scores, data_set)
        lines += run_folder.score_lines(scores)
        lines += fine_tuning_run.other_data_lines(options.output_dir, data_set)
    return "\n".join([*lines, f"The run is in {options.output_dir}."])


def _check_one_kind(options):
    """Refuses an ensemble whose runs choose answers by different rules."""
    first_dir, *other_dirs = options.ensemble
    first = Record.read(first_dir)
    fixed = ("version_2_with_negative",)
    for run_dir in other_dirs:
        other = Record.read(run_dir)
        for name in (*fixed, *FOR_PREDICTING):
            values = [getattr(one, name) for one in (first, other)]
            is_given = options_module.is_given(getattr(options, name))
            if values[0] != values[1] and (name in fixed or not is_given):
                advice = "an ensemble needs runs of one kind"
                if name not in fixed:
                    advice = f"pass --{name} to use one value for all runs"
                raise ValueError(
                    f"{first_dir} has {name} {values[0]}, but {run_dir} has "
                    f"{values[1]}; {advice}."
                )
