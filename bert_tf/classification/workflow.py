"""Classification on one page: train, evaluate, predict, report."""

import dataclasses
import functools
import logging

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.classification import card
from bert_tf.classification import distillation
from bert_tf.classification import features
from bert_tf.classification import inputs as inputs_module
from bert_tf.classification import model
from bert_tf.classification import predictions
from bert_tf.classification import scores
from bert_tf.classification import trained
from bert_tf.data import batching
from bert_tf.modeling import numerics
from bert_tf.tokenization import in_graph
from bert_tf.training import distribution
from bert_tf.training import estimates
from bert_tf.training import evaluation as evaluation_module
from bert_tf.training import loop
from bert_tf.training import model_card

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
    classification = Classification(options, progress=progress)
    if options.dry_run:
        return classification.dry_run_report()
    lines = []
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
    options = dataclasses.replace(options, **only)
    return Classification(options, progress=progress).train()


def evaluate(options, *, progress=progress_module.silent) -> dict[str, float]:
    """Evaluates the last checkpoint; returns what eval_results.txt holds. See `run`."""
    only = {"do_train": False, "do_eval": True, "do_predict": False}
    options = dataclasses.replace(options, **only)
    return Classification(options, progress=progress).evaluate()


def predict(run_dir, inputs) -> list[dict]:
    """Returns the answers of a trained model to new texts.

    Args:
        run_dir: `output_dir` of a training run.
        inputs: list of texts; of (text, second text) for a model of pairs.

    Returns:
        For each a dict: `label`, `probabilities` by label.

    Raises:
        ValueError, OSError: the folder holds no trained classifier, or the inputs are
            not what it was trained on.
    """
    return trained.TrainedClassifier(run_dir).predict(inputs)


class Classification:
    """Data and model of one run, checked against each other.

    All tables are read before the model is built, so that a mistake in the last of
    them shows before the training and not after it.

    Args:
        options: `classification.options.RunClassifierOptions`.
        progress: see `bert_tf.progress`.
    """

    def __init__(self, options, *, progress=progress_module.silent):
        self.options = options
        self.progress = progress
        self.inputs = inputs_module.prepare(options, progress=progress)
        self.examples = self._read_examples()
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
        self._columns = {}

    def _create_model(self):
        options = self.options
        settings = {"num_labels": len(self.inputs.task.labels), "dtype": options.dtype}
        if self.teacher is None:
            return model.BertClassifier(self.inputs.config, **settings)
        return distillation.DistilledClassifier(
            self.inputs.config,
            temperature=options.distillation_temperature,
            weight=options.distillation_weight,
            **settings,
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
        self._write_card(results=results, predicted=self._predicted)
        return results

    def predict(self) -> list[str]:
        """Predicts the test examples; returns the paths of the files written."""
        evaluation = evaluation_module.Evaluation(
            self.trainer.model,
            self.trainer.strategy,
            dataclasses.replace(
                self.options, eval_batch_size=self.options.predict_batch_size
            ),
            progress=self.progress,
        )
        outputs = evaluation.predict(self._source("test"), keys=("probabilities",))
        self.trainer.folder.create()
        return predictions.write_predictions(
            self.options.output_dir,
            [example.guid for example in self.examples["test"]],
            outputs["probabilities"],
            self.inputs.task.labels,
        )

    def dry_run_report(self) -> str:
        """Returns what the training would take."""
        length = self.inputs.task.max_seq_length
        return str(estimates.estimate(self.trainer, sequence_length=length))

    def _eval_scores(self):
        source = self._source("dev")
        logits = self.trainer.predict(source, keys=("logits",))["logits"]
        label_ids = self._features("dev")["label_ids"]
        self._predicted = card.names_of(logits, self.inputs.task.labels)
        losses = np.asarray(numerics.cross_entropy(logits, label_ids))
        found = scores.task_scores(
            self.inputs.task.task_name, label_ids, np.argmax(logits, axis=-1)
        )
        named = {f"eval_{name}": value for name, value in found.items()}
        return named | {"eval_loss": float(np.mean(losses, dtype=np.float64))}

    def _write_card(self, **known):
        model_card.write(
            self.options.output_dir,
            card.card_of(self.options, self.inputs, self.examples, **known),
        )

    def _read_examples(self):
        options, processor = self.options, self.inputs.processor
        examples = {}
        if options.do_train or options.dry_run:
            examples["train"] = processor.get_train_examples(options.data_dir)
        if options.do_eval or (options.do_train and options.eval_every_steps):
            examples["dev"] = processor.get_dev_examples(options.data_dir)
        if options.do_predict:
            examples["test"] = processor.get_test_examples(options.data_dir)
        return examples

    def _num_train_steps(self):
        """As in 2018: whole steps of the epochs laid end to end."""
        if "train" not in self.examples:
            return 0
        num_examples = len(self.examples["train"])
        batch_size, epochs = (
            self.options.train_batch_size,
            self.options.num_train_epochs,
        )
        num_steps = int(num_examples / batch_size * epochs)
        if num_steps == 0:
            raise ValueError(
                f"{num_examples} examples × {epochs:g} epochs give not one batch of "
                f"{batch_size}; lower --train_batch_size or raise --num_train_epochs."
            )
        return num_steps

    def _features(self, set_type):
        if set_type not in self._columns:
            self._columns[set_type] = features.convert_examples_to_features(
                self.examples[set_type],
                self.inputs.task.labels,
                self.inputs.task.max_seq_length,
                self._tokenizer,
                progress=self.progress,
            )
        return self._columns[set_type]

    def _training_source(self):
        columns = self._features("train")
        if self.teacher is not None:
            logits = self.teacher.logits(
                self.examples["train"], self.options, progress=self.progress
            )
            columns = columns | {distillation.COLUMN: logits}
        return batching.ArraySource(columns)

    @functools.cached_property
    def _tokenizer(self):
        return in_graph.InGraphTokenizer(
            self.inputs.vocabulary, do_lower_case=self.inputs.task.do_lower_case
        )

    def _source(self, set_type):
        return batching.ArraySource(self._features(set_type))
