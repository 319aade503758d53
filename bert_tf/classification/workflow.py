"""Classification on one page: train, evaluate, predict, report."""

import dataclasses
import logging
import os

from bert_tf import progress as progress_module
from bert_tf.classification import card
from bert_tf.classification import distillation
from bert_tf.classification import evaluation as evaluation_module
from bert_tf.classification import inputs as inputs_module
from bert_tf.classification import model
from bert_tf.classification import parts as parts_module
from bert_tf.classification import predictions
from bert_tf.classification import trained
from bert_tf.training import distribution
from bert_tf.training import estimates
from bert_tf.training import evaluation as training_evaluation
from bert_tf.training import loop
from bert_tf.training import model_card
from bert_tf.training import trials

logger = logging.getLogger(__name__)


def run(options, *, progress=progress_module.silent) -> str:
    """Trains, evaluates and predicts as the options say.

    Args:
        options: `classification.options.RunClassifierOptions`.
        progress: see `bert_tf.progress`.

    Returns:
        What was reached, for the reader.

    Raises:
        ValueError, OSError: options, data or checkpoint do not fit together.
    """
    lines = []
    if options.has_trials() and not options.dry_run:
        lines.append(_run_trials(options, progress))
        if not options.do_predict:
            return "\n".join([*lines, f"The run is in {options.output_dir}."])
        # The best run is where a single one would be.
        options = options.alone(do_train=False, do_eval=False)
    classification = Classification(options, progress=progress)
    if options.dry_run:
        return classification.dry_run_report()
    if options.do_train:
        reached = classification.train()
        lines.append(
            f"Trained to step {reached['global_step']}, loss {reached['loss']:.4f}."
        )
    if options.do_eval:
        results = classification.evaluate()
        lines += [f"{name} = {results[name]}" for name in sorted(results)]
    if options.do_predict:
        paths = classification.predict()
        lines.append(f"Predictions are in {' and '.join(paths)}.")
    return "\n".join([*lines, f"The run is in {options.output_dir}."])


def train(options, *, progress=progress_module.silent) -> dict[str, float]:
    """Trains; returns {"loss", "global_step"}. See `run`."""
    only = {"do_train": True, "do_eval": False, "do_predict": False}
    options = options.alone(**only)
    return Classification(options, progress=progress).train()


def evaluate(options, *, progress=progress_module.silent) -> dict[str, float]:
    """Evaluates the last checkpoint; returns what eval_results.txt holds. See `run`."""
    only = {"do_train": False, "do_eval": True, "do_predict": False}
    options = options.alone(**only)
    return Classification(options, progress=progress).evaluate()


def predict(run_dir, inputs) -> list[dict]:
    """Returns the answers of a trained model to new texts.

    Args:
        run_dir: `output_dir` of a training run.
        inputs: list of texts; of (text, second text) for a model of pairs.

    Returns:
        For each a dict; see `trained.TrainedClassifier.predict`.

    Raises:
        ValueError, OSError: the folder holds no trained classifier, or the inputs are
            not what it was trained on.
    """
    return trained.TrainedClassifier(run_dir).predict(inputs)


def _run_trials(options, progress):
    """Runs every restart and every combination of a sweep; returns a report."""

    def run_one(trial_options):
        one = Classification(
            dataclasses.replace(trial_options, do_predict=False), progress=progress
        )
        one.train()
        return one.evaluate()

    return trials.run(options, run_one)


