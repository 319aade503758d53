"""Token classification from start to end: train, evaluate, predict, report."""

import functools
import itertools
import logging

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.modeling import numerics
from bert_tf.tasks.token_classification import card
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tasks.token_classification import plain_text
from bert_tf.tasks.token_classification import plots
from bert_tf.tasks.token_classification import predictions
from bert_tf.tasks.token_classification import run_setup
from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import scores
from bert_tf.tasks.token_classification import true_casing
from bert_tf.tokenization import in_graph
from bert_tf.training import estimates
from bert_tf.training import plot_data
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)

# Rows whose logits are in memory at a time.
ROWS_PER_PART = 4096


def run(
    options: token_classification_options.RunNerOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Trains, evaluates and predicts as requested by the options.

    Returns:
        A report of the results.

    Raises:
        ValueError, OSError: a file is missing or damaged, or the options, data and
            checkpoint contradict each other.
        ImportError: scoring entities needs seqeval, which is not installed.
    """
    with run_folder.locked(options):
        task_run = Tagging(options, progress=progress)
        return fine_tuning_workflow.run(task_run, options)


def train(
    options: token_classification_options.RunNerOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"}. See `run`."""
    options = fine_tuning_workflow.only_training(options)
    with run_folder.locked(options):
        return Tagging(options, progress=progress).train()


def evaluate(
    options: token_classification_options.RunNerOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, float]:
    """Evaluates the last checkpoint; returns the content of eval_results.txt."""
    options = fine_tuning_workflow.only_evaluation(options)
    return Tagging(options, progress=progress).evaluate()


class Tagging:
    """The data and the model of a run.

    Args:
        options: the options of the run.
        progress: see `bert_tf.progress`.
    """

    def __init__(
        self,
        options: token_classification_options.RunNerOptions,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ):
        self.options = options
        self.progress = progress
        self.setup = run_setup.prepare(options, progress=progress)
        self.sentences = self.setup.sentences
        self._features_of: dict[str, features_module.Features] = {}
        if "dev" in self.sentences or self._has_tags("test"):
            scores.check_available(self.setup.task.tag_scheme)
        self.trainer = fine_tuning_workflow.create_trainer(
            self.setup,
            options,
            self._num_train_steps(),
            score_names=self.score_names,
            progress=progress,
        )

    def score_names(self) -> list[str]:
        """Returns the names of the scores that an evaluation reports."""
        names = (*scores.names_of(self.setup.task.tag_scheme), "loss")
        return [f"eval_{name}" for name in names]

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}."""
        task = self.setup.task
        advice = true_casing.advice(
            self.sentences["train"],
            tag_scheme=task.tag_scheme,
            do_lower_case=task.do_lower_case,
            is_true_cased=task.true_cases is not None,
        )
        if advice:
            logger.warning("%s", advice)
        logger.info("Tag scheme: %s", task.tag_scheme)
        features = self._features("train")
        rows = features.columns
        reached = fine_tuning_workflow.train(
            self.trainer,
            self.setup,
            self.options,
            lambda: batching.ArraySource(rows),
            counts={
                "Num sentences": len(self.sentences["train"]),
                "Num rows": len(rows["input_ids"]),
            },
            evaluate=self._eval_scores,
        )
        self._write_card(training=self.trainer.facts())
        found = plot_data.lengths(features.lengths, self.setup.task.max_seq_length)
        plot_data.update(self.trainer.folder, {"lengths": found})
        return reached

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its content.

        `eval_loss` is the mean over words. `loss` is the same number under the
        release's name.
        """
        results = fine_tuning_workflow.write_results(
            self.trainer, self._eval_scores(), self.setup.data_sets["dev"]
        )
        self._log_types("dev", self._predicted)
        self._write_card(results=results, predicted=self._predicted)
        values = plots.values_of(
            self._true_tags("dev"),
            self._predicted,
            self.setup.task.tag_scheme,
            self._calibration,
        )
        plot_data.update(self.trainer.folder, values, self.setup.data_sets["dev"])
        return results

    def predict(self) -> list[str]:
        """Writes the tags of the test sentences.

        Returns:
            Lines for the report: the scores, if the test file has tags, and the path
            of the predictions.
        """
        evaluation = fine_tuning_workflow.prediction(
            self.trainer, self.options, progress=self.progress
        )
        task = self.setup.task
        logits = self._word_logits("test", evaluation.predict)
        tags = predictions.best_tags(logits, task.labels)
        self.trainer.folder.create()
        suffix = self.trainer.folder.suffix_of(
            self.setup.predictions_file, self.setup.data_sets["test"]
        )
        folder, path = self.options.output_dir, run_setup.path_of(self.options, "test")
        if run_setup.is_plain_text(self.options, "test"):
            path = plain_text.write_predictions(
                folder,
                path,
                tags,
                whole_words=frozenset(task.whole_words),
                suffix=suffix,
            )
        else:
            path = predictions.write_predictions(
                folder, path, task.tag_column, tags, suffix=suffix
            )
        lines = [f"Predictions are in {path}."]
        if not self._has_tags("test"):
            return lines
        predicted = self._by_sentence("test", tags)
        self._log_types("test", predicted)
        found = self._scores("test", predicted)
        found = {f"test_{name}": value for name, value in found.items()}
        other_data = self.setup.data_sets["test"] if suffix else None
        results = fine_tuning_workflow.write_results(self.trainer, found, other_data)
        if not other_data:  # The card has the scores on the run's own data.
            shown = {name: (value,) for name, value in results.items()}
            model_card.rewrite_scores(self.trainer.folder, shown)
        return run_folder.score_lines(found) + lines

    def dry_run_report(self) -> str:
        """Returns an estimate of the time and memory that training needs."""
        length = self.setup.task.max_seq_length
        return str(estimates.estimate(self.trainer, sequence_length=length))

    def _eval_scores(self):
        logits = self._word_logits("dev", self.trainer.predict)
        found = self._features("dev")
        tag_ids = found.first_pieces(found.columns["tag_ids"])
        losses = np.asarray(numerics.cross_entropy(logits, tag_ids))
        self._calibration = plot_data.calibration_of_logits(logits, tag_ids)
        self._predicted = self._by_sentence(
            "dev", predictions.best_tags(logits, self.setup.task.labels)
        )
        named = {
            f"eval_{name}": value
            for name, value in self._scores("dev", self._predicted).items()
        }
        return named | {"eval_loss": float(np.mean(losses, dtype=np.float64))}

    def _write_card(self, **known):
        model_card.write(
            self.trainer.folder,
            card.card_of(self.options, self.setup, **known),
        )

    def _by_sentence(self, set_type, tags):
        rest = iter(tags)
        return [
            list(itertools.islice(rest, len(sentence.words)))
            for sentence in self.sentences[set_type]
        ]

    def _scores(self, set_type, predicted):
        """Returns the scores of predicted tags."""
        scheme = self.setup.task.tag_scheme
        return scores.tag_scores(self._true_tags(set_type), predicted, scheme)

    def _log_types(self, set_type, predicted):
        """Logs the scores of predicted tags by entity type."""
        scheme = self.setup.task.tag_scheme
        if scheme != schemes.NONE:
            true = self._true_tags(set_type)
            report = scores.report_by_type(true, predicted, scheme)
            logger.info("Entities of %s by type:\n%s", set_type, report.rstrip())

    def _true_tags(self, set_type):
        return [list(sentence.tags or ()) for sentence in self.sentences[set_type]]

    def _word_logits(self, set_type, predict_rows):
        """Returns the logits of all words, float32 [W, C]."""
        logits = []
        for part in self._features(set_type).parts(ROWS_PER_PART):
            source = batching.ArraySource(part.columns)
            outputs = predict_rows(source, keys=("logits",))
            logits.append(part.first_pieces(outputs["logits"]))
        return np.concatenate(logits)

    def _num_train_steps(self):
        if "train" not in self.sentences:
            return 0
        num_rows = len(self._features("train").columns["input_ids"])
        return fine_tuning_workflow.num_train_steps(num_rows, self.options, unit="rows")

    def _features(self, set_type):
        if set_type not in self._features_of:
            self._features_of[set_type] = features_module.convert_sentences_to_features(
                self.sentences[set_type],
                self.setup.task.labels,
                self._tokenizer,
                self.setup.task.windowing,
                progress=self.progress,
            )
        return self._features_of[set_type]

    @functools.cached_property
    def _tokenizer(self):
        return in_graph.InGraphTokenizer(
            self.setup.vocabulary, **self.setup.task.tokenizer_arguments()
        )

    def _has_tags(self, set_type):
        sentences = self.sentences.get(set_type)
        return sentences is not None and sentences[0].tags is not None
