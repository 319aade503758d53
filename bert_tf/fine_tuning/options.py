"""Options of every tool that fine-tunes for a task."""

import dataclasses
from collections.abc import Sequence
from typing import Any
from typing import Self

from bert_tf import options as options_module
from bert_tf.options import option
from bert_tf.training import options as training_options

# The same as `modeling.pooling.KINDS`: showing a tool's flags must not import Keras.
POOLINGS = ("cls", "mean", "max")
# The dtypes and the backends of inference; see `backends`.
DTYPES = ("float32", "bfloat16", "mixed_bfloat16", "float16", "mixed_float16")
# With OpenVINO, weights can also be stored in int8.
INFERENCE_DTYPES = (*DTYPES, "int8")
BACKENDS = TENSORFLOW, OPENVINO = ("tensorflow", "openvino")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskOptions(training_options.FineTuningOptions):
    """Options of all fine-tuning tools.

    A tool adds the options of its data and head, and may change defaults.

    Fine-tuning starts from good weights and must not destroy them: it needs few epochs,
    small learning rates, and a short warm-up, during which the moment estimates of Adam
    settle while steps are still small. Appendix A.3 of the paper found 2 to 4 epochs,
    learning rates of 2e-5, 3e-5 and 5e-5, and batches of 16 and 32 to work well for all
    tasks. The defaults here are those of the release.
    """

    bert_config_file: str | None = option(
        None,
        help="JSON file with the model configuration. Default: the configuration of "
        "init_checkpoint.",
        group="model",
        on_resume=options_module.FREE,
    )
    vocab_file: str | None = option(
        None,
        help="Vocabulary file. Default: the vocabulary of init_checkpoint.",
        group="model",
        on_resume=options_module.FREE,
    )
    check: bool = option(
        False,
        help="Check all data that the flags name, and exit: counts, label balance, "
        "duplicates, overlap between the sets, truncated texts, unknown words, "
        "casing, and the memory and time of the training. The exit code is 1 if there "
        "are errors.",
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
            raise options_module.OptionError(
                "Nothing to do; expected --do_train, --do_eval or --do_predict, or "
                "several of them."
            )

    @property
    def trains(self) -> bool:
        """Whether the run trains, or estimates training (--dry_run)."""
        return self.do_train or self.dry_run

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

    def only_training(self) -> Self:
        """Returns options that train and do nothing else."""
        return dataclasses.replace(self, do_train=True, do_eval=False, do_predict=False)

    def only_evaluation(self) -> Self:
        """Returns options that evaluate and do nothing else."""
        return dataclasses.replace(self, do_train=False, do_eval=True, do_predict=False)

    def _require(self, name: str, reason: str) -> None:
        if not getattr(self, name):
            raise options_module.OptionError(f"{reason} needs --{name}.")

    def _refuse(self, names: Sequence[str], reason: str) -> None:
        given = [name for name in names if getattr(self, name)]
        if given:
            raise options_module.OptionError(f"--{given[0]} {reason}.")