class Classification:
    """Data and model of one run, checked against each other.

    All tables are read before the model is built, so that a mistake in the last of
    them shows before the training and not after it.

    Args:
        options: `classification.options.RunClassifierOptions`.
        progress: see `bert_tf.progress`.

    Attributes:
        examples: "train" and the sets of dev and test -> their examples.
        inputs: `inputs.Inputs`.
        trainer: `loop.Trainer`.
    """

    def __init__(self, options, *, progress=progress_module.silent):
        self.options = options
        self.progress = progress
        self.inputs = inputs_module.prepare(options, progress=progress)
        self._parts = parts_module.Parts(options, self.inputs, progress=progress)
        self.examples = self._parts.examples
        self.teacher = None
        if options.teacher and options.do_train:
            self.teacher = distillation.Teacher(options.teacher, self.inputs.task)
        num_steps = self._num_train_steps()
        self.trainer = loop.Trainer(
            self._create_model,
            options,
            num_train_steps=num_steps,
            num_warmup_steps=int(num_steps * options.warmup_proportion),
            progress=progress,
        )
        if options.do_predict:
            distribution.check_batch_size(
                "predict_batch_size", options.predict_batch_size, self.trainer.strategy
            )

    def _create_model(self):
        options, task = self.options, self.inputs.task
        if self.teacher is None:
            return model.create(
                self.inputs.config,
                task.label_kind,
                task.num_outputs,
                bilstm_on_top=task.bilstm_on_top,
                dtype=options.dtype,
            )
        return distillation.DistilledClassifier(
            self.inputs.config,
            num_labels=task.num_outputs,
            bilstm_on_top=task.bilstm_on_top,
            temperature=options.distillation_temperature,
            weight=options.distillation_weight,
            dtype=options.dtype,
        )

    def train(self) -> dict[str, float]:
        """Trains to the last step; returns {"loss", "global_step"}."""
        if self.trainer.resumed:
            self.trainer.folder.check_same_run(self.inputs.config, self.options)
        self.trainer.folder.create()
        self.trainer.folder.write_settings(
            task=self.inputs.task.to_dict(),
            config=self.inputs.config,
            vocabulary=self.inputs.vocabulary,
            options=self.options,
        )
        logger.info("***** Running training *****")
        logger.info("  Num examples = %d", len(self.examples["train"]))
        logger.info("  Batch size = %d", self.options.train_batch_size)
        logger.info("  Num steps = %d", self.trainer.num_train_steps)
        self._parts.log_weights()
        reached = self.trainer.train(
            self._training_source(), evaluate=self._eval_scores
        )
        self._write_card(training=self.trainer.facts())
        return reached

    def evaluate(self) -> dict[str, float]:
        """Evaluates, writes eval_results.txt and returns its numbers.

        `loss` is the release's key for the mean over batches; here it is the mean over
        examples, as `eval_loss`.
        """
        results = self._eval_scores()
        results |= {"loss": results["eval_loss"], "global_step": self.trainer.step}
        self.trainer.folder.create()
        self.trainer.folder.write_eval_results(results)
        self._write_card(results=results, evaluated=self._evaluated)
        return results

    def predict(self) -> list[str]:
        """Predicts all test examples; returns the paths of the files written."""
        evaluation = training_evaluation.Evaluation(
            self.trainer.model,
            self.trainer.strategy,
            dataclasses.replace(
                self.options, eval_batch_size=self.options.predict_batch_size
            ),
            progress=self.progress,
        )
        self.trainer.folder.create()
        folder = self.options.output_dir
        submission_files = self.inputs.processor.get_submission_files()
        paths = []
        for part in self._parts.test:
            examples = self.examples[part]
            answers = predictions.answers_of(
                self._logits(part, evaluation), self.inputs.task
            )
            guids = [example.guid for example in examples]
            paths += predictions.write_predictions(folder, guids, answers, part=part)
            if part in submission_files:
                path = os.path.join(folder, submission_files[part])
                indices = [example.index for example in examples]
                paths.append(predictions.write_submission(path, indices, answers))
        return paths

    def dry_run_report(self) -> str:
        """Returns what the training would take."""
        length = self.inputs.task.max_seq_length
        return str(estimates.estimate(self.trainer, sequence_length=length))

    def _logits(self, part, evaluation):
        source = self._parts.source(part)
        logits = evaluation.predict(source, keys=("logits",))["logits"]
        return self._parts.logits_of_examples(part, logits)

    def _eval_scores(self):
        self._evaluated = {
            part: evaluation_module.evaluated(
                self.examples[part],
                self._logits(part, self.trainer),
                self.inputs.task,
                task_name=self.inputs.task_name,
            )
            for part in self._parts.dev
        }
        return evaluation_module.named(
            {part: found.scores for part, found in self._evaluated.items()}
        )

    def _write_card(self, **known):
        model_card.write(
            self.options.output_dir,
            card.card_of(self.options, self.inputs, self.examples, **known),
        )

    def _num_train_steps(self):
        """As in 2018: whole steps of the epochs laid end to end."""
        if "train" not in self.examples:
            return 0
        num_rows = self._parts.num_train_rows()
        batch_size = self.options.train_batch_size
        epochs = self.options.num_train_epochs
        num_steps = int(num_rows / batch_size * epochs)
        if num_steps == 0:
            raise ValueError(
                f"{num_rows} examples × {epochs:g} epochs give not one batch of "
                f"{batch_size}; lower --train_batch_size or raise --num_train_epochs."
            )
        return num_steps

    def _training_source(self):
        if self.teacher is None:
            return self._parts.source("train")
        logits = self.teacher.logits(
            self.examples["train"], self.options, progress=self.progress
        )
        return self._parts.source("train", **{distillation.COLUMN: logits})
