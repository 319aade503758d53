"""The workflow of multiple choice: train, evaluate, predict, report."""

import functools
import logging

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.data import text_checks
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.modeling import numerics
from bert_tf.tasks.multiple_choice import card
from bert_tf.tasks.multiple_choice import checks as multiple_choice_checks
from bert_tf.tasks.multiple_choice import features
from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from bert_tf.tasks.multiple_choice import predictions
from bert_tf.tasks.multiple_choice import run_setup
from bert_tf.tasks.multiple_choice import scores
from bert_tf.tokenization import in_graph
from bert_tf.training import estimates
from bert_tf.training import plot_data
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)

SCORE_NAMES = ("eval_accuracy", "eval_loss")


def run(
    options: multiple_choice_options.RunSwagOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Trains, evaluates and predicts as the options say; returns a report.

    Args:
        options: of the run.
        progress: see `bert_tf.progress`.

    Raises:
        ValueError, OSError: options, data or checkpoint are invalid.
    """
    with run_folder.locked(options):
        task_run = MultipleChoice(options, progress=progress)
        return fine_tuning_workflow.run(task_run, options)


def train(
    options: multiple_choice_options.RunSwagOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"}. See `run`."""
    options = fine_tuning_workflow.only_training(options)
    with run_folder.locked(options):
        return MultipleChoice(options, progress=progress).train()


def evaluate(
    options: multiple_choice_options.RunSwagOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the contents of eval_results.txt."""
    options = fine_tuning_workflow.only_evaluation(options)
    return MultipleChoice(options, progress=progress).evaluate()


class MultipleChoice:
    """Data and model of one run.

    All tables are read before the model is built, so that an error in any of them is
    found before training.

    Args:
        options: of the run.
        progress: see `bert_tf.progress`.
    """

    def __init__(
        self,
        options: multiple_choice_options.RunSwagOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self.options = options
        self.progress = progress
        self.setup = run_setup.prepare(options, progress=progress)
        self.examples = self.setup.examples
        self.trainer = fine_tuning_workflow.create_trainer(
            self.setup,
            options,
            self._num_train_steps(),
            score_names=lambda: SCORE_NAMES,
            progress=progress,
        )
        self._columns: dict[str, dict[str, np.ndarray]] = {}
        self._lengths: dict[str, list[int]] = {}
        self._train_facts: tuple[str, ...] = ()

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}."""
        reached = fine_tuning_workflow.train(
            self.trainer,
            self.setup,
            self.options,
            self._training_source,
            counts={
                "Num examples": len(self.examples["train"]),
                "Num endings": self.setup.task.num_endings,
            },
            evaluate=lambda: self._eval_scores()[0],
        )
        self._write_card(training=self.trainer.facts(), training_data=self._train_facts)
        if self._lengths.get("train"):
            num_special = multiple_choice_checks.NUM_SPECIAL
            found = plot_data.lengths(
                np.add(self._lengths["train"], num_special),
                self.setup.task.max_seq_length,
            )
            plot_data.update(self.trainer.folder, {"lengths": found})
        return reached

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its contents."""
        scores_found, logits = self._eval_scores()
        results = fine_tuning_workflow.write_results(
            self.trainer, scores_found, self.setup.data_sets["dev"]
        )
        self._write_card(results=results, predicted=np.argmax(logits, axis=-1))
        self._write_plot_data(logits)
        return results

    def _write_plot_data(self, logits):
        """Writes what the plots need. The logits are [N, E], E endings."""
        labels = self._features("dev")["label_ids"]
        share = float(np.max(np.bincount(labels)) / len(labels))
        baseline = plot_data.baseline(plot_data.MAJORITY_CLASS, share)
        plot_data.update(
            self.trainer.folder,
            {
                "baselines": {"eval_accuracy": baseline},
                "calibration": plot_data.calibration_of_logits(logits, labels),
            },
            self.setup.data_sets["dev"],
        )

    def predict(self) -> list[str]:
        """Writes the predictions; returns lines about them for the report."""
        evaluation = fine_tuning_workflow.prediction(
            self.trainer, self.options, progress=self.progress
        )
        outputs = evaluation.predict(self._source("test"), keys=("probabilities",))
        self.trainer.folder.create()
        suffix = self.trainer.folder.record_data_set(
            self.setup.predictions_file, self.setup.data_sets["test"]
        )
        paths = predictions.write_predictions(
            self.options.output_dir,
            self.examples["test"],
            outputs["probabilities"],
            suffix=suffix,
        )
        if self.options.predict_file is not None:
            paths.append(
                predictions.write_table(
                    self.options.output_dir,
                    self.options.predict_file,
                    self.examples["test"],
                    outputs["probabilities"],
                    # As the table was read; a run may be applied to one without it.
                    header=self.options.header or self.setup.task.header,
                    suffix=suffix,
                )
            )
        return [f"Predictions are in {' and '.join(paths)}."]

    def dry_run_report(self) -> str:
        """Returns an estimate of the size and time of the training."""
        estimate = estimates.estimate(
            self.trainer,
            sequence_length=self.setup.task.max_seq_length,
            sequences_per_example=self.setup.task.num_endings,
        )
        return str(estimate)

    def _training_source(self):
        source = self._source("train")
        labels = (str(example.label) for example in self.examples["train"])
        lengths = text_checks.truncation(
            self._lengths["train"],
            room=self.setup.task.max_seq_length - multiple_choice_checks.NUM_SPECIAL,
            limit=f"--max_seq_length={self.setup.task.max_seq_length}",
        )
        self._train_facts = (
            f"Correct endings of the training examples: {text_checks.balance(labels)}.",
            f"Of the training examples, {lengths}.",
        )
        for fact in self._train_facts:
            logger.info("  %s", fact)
        return source

    def _write_card(self, **known):
        model_card.write(
            self.trainer.folder, card.card_of(self.options, self.setup, **known)
        )

    def _eval_scores(self):
        """Returns the scores on "dev", and the logits [N, E], E endings."""
        source = self._source("dev")
        logits = self.trainer.predict(source, keys=("logits",))["logits"]
        label_ids = self._features("dev")["label_ids"]
        losses = np.asarray(numerics.cross_entropy(logits, label_ids))
        accuracy = scores.accuracy(label_ids, np.argmax(logits, axis=-1))
        loss = float(np.mean(losses, dtype=np.float64))
        return dict(zip(SCORE_NAMES, (accuracy, loss), strict=True)), logits

    def _num_train_steps(self):
        if "train" not in self.examples:
            return 0
        return fine_tuning_workflow.num_train_steps(
            len(self.examples["train"]), self.options
        )

    def _features(self, set_type):
        if set_type not in self._columns:
            lengths = self._lengths.setdefault(set_type, [])
            self._columns[set_type] = features.convert_examples_to_features(
                self.examples[set_type],
                self.setup.task.max_seq_length,
                self._tokenizer,
                lengths=lengths,
                progress=self.progress,
            )
        return self._columns[set_type]

    @functools.cached_property
    def _tokenizer(self):
        return in_graph.InGraphTokenizer(
            self.setup.vocabulary, **self.setup.task.tokenizer_arguments()
        )

    def _source(self, set_type):
        return batching.ArraySource(self._features(set_type))
