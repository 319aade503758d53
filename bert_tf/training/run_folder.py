"""The folder of a run: its lock, its record, its metrics and scores.

run.json describes the run: its flags, its data and its versions. It contains file and
folder names without their parent folders, because a run's folder may be published. A
command that resumes the run must have the same flags, except those whose declaration
says that they may change (`options.option(on_resume=...)`), and the same data.
"""

import contextlib
import dataclasses
import json
import logging
import math
import os
import re
import time
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf import files
from bert_tf import json_values
from bert_tf import locks
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.training import run_file
from bert_tf.training import workers

logger = logging.getLogger(__name__)

EVAL_RESULTS_FILE = "eval_results.txt"
METRICS_FILE = "metrics.jsonl"
# A line has the step, and numbers by name; see `json_values.unexpected`.
_METRICS_SHAPE = {"step": int, str: int | float | None}
_DIGITS = 8  # Of a checksum in a file name.
_REMOTE_WRITE_SECONDS = 10.0  # Between writes of metrics.jsonl to an object store.
# What predicting and exporting need beside a checkpoint.
SETTINGS_FILES = (
    companion_files.TASK_FILE,
    companion_files.CONFIG_FILE,
    companion_files.VOCAB_FILE,
)


def locked(options: Any) -> contextlib.AbstractContextManager[None]:
    """Locks the output_dir of a run that trains, from before its state is read.

    Two training processes in one folder would mix their metrics and checkpoints. With
    several workers the chief holds the lock, because it alone writes. Evaluating,
    predicting and exporting need no lock: they read complete checkpoints, and their
    files only appear once complete.

    Raises:
        OSError: another process trains in the folder, or it cannot be written.
    """
    is_written = options.do_train and not options.dry_run
    if is_written and options.device == "multi_worker":
        is_written = workers.index_of_this_process() == 0
    if is_written:
        return locks.output_folder(options.output_dir)
    return contextlib.nullcontext()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a training run, as written to its folder."""

    task: Mapping[str, Any]  # The content of task.json.
    config: Any  # `BertConfig`.
    vocabulary: Any  # `Vocabulary`, or None if it is not known.
    options: Any  # Of the tool, with a `random_seed`.
    training_data: run_file.DataSet | None = None
    # The data sets that the command names, by main result file.
    results: Mapping[str, run_file.DataSet] = dataclasses.field(default_factory=dict)
    hub_name: str | None = None  # `Source.hub_name` of the checkpoint to start from.


class RunFolder:
    """Writes the files that predicting, exporting and plotting read later.

    Args:
        path: the output_dir; created with the first file.
        is_written: False: write nothing, as on all workers but the chief.
    """

    def __init__(self, path: str, *, is_written: bool = True):
        self.path = path
        self.is_written = is_written
        self._writers: dict[str, Any] = {}
        self._unwritten: list[str] = []  # Lines of metrics.jsonl.
        self._written_at = -math.inf  # Seconds.

    def create(self) -> None:
        """Creates the folder; raises OSError if that fails."""
        if self.is_written:
            files.make_folders(self.path)
            files.remove_leftovers(self.path)

    def write_settings(self, settings: Settings, *, step: int = 0) -> None:
        """Writes task.json, bert_config.json, vocab.txt and run.json.

        After the first `step`, the start and the results of the run stay recorded.
        """
        if not self.is_written:
            return
        run: dict[str, Any] = {"hub_name": settings.hub_name}
        if step:
            run = run_file.read_run(self.path)
        vocabulary, trained = settings.vocabulary, settings.training_data
        task = companion_files.with_fingerprint(settings.task, vocabulary)
        self._write_json(companion_files.TASK_FILE, task)
        self._write_text(companion_files.CONFIG_FILE, settings.config.to_json_string())
        if vocabulary is not None:
            vocabulary.save(self._file(companion_files.VOCAB_FILE))
        results = {
            name: run_file.entry(data_set, may_be_missing=True)
            for name, data_set in settings.results.items()
        }
        record = {
            "flags": run_file.flags_of(settings.options),
            "hub_name": run.get("hub_name"),
            "training_data": trained and run_file.entry(trained),
            "results": results | run.get("results", {}),
            "seed": settings.options.random_seed,
            "versions": run_file.package_versions(),
        }
        self._write_json(run_file.RUN_FILE, record)

    def check_same_run(
        self, settings: Settings, *, step: int = 0, has_steps_left: bool = True
    ) -> None:
        """Checks that the run in the folder can be resumed with these settings.

        A command without steps left must not ask for a shorter run either. `step`
        counts the finished optimizer steps.

        Raises:
            ValueError: see `check_same_model`; or a flag differs that may not change;
                or the training data or their order differ; or best/ would be selected
                by scores on different data.
        """
        options, run = settings.options, run_file.read_run(self.path)
        changed = self.check_same_model(settings.config)
        may_change = {options_module.FREE}
        if has_steps_left:
            for name, (before, now) in changed.items():
                logger.warning("%s: %s was %s, now %s.", self.path, name, before, now)
            changed = {}
            may_change.add(options_module.LONGER)
        flags = run.get("flags", {})
        changed |= run_file.changed_flags(flags, options, may_change=may_change)
        if changed:
            before, now = (
                ", ".join(f"{name} {_shown(pair[i])}" for name, pair in changed.items())
                for i in (0, 1)
            )
            raise ValueError(
                f"{self.path} contains a run ({step} steps) with {before}; this "
                f"command has {now}. Choose another --output_dir to train with these "
                "settings, or omit --do_train to use the run as it is."
            )
        trained = run.get("training_data")
        if difference := run_file.data_difference(trained, settings.training_data):
            raise ValueError(
                f"{self.path} contains a run that was trained on {difference[0]}, but "
                f"this command trains on {difference[1]}; read the same files from "
                "the same place, or choose another --output_dir."
            )
        evaluated = settings.results.get(EVAL_RESULTS_FILE)
        if options.eval_every_steps and self.suffix_of(EVAL_RESULTS_FILE, evaluated):
            raise ValueError(
                f"{self.path} contains a run that was not evaluated on "
                f"{evaluated and evaluated.name}; evaluate on the same data while "
                "training, or choose another --output_dir."
            )

    def check_same_model(self, config: Any) -> run_file.Changes:
        """Checks that a `BertConfig` computes the same as that of the run.

        Returns:
            {name: (recorded, now)} of the differences that are allowed: dropout rates
            and initialization. Empty if the folder contains no run.

        Raises:
            ValueError: something else differs.
        """
        path = self._file(companion_files.CONFIG_FILE)
        if not files.exists(path):
            return {}
        recorded = type(config).from_json_file(path)
        changed = run_file.changed_values(recorded.to_dict(), config.to_dict())
        for name, (before, now) in changed.items():
            if name not in companion_files.FREE_VALUES:
                raise ValueError(
                    f"{self.path} contains a run of a different model: {name} is "
                    f"{before} there, {now} now. Pass the model of that run "
                    "(--bert_config_file and other flags), or another --output_dir."
                )
        return changed

    def check_same_vocabulary(self, fingerprint: str | None) -> None:
        """Raises a ValueError for the `Vocabulary.fingerprint` of another vocabulary.

        None, or a run without a vocabulary, is accepted.
        """
        recorded = companion_files.read_vocabulary(self.path)
        if recorded is None or fingerprint in (None, recorded.fingerprint):
            return
        raise ValueError(
            f"{self.path} contains a run with a different vocabulary; use "
            f"--vocab_file={self._file(companion_files.VOCAB_FILE)}, or choose another "
            "--output_dir."
        )

    def copy_settings_to(self, folder: str) -> None:
        """Copies `SETTINGS_FILES` into the folder of another checkpoint."""
        for name in SETTINGS_FILES:
            if self.is_written and files.exists(self._file(name)):
                with files.open_file(self._file(name)) as source:
                    RunFolder(folder)._write_text(name, source.read())

    def read_task(self) -> Mapping[str, Any]:
        """Returns the content of task.json; raises ValueError if there is none."""
        if not files.exists(self._file(companion_files.TASK_FILE)):
            raise ValueError(
                f"{self.path} contains no task.json; expected the output_dir of a "
                "training run of this package."
            )
        return companion_files.read_task(self.path)

    def cut_metrics(self, step: int) -> None:
        """Removes what an interrupted run logged after `step`."""
        if self.is_written and files.exists(self._file(METRICS_FILE)):
            lines = [line for line in self.read_metrics() if line["step"] <= step]
            self._write_text(METRICS_FILE, "".join(map(_metrics_line, lines)))

    def read_metrics(self) -> list[dict[str, float]]:
        """Returns the logged dicts, without a last line that a kill cut off.

        Other damaged lines are left out with a warning.
        """
        self.write_metrics()
        path = self._file(METRICS_FILE)
        if not files.exists(path):
            return []
        with files.open_file(path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        logged = []
        for number, line in enumerate(lines, start=1):
            try:
                values = files.parse_json(line, f"{path}:{number}")
            except ValueError:
                values = None
            if json_values.unexpected(values, _METRICS_SHAPE) is None:
                pairs = values.items()
                logged.append({n: json_values.nan_if_null(v) for n, v in pairs})
            elif line.endswith(b"\n"):
                logger.warning("%s:%d is damaged; the line is ignored.", path, number)
        return logged

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
        if not self.is_written:
            return
        with self._clear_write_errors():
            self._unwritten.append(_metrics_line({"step": int(step), **values}))
            # Object stores cannot append: each write uploads the whole file again.
            period = _REMOTE_WRITE_SECONDS if files.is_remote(self.path) else 0.0
            if time.monotonic() - self._written_at >= period:
                self.write_metrics()
            with self._writer(tag).as_default():
                for name, value in values.items():
                    write_scalar(name, value, int(step))

    def write_metrics(self) -> None:
        """Writes logged lines that are not yet in metrics.jsonl; see `log`."""
        if not self._unwritten:
            return
        path = self._file(METRICS_FILE)
        with self._clear_write_errors(), files.open_file(path, "a") as file:
            file.write("".join(self._unwritten))
        self._unwritten = []
        self._written_at = time.monotonic()

    def suffix_of(self, file_name: str, data_set: run_file.DataSet | None) -> str:
        """Returns the suffix for the names of files with results on a data set.

        Args:
            file_name: the main file of the results, such as "predictions.jsonl". Files
                that belong to it get the same suffix; see `run_file.with_suffix`.
            data_set: the data set of the results. None: the run's own.

        Returns:
            "" for the data set that the training command names, or if it names none.
            Otherwise "-NAME", or "-NAME-CHECKSUM" if both have the same name.

        Raises:
            OSError: a file cannot be read.
            ValueError: run.json is damaged.
        """
        if data_set is None:
            return ""
        recorded = run_file.read_run(self.path).get("results", {}).get(file_name)
        if recorded is None:
            return ""
        suffix = "-" + re.sub(r"[^\w.+-]+", "_", data_set.name).strip("_")
        if recorded["name"] != data_set.name:
            return suffix
        if recorded["checksum"] in (None, data_set.checksum) or not data_set.checksum:
            return ""
        return f"{suffix}-{data_set.checksum[:_DIGITS]}"

    def write_eval_results(
        self, results: Mapping[str, float], data_set: run_file.DataSet | None = None
    ) -> None:
        """Writes eval_results.txt, as the release did.

        If `data_set` is not the run's own, both the file name and the file have its
        name.
        """
        lines = [f"{key} = {results[key]}\n" for key in sorted(results)]
        suffix = self.suffix_of(EVAL_RESULTS_FILE, data_set)
        if data_set is not None and suffix:
            lines = [f"data_set = {data_set.name}\n", *lines]
        name = run_file.with_suffix(EVAL_RESULTS_FILE, suffix)
        self._write_text(name, "".join(lines))

    def read_eval_results(self, suffix: str = "") -> dict[str, float]:
        """Returns the numbers in eval_results.txt; empty if there is no such file."""
        path = self._file(run_file.with_suffix(EVAL_RESULTS_FILE, suffix))
        if not files.exists(path):
            return {}
        results = {}
        for line in files.read_lines(path):
            name, _, value = line.partition(" = ")
            with contextlib.suppress(ValueError):  # Not a number, or not such a line.
                results[name] = float(value)
        return results

    def close(self) -> None:
        """Writes what remains of metrics.jsonl and the TensorBoard files."""
        self.write_metrics()
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

    def _file(self, name):
        return os.path.join(self.path, name)

    def _write_json(self, name, value):
        if self.is_written:
            companion_files.write_json(self._file(name), value)

    def _write_text(self, name, text):
        if self.is_written:
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


def write_scalar(name: str, value: float, step: int) -> None:
    """Does the same as tf.summary.scalar, which requires the package tensorboard."""
    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    )
    tf.summary.write(name, tf.constant(value, tf.float32), step, metadata)


def _shown(value):
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _metrics_line(values):
    """Returns a line of metrics.jsonl: strict JSON, with null in place of NaN."""
    return json.dumps(json_values.with_null(values), allow_nan=False) + "\n"
