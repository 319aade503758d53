"""The record of a run in its output_dir: settings, metrics, scores."""

import contextlib
import dataclasses
import json
import logging
import os

import tensorflow as tf

from bert_tf import files
from bert_tf.training import provenance

logger = logging.getLogger(__name__)

METRICS_FILE = "metrics.jsonl"
EVAL_RESULTS_FILE = "eval_results.txt"
SETTINGS_FILES = ("task.json", "bert_config.json", "vocab.txt")
# Flags that may change between the parts of a run without changing what it computes.
WITHOUT_EFFECT = (
    "do_train",
    "do_eval",
    "do_predict",
    "dry_run",
    "eval_batch_size",
    "iterations_per_loop",
    "keep_checkpoint_max",
    "log_every_steps",
    "output_dir",
    "predict_batch_size",
    "save_checkpoints_steps",
    "worker_hosts",
    "worker_index",
)
# Values of a model that weights which are there already do not depend on.
_FREE_VALUES = (
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "initializer_range",
    "position_initializer",
)


class RunFolder:
    """Writes what predicting, exporting and plotting later read.

    Args:
        path: str; created with the first file.
        is_written: bool; False reads only, as all workers but the chief do.
    """

    def __init__(self, path, *, is_written=True):
        self.path = path
        self._is_written = is_written
        self._writers = {}

    def create(self):
        """Makes the folder; OSError when it cannot be written to."""
        if not self._is_written:
            return
        files.make_folders(self.path)
        probe = os.path.join(self.path, ".writable")
        with files.open_file(probe, "w") as file:
            # A store has no file into which nothing was written.
            file.write("\n")
        files.remove(probe)

    def write_settings(self, *, task, config, vocabulary, options):
        """Writes task.json, bert_config.json, vocab.txt and run.json.

        Args:
            task: dict: task, labels, do_lower_case, max_seq_length, ...
            config: `BertConfig`.
            vocabulary: `Vocabulary`, or None where it is not known.
            options: the tool's options record.
        """
        if not self._is_written:
            return
        self._write_json("task.json", task)
        self._write_text("bert_config.json", config.to_json_string())
        if vocabulary is not None:
            with files.complete_or_absent_path(self._file("vocab.txt")) as path:
                vocabulary.save(path)
        self._write_json(
            "run.json",
            {
                "flags": dataclasses.asdict(options),
                "seed": options.random_seed,
                "versions": provenance.versions(),
                "commit": provenance.commit(),
            },
        )

    def check_same_run(self, config, options):
        """Checks that the run in the folder may be continued; call it before training.

        Args:
            config: `BertConfig` of the model that continues it.
            options: the tool's options record.

        Raises:
            ValueError: as `check_same_model`. What differs and may is logged.
        """
        differing = self.check_same_model(config)
        flags = (self._read_json("run.json") or {}).get("flags", {})
        # As they would be read back: tuples are lists in JSON.
        now = json.loads(json.dumps(dataclasses.asdict(options)))
        if flags:
            # A flag that there was not yet had no effect, as its default has none.
            flags = json.loads(json.dumps(_defaults(options))) | flags
            differing |= _differing(flags, now, ignored=WITHOUT_EFFECT)
        for name, (before, after) in differing.items():
            logger.warning("%s: %s was %s, now %s.", self.path, name, before, after)

    def check_same_model(self, config):
        """Checks that a configuration computes what the run in the folder did.

        Args:
            config: `BertConfig` of the model that gets the run's weights.

        Returns:
            {name: (there, now)} of what differs and may: dropout rates and how weights
            begin. Empty where there is no run.

        Raises:
            ValueError: something else differs.
        """
        recorded = self._read_json("bert_config.json")
        if recorded is None:
            return {}
        there = type(config).from_dict(recorded)
        differing = _differing(there.to_dict(), config.to_dict())
        for name, (before, now) in differing.items():
            if name not in _FREE_VALUES:
                raise ValueError(
                    f"{self.path} holds a run of another model: {name} is {before} "
                    f"there, {now} now; give the run's own (--bert_config_file and "
                    "other flags of the model), or another --output_dir."
                )
        return differing

    def copy_settings_to(self, folder):
        """Copies what predicting and exporting need beside another checkpoint."""
        if not self._is_written:
            return
        for name in SETTINGS_FILES:
            if files.exists(self._file(name)):
                with files.open_file(self._file(name)) as source:
                    text = source.read()
                with files.complete_or_absent(os.path.join(folder, name)) as target:
                    target.write(text)

    def read_task(self):
        """Returns task.json's dict; ValueError where this is no finished run."""
        task = self._read_json("task.json")
        if task is None:
            raise ValueError(
                f"{self.path} holds no task.json; expected the output_dir of a "
                "training run of this package."
            )
        return task

    def cut_metrics(self, step):
        """Drops what an interrupted run logged after `step`."""
        path = self._file(METRICS_FILE)
        if not (self._is_written and files.exists(path)):
            return
        kept = [line for line in self.read_metrics() if line["step"] <= step]
        self._write_text(
            METRICS_FILE, "".join(json.dumps(line) + "\n" for line in kept)
        )

    def read_metrics(self):
        """Returns the list of logged dicts; a line cut off by a kill is dropped."""
        path = self._file(METRICS_FILE)
        if not files.exists(path):
            return []
        lines = []
        with files.open_file(path) as file:
            for line in file:
                try:
                    values = json.loads(line)
                except json.JSONDecodeError:
                    break
                if not isinstance(values, dict) or "step" not in values:
                    break
                lines.append(values)
        return lines

    def last_loss(self):
        """Returns the loss of the last training step that was logged, or NaN."""
        losses = [line["loss"] for line in self.read_metrics() if "loss" in line]
        return losses[-1] if losses else float("nan")

    def log(self, step, values, *, tag="train"):
        """Appends one object to metrics.jsonl and to the TensorBoard files.

        Args:
            step: int, finished optimizer steps.
            values: dict of floats.
            tag: "train" or "eval": the TensorBoard run that they belong to.
        """
        if not self._is_written:
            return
        line = {"step": int(step), **values}
        with self._clear_write_errors():
            with files.open_file(self._file(METRICS_FILE), "a") as file:
                file.write(json.dumps(line) + "\n")
            with self._writer(tag).as_default():
                for name, value in values.items():
                    _write_scalar(name, value, int(step))

    def write_eval_results(self, results):
        """Writes eval_results.txt and logs it in the release's words.

        Args:
            results: dict of numbers; ints are written as such.
        """
        lines = [f"{key} = {results[key]}" for key in sorted(results)]
        if self._is_written:
            self._write_text(EVAL_RESULTS_FILE, "\n".join(lines) + "\n")
        logger.info("***** Eval results *****")
        for line in lines:
            logger.info("  %s", line)

    def close(self):
        """Flushes the TensorBoard files."""
        writers, self._writers = self._writers, {}
        with self._clear_write_errors():
            for writer in writers.values():
                writer.close()

    @contextlib.contextmanager
    def _clear_write_errors(self):
        try:
            yield
        except (OSError, tf.errors.OpError) as error:
            reason = getattr(error, "strerror", None) or "disk full or out of reach"
            raise OSError(
                f"{self.path}: what the run logs cannot be written: {reason}; the "
                "checkpoints are as they were."
            ) from error

    def _writer(self, tag):
        if tag not in self._writers:
            folder = self.path if tag == "train" else self._file(tag)
            self._writers[tag] = tf.summary.create_file_writer(folder)
        return self._writers[tag]

    def _read_json(self, name):
        """Returns what a file of the folder holds, or None where there is none."""
        if not files.exists(self._file(name)):
            return None
        with files.open_file(self._file(name)) as file:
            try:
                return json.load(file)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{self._file(name)} is no JSON ({error}); expected what a "
                    "training run writes."
                ) from None

    def _file(self, name):
        return os.path.join(self.path, name)

    def _write_json(self, name, value):
        self._write_text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def _write_text(self, name, text):
        with files.complete_or_absent(self._file(name)) as file:
            file.write(text)


def _defaults(options):
    """Returns {name: default} of the fields of a record that have one."""
    return {
        field.name: field.default
        for field in dataclasses.fields(options)
        if field.default is not dataclasses.MISSING
    }


def _differing(before, after, ignored=()):
    """Returns {name: (before, after)} of what two dicts do not have in common."""
    names = sorted((before.keys() | after.keys()) - set(ignored))
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _write_scalar(name, value, step):
    """Does what tf.summary.scalar does, without the package tensorboard."""
    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    )
    tf.summary.write(name, tf.constant(value, tf.float32), step, metadata)
