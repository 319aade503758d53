"""The files of a run in its output_dir, checkpoints excepted.

These are the settings, the metrics and the scores.
"""

import contextlib
import dataclasses
import json
import logging
import os
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf import files
from bert_tf import locks
from bert_tf.checkpoints import companion_files
from bert_tf.training import training_facts
from bert_tf.training import workers

logger = logging.getLogger(__name__)

METRICS_FILE = "metrics.jsonl"
EVAL_RESULTS_FILE = "eval_results.txt"
RUN_FILE = "run.json"
# What predicting and exporting need beside a checkpoint.
SETTINGS_FILES = (
    companion_files.TASK_FILE,
    companion_files.CONFIG_FILE,
    companion_files.VOCAB_FILE,
)
# Flags that can change when a run resumes without changing what it computes.
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
# Values of a model's configuration that do not change what trained weights compute.
_FREE_VALUES = (
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "initializer_range",
    "position_initializer",
)


@contextlib.contextmanager
def locked(options: Any) -> Iterator[None]:
    """Locks the output_dir of a run that trains, from before its state is read.

    Two training processes in one folder would mix their metrics and checkpoints. With
    several workers the chief holds the lock, because it alone writes. Evaluating,
    predicting and exporting need no lock: they read complete checkpoints, and their
    files appear complete.

    Args:
        options: `options.DeviceOptions` with `output_dir`, `do_train` and `dry_run`.

    Raises:
        OSError: another process trains in the folder, or it cannot be written.
    """
    is_written = options.do_train and not options.dry_run
    if is_written and options.device == "multi_worker":
        index = workers.index_of_this_process(
            options.worker_hosts, options.worker_index
        )
        is_written = index == 0
    with contextlib.ExitStack() as stack:
        if is_written:
            stack.enter_context(locks.output_folder(options.output_dir))
        yield


