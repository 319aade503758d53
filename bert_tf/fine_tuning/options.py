"""Options of every tool that fine-tunes for a task.

`TableOptions` adds tables of the user, and `TrialOptions` searches: several runs with
other seeds or settings, of which the best is kept.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Sequence
from typing import Any
from typing import Self

from bert_tf import options as options_module
from bert_tf.checkpoints import kinds
from bert_tf.options import OptionError
from bert_tf.options import option
from bert_tf.training import options as training_options

# The same as `modeling.pooling.KINDS`: showing a tool's flags must not import Keras.
POOLINGS = ("cls", "mean", "max")
# The dtypes and the backends of inference; see `backends`.
DTYPES = ("float32", "bfloat16", "mixed_bfloat16", "float16", "mixed_float16")
BACKENDS = TENSORFLOW, OPENVINO = ("tensorflow", "openvino")
TRIALS_FOLDER = "trials"
# These options say where a run is and what it does, so a sweep over them is refused.
_NEVER_SWEPT = (
    "output_dir",
    "do_train",
    "do_eval",
    "do_predict",
    "dry_run",
    "sweep",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskOptions(training_options.TrainingOptions):
    """Options of all fine-tuning tools.

    A tool adds the options of its data and head, and may change defaults.

    Fine-tuning starts from good weights and must not destroy them: it needs few epochs,
    small learning rates, and a short warm-up, during which the moment estimates of Adam
    settle while steps are still small. Appendix A.3 of the paper found 2 to 4 epochs,
    learning rates of 2e-5, 3e-5 and 5e-5, and batches of 16 and 32 to work well for all
    tasks. The defaults here are those of the release.
    """

    # The cost of attention grows with the square of the length (appendix A.2 of the
    # paper), and the position embeddings of the released models end at 512. Texts are
    # truncated to one fixed length, because a TPU needs static shapes.
    max_seq_length: int = option(
        options_module.implicit(128),
        minimum=3,
        help="Maximum number of word pieces per sequence, including [CLS] and [SEP]. "
        "Longer texts are truncated, or divided into windows by tasks with "
        "doc_stride.",
        group="model",
    )
    do_lower_case: bool = option(
        True,
        help="Lowercase the text: true for uncased checkpoints, false for cased ones.",
        group="model",
    )
    check: bool = option(
        False,
        help="Check all data that the flags name, and exit: counts, label balance, "
        "overlap between the sets, truncated texts, unknown words and casing. The exit "
        "code is 1 if there are errors.",
    )
    do_predict: bool = option(
        False,
        help="Predict the test file, or predict_file, with the last checkpoint.",
        on_resume=options_module.FREE,
    )
    num_train_epochs: float = option(
        3.0,
        minimum=0.0,
        help="Number of passes over the training examples.",
        group="training",
        on_resume=options_module.LONGER,
    )
    warmup_proportion: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="Fraction of the training steps over which the learning rate rises "
        "linearly from 0.",
        group="training",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        works = self.do_train or self.do_eval or self.do_predict or self.dry_run
        if not works and not self.check:
            raise OptionError(
                "Nothing to do; expected --do_train, --do_eval or --do_predict, or "
                "several of them."
            )
        if self.trains and self.init_checkpoint is None:
            self._set_start()

    def _set_start(self) -> None:
        """Starts from the model in the package, unless the user describes a new one."""
        names = ("bert_config_file", "vocab_file")
        if any(getattr(self, name) for name in names):
            for name in names:
                self._require(name, "Training without --init_checkpoint")
            return
        # The record is frozen, but its construction is not finished yet.
        start = options_module.implicit(kinds.SHIPPED)
        object.__setattr__(self, "init_checkpoint", start)

    @property
    def trains(self) -> bool:
        """Whether the run trains, or estimates training (--dry_run)."""
        return self.do_train or self.dry_run

    @property
    def length_buckets(self) -> tuple[int, ...]:
        """See `TrainerOptions.length_buckets`; a TPU requires batches of one shape."""
        return () if self.device == "tpu" else training_options.LENGTH_BUCKETS

    @property
    def evaluates(self) -> bool:
        """Whether the run evaluates, during or after training."""
        return self.do_eval or (self.do_train and self.eval_every_steps > 0)

    @property
    def sets_to_read(self) -> tuple[str, ...]:
        """The sets that the run needs, among "train", "dev" and "test"."""
        needed = {"train": self.trains, "dev": self.evaluates, "test": self.do_predict}
        return tuple(name for name, is_needed in needed.items() if is_needed)

    def reading_all(self) -> Self:
        """Returns options that read every set whose data the flags name.

        They are returned as they are if they already say what to do.
        """
        if self.do_train or self.do_eval or self.do_predict or self.dry_run:
            return self
        names = {
            "do_train": ("data_dir", "train_file", "tfds_name"),
            "do_eval": ("eval_file", "validation_split"),
            "do_predict": ("predict_file",),
        }
        works: dict[str, Any] = {
            work: any(getattr(self, name, None) for name in of_work)
            for work, of_work in names.items()
        }
        return dataclasses.replace(self, **works)

    def _check_labels(self, labels: Sequence[str]) -> None:
        if len(set(labels)) != len(labels) or len(labels) == 1:
            raise OptionError(
                f"--labels={','.join(labels)}: expected two or more different names."
            )

    def _require(self, name: str, reason: str) -> None:
        if not getattr(self, name):
            raise OptionError(f"{reason} needs --{name}.")

    def _refuse(self, names: Sequence[str], reason: str) -> None:
        given = [name for name in names if getattr(self, name)]
        if given:
            raise OptionError(f"--{given[0]} {reason}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictionOptions(TaskOptions):
    """Options of tools whose predictions have a batch size of their own."""

    predict_batch_size: int = option(
        8,
        minimum=1,
        help="Examples, or windows, per prediction step.",
        group="evaluation",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions(PredictionOptions):
    """Options of tools that also read tables of the user."""

    train_file: str | None = option(
        None,
        help="Your own table to train on: .tsv (without quoting), .csv or .jsonl. The "
        "first line of a .tsv or .csv file names the columns.",
        on_resume=options_module.FREE,
    )
    eval_file: str | None = option(
        None, help="Your own table to evaluate on.", on_resume=options_module.FREE
    )
    predict_file: str | None = option(
        None,
        help="Your own table to predict. It needs no labels.",
        on_resume=options_module.FREE,
    )
    label_column: str | None = option(
        None,
        help="Column of the label. Default: the column used in training, or label.",
    )

    def _check_files(self, flag: str, *, has_dev: bool = False) -> None:
        """Raises an OptionError if a needed file is missing.

        Args:
            flag: the flag that would name other data, for the message.
            has_dev: whether the examples to evaluate on come from elsewhere.
        """
        if self.trains:
            self._require("train_file", f"Training without --{flag}")
        if not has_dev and (self.do_eval or self.eval_every_steps):
            has_split = hasattr(self, "validation_split")
            others = f"--validation_split or --{flag}" if has_split else f"--{flag}"
            self._require("eval_file", f"Evaluating without {others}")
        if self.do_predict:
            self._require("predict_file", f"Predicting without --{flag}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """One of the runs of a search."""

    name: str  # Of its folder, such as "learning_rate=3e-05,random_seed=7".
    changed: dict[str, Any]  # Values by option name.
    options: "TrialOptions"  # Of this run alone, with its own output_dir.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialOptions(TaskOptions):
    """Options of fine-tuning tools that can train several times and keep the best."""

    sweep: str | None = option(
        None,
        help="Train once for each combination of values, such as "
        "'learning_rate=5e-5,3e-5;random_seed=1,2,3'. Lists the scores in sweep.tsv "
        "and keeps the run whose last checkpoint has the best score. On small data "
        "sets, results vary a lot between seeds.",
        group="advanced",
        on_resume=options_module.FREE,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sweep is None:
            return
        if self.device == "multi_worker":
            raise OptionError(
                "--sweep cannot be combined with --device=multi_worker; start each run "
                "separately."
            )
        if not self.dry_run and not (self.do_train and self.do_eval):
            raise OptionError(
                "--sweep needs --do_train and --do_eval, to keep the run with the best "
                "score."
            )
        self.trials()

    def single_run(self, **values: Any) -> Self:
        """Returns the options of a single run, with some values replaced."""
        return dataclasses.replace(self, sweep=None, **values)

    def trials(self) -> list[Trial]:
        """Returns the runs: each combination of the values of the sweep.

        Raises:
            OptionError: the sweep has the wrong form, or a value is invalid.
        """
        axes = self._axes()
        trials = []
        for values in itertools.product(*axes.values()):
            changed = dict(zip(axes, values, strict=True))
            text = ",".join(f"{name}={value}" for name, value in changed.items())
            name = re.sub(r"[^\w.,=+-]", "_", text)
            folder = os.path.join(self.output_dir, TRIALS_FOLDER, name)
            options = self.single_run(output_dir=folder, **changed)
            trials.append(Trial(name=name, changed=changed, options=options))
        return trials

    def _axes(self) -> dict[str, list[Any]]:
        """Returns the values of each option of the sweep."""
        declared = {d.name: d for d in options_module.declarations(type(self))}
        axes: dict[str, list[Any]] = {}
        for part in filter(str.strip, str(self.sweep).split(";")):
            name, separator, values = (text.strip() for text in part.partition("="))
            declaration = declared.get(name)
            if separator and declaration is None:
                raise OptionError(
                    f"--sweep: unknown flag {name!r}; expected one such as "
                    "learning_rate."
                )
            if not separator or declaration is None or name in axes:
                raise OptionError(
                    f"--sweep: expected NAME=VALUE,VALUE;NAME=VALUE with different "
                    f"flag names, got {part.strip()!r}."
                )
            if declaration.kind is tuple or name in _NEVER_SWEPT:
                raise OptionError(f"--sweep: {name} cannot be varied.")
            texts = [text.strip() for text in values.split(",")]
            try:
                axes[name] = [options_module.parse(declaration, text) for text in texts]
            except OptionError as error:
                raise OptionError(f"--sweep={self.sweep}: {error}") from None
            if len(set(axes[name])) != len(texts):
                raise OptionError(f"--sweep: {name} has the same value twice.")
        if not axes:
            raise OptionError("--sweep is empty; omit it for a single run.")
        return axes


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateGlueOptions(options_module.Options):
    """Collects the scores of the GLUE tasks in one table, with the paper's average."""

    input_dir: str = option(help="Folder of the run folders of bert_tf classify.")