class RunFolder:
    """Writes the files that predicting, exporting and plotting read later.

    Args:
        path: the output_dir; created with the first file.
        is_written: False: write nothing, as on all workers but the chief.
    """

    def __init__(self, path: str, *, is_written: bool = True):
        self.path = path
        self._is_written = is_written
        self._writers: dict[str, Any] = {}

    def create(self) -> None:
        """Creates the folder; raises OSError if it is not writable."""
        if not self._is_written:
            return
        files.make_folders(self.path)
        probe = os.path.join(self.path, ".writable")
        with files.open_file(probe, "w") as file:
            # Object stores do not create empty files.
            file.write("\n")
        files.remove(probe)
        files.remove_leftovers_in(self.path)

    def write_settings(
        self, *, task: Mapping[str, Any], config: Any, vocabulary: Any, options: Any
    ) -> None:
        """Writes task.json, bert_config.json, vocab.txt and run.json.

        Args:
            task: task, labels, do_lower_case, max_seq_length, ...
            config: `BertConfig`.
            vocabulary: `Vocabulary`, or None if it is not known.
            options: the tool's options record, with a `random_seed`.
        """
        if not self._is_written:
            return
        self._write_json(
            companion_files.TASK_FILE,
            companion_files.with_fingerprint(task, vocabulary),
        )
        self._write_text(companion_files.CONFIG_FILE, config.to_json_string())
        if vocabulary is not None:
            vocabulary.save(self._file(companion_files.VOCAB_FILE))
        self._write_json(
            RUN_FILE,
            {
                "flags": dataclasses.asdict(options),
                "seed": options.random_seed,
                "versions": training_facts.package_versions(),
                "commit": training_facts.git_commit(),
            },
        )

    def update_task(self, values: Mapping[str, Any]) -> None:
        """Replaces values in task.json; raises ValueError if there is none."""
        if self._is_written:
            self._write_json(companion_files.TASK_FILE, {**self.read_task(), **values})

    def check_same_run(self, config: Any, options: Any) -> None:
        """Checks that the run in the folder can be resumed with these settings.

        Differences that are allowed are logged. Call it before training.

        Args:
            config: `BertConfig` of the model that resumes the run.
            options: the tool's options record.

        Raises:
            ValueError: see `check_same_model`.
        """
        differing = self.check_same_model(config)
        flags = (self._read_json(RUN_FILE) or {}).get("flags", {})
        # Through JSON, so that tuples become lists on both sides.
        now = json.loads(json.dumps(dataclasses.asdict(options)))
        if flags:
            # A flag that an older version did not have counts as having its default
            # value.
            flags = json.loads(json.dumps(_defaults(options))) | flags
            differing |= _differing(flags, now, ignored=WITHOUT_EFFECT)
        for name, (before, after) in differing.items():
            logger.warning("%s: %s was %s, now %s.", self.path, name, before, after)

    def check_same_model(self, config: Any) -> dict[str, tuple[Any, Any]]:
        """Checks that a configuration computes the same as that of the run.

        Args:
            config: `BertConfig` of the model that gets the run's weights.

        Returns:
            {name: (recorded, now)} of the differences that are allowed: dropout rates
            and initialization. Empty if the folder contains no run.

        Raises:
            ValueError: something else differs.
        """
        recorded = self._read_json(companion_files.CONFIG_FILE)
        if recorded is None:
            return {}
        recorded_config = type(config).from_dict(recorded)
        differing = _differing(recorded_config.to_dict(), config.to_dict())
        for name, (before, now) in differing.items():
            if name not in _FREE_VALUES:
                raise ValueError(
                    f"{self.path} contains a run of a different model: {name} is "
                    f"{before} there, {now} now. Pass the model of that run "
                    "(--bert_config_file and other flags), or another --output_dir."
                )
        return differing

    def check_same_vocabulary(self, fingerprint: str | None) -> None:
        """Checks that a vocabulary is that of the run in the folder, if both are known.

        Args:
            fingerprint: `Vocabulary.fingerprint`.

        Raises:
            ValueError: the run has another one.
        """
        own = companion_files.read_vocabulary(self.path)
        if own is None or fingerprint in (None, own.fingerprint):
            return
        raise ValueError(
            f"{self.path} contains a run with a different vocabulary; use "
            f"--vocab_file={self._file(companion_files.VOCAB_FILE)}, or choose another "
            "--output_dir."
        )

    def copy_settings_to(self, folder: str) -> None:
        """Copies `SETTINGS_FILES` into the folder of another checkpoint."""
        if not self._is_written:
            return
        for name in SETTINGS_FILES:
            if files.exists(self._file(name)):
                with files.open_file(self._file(name)) as source:
                    text = source.read()
                with files.complete_or_absent(os.path.join(folder, name)) as target:
                    target.write(text)

    def read_task(self) -> dict[str, Any]:
        """Returns the content of task.json; raises ValueError if there is none."""
        task = self._read_json(companion_files.TASK_FILE)
        if task is None:
            raise ValueError(
                f"{self.path} contains no task.json; expected the output_dir of a "
                "training run of this package."
            )
        return task

    def cut_metrics(self, step: int) -> None:
        """Removes what an interrupted run logged after `step`."""
        path = self._file(METRICS_FILE)
        if not (self._is_written and files.exists(path)):
            return
        kept = [line for line in self.read_metrics() if line["step"] <= step]
        self._write_text(
            METRICS_FILE, "".join(json.dumps(line) + "\n" for line in kept)
        )

    def read_metrics(self) -> list[dict[str, float]]:
        """Returns the logged dicts, without a last line that a kill cut off."""
        path = self._file(METRICS_FILE)
        if not files.exists(path):
            return []
        lines = []
        with files.open_file(path) as file:
            for line in file:
                try:
                    values = json.loads(line)
                except (ValueError, RecursionError):
                    break
                if not isinstance(values, dict):
                    break
                if not isinstance(values.get("step"), int):
                    break
                lines.append(values)
        return lines

    def last_loss(self) -> float:
        """Returns the loss of the last logged training step, or NaN."""
        losses = [line["loss"] for line in self.read_metrics() if "loss" in line]
        return losses[-1] if losses else float("nan")

    def log(
        self, step: int, values: Mapping[str, float], *, tag: str = "train"
    ) -> None:
        """Appends a line to metrics.jsonl and the values to the TensorBoard files.

        Args:
            step: finished optimizer steps.
            values: what to log.
            tag: "train" or "eval": the TensorBoard run that the values belong to.
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

    def write_eval_results(self, results: Mapping[str, float]) -> None:
        """Writes eval_results.txt, as the release did."""
        lines = [f"{key} = {results[key]}\n" for key in sorted(results)]
        if self._is_written:
            self._write_text(EVAL_RESULTS_FILE, "".join(lines))

    def read_eval_results(self) -> dict[str, float]:
        """Returns the numbers in eval_results.txt; empty if there is no such file."""
        path = self._file(EVAL_RESULTS_FILE)
        if not files.exists(path):
            return {}
        found = {}
        for line in files.read_lines(path):
            name, _, value = line.partition(" = ")
            with contextlib.suppress(ValueError):  # Not a number, or not such a line.
                found[name] = float(value)
        return found

    def close(self) -> None:
        """Flushes the TensorBoard files."""
        writers, self._writers = self._writers, {}
        with self._clear_write_errors():
            for writer in writers.values():
                writer.close()

    @contextlib.contextmanager
    def _clear_write_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, tf.errors.OpError) as error:
            raise OSError(
                f"{self.path}: cannot write the run's log: {files.reason_of(error)}. "
                "The checkpoints are unaffected."
            ) from error

    def _writer(self, tag):
        if tag not in self._writers:
            folder = self.path if tag == "train" else self._file(tag)
            self._writers[tag] = tf.summary.create_file_writer(folder)
        return self._writers[tag]

    def _read_json(self, name):
        """Returns the content of a file in the folder, or None if there is none."""
        if not files.exists(self._file(name)):
            return None
        return files.read_json(
            self._file(name), advice="expected the file that a training run writes"
        )

    def _file(self, name):
        return os.path.join(self.path, name)

    def _write_json(self, name, value):
        self._write_text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def _write_text(self, name, text):
        with files.complete_or_absent(self._file(name)) as file:
            file.write(text)


def score_lines(results: Mapping[str, float]) -> list[str]:
    """Returns one line per score for a report, sorted by name, with four digits.

    Leaves out `loss` if there is `eval_loss`, which is the same number.
    """
    names = sorted(results.keys() - ({"loss"} if "eval_loss" in results else ()))
    return [f"{name} = {format_score(results[name])}" for name in names]


def format_score(value: float) -> str:
    """Returns a score with four digits after the point, and a count as it is."""
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _defaults(options):
    """Returns {name: default} of a record's fields that have a default."""
    return {
        field.name: field.default
        for field in dataclasses.fields(options)
        if field.default is not dataclasses.MISSING
    }


def _differing(before, after, ignored=()):
    """Returns {name: (before, after)} of the values in which two dicts differ."""
    names = sorted((before.keys() | after.keys()) - set(ignored))
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _write_scalar(name, value, step):
    """Does the same as tf.summary.scalar, which requires the package tensorboard."""
    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    )
    tf.summary.write(name, tf.constant(value, tf.float32), step, metadata)
