"""Options of run_classifier."""

import dataclasses
import os
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

TASK_NAMES = (
    "cola",
    "mrpc",
    "sst-2",
    "sts-b",
    "qqp",
    "mnli",
    "qnli",
    "rte",
    "wnli",
    "xnli",
)
_FILES = ("train_file", "eval_file", "predict_file")
_COLUMNS = ("text_column", "text_b_column", "label_column")
_LABELS = ("labels", "label_separator", "regression")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunClassifierOptions(
    fine_tuning_options.TrialOptions, fine_tuning_options.TableOptions
):
    """Trains, evaluates and applies a classifier of texts or pairs of texts.

    The data is a GLUE task or XNLI (--task_name, --data_dir), a TensorFlow dataset
    (--tfds_name), or tables of your own (--train_file, --eval_file, --predict_file
    and the names of their columns).
    """

    TASK: ClassVar[str] = "classification"

    task_name: str | None = option(
        None,
        help="GLUE task or XNLI: CoLA, MRPC, SST-2, STS-B, QQP, MNLI, QNLI, RTE, WNLI, "
        "XNLI. Leave it out for your own data.",
    )
    data_dir: str | None = option(
        None,
        help="Folder with the task's files, such as train.tsv, dev.tsv and test.tsv. "
        "With tfds_name: the folder of TensorFlow Datasets.",
        on_resume=options_module.FREE,
    )
    tfds_name: str | None = option(
        None,
        help="TensorFlow dataset to use instead of files, such as glue/mrpc or "
        "imdb_reviews. Requires bert_tf[datasets].",
    )
    language: tuple[str, ...] = option(
        (),
        help="XNLI: one or more languages to train on, to evaluate on and to predict. "
        "Default: zh, as in the release.",
    )
    validation_split: float = option(
        0.0,
        minimum=0.0,
        maximum=0.5,
        help="Share of train_file to hold out for evaluation, instead of eval_file. "
        "Each class has about the same share on both sides, and examples with the same "
        "text, of pairs the first one, are on one side. 0: nothing is held out.",
    )
    text_column: str | None = option(
        None, help="Column of the text. Default: the column used in training, or text."
    )
    text_b_column: str | None = option(
        None,
        help="Column of the second text of each pair. Default: the column used in "
        "training, or none.",
    )
    labels: tuple[str, ...] = option(
        (),
        help="Class names of your own data, in the order of the model's outputs. "
        "Default: the classes in train_file, sorted.",
    )
    label_separator: str | None = option(
        None,
        help="Separator between class names in the label column. If given, a text can "
        "have any number of classes.",
    )
    regression: bool = option(
        False,
        help="Predict a number: the label column contains numbers, not classes.",
    )
    class_weights: tuple[str, ...] = option(
        (),
        help="Weights of classes in the loss, such as rain=2,sun=0.5 (default 1), or "
        "balanced: rare classes count as much in total as frequent ones.",
        group="training",
    )

    teacher: str | None = option(
        None,
        help="Run folder of a trained model with the same classes. The new model also "
        "learns to match that model's logits (distillation).",
        group="training",
        is_path=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_kind_of_labels()
        self._check_data()
        self._check_teacher()

    def _check_kind_of_labels(self) -> None:
        self._check_labels(self.labels)
        if self.label_separator == "":
            raise options_module.OptionError(
                "--label_separator is empty; expected the text between two class names."
            )
        if self.regression:
            self._refuse(
                ("labels", "label_separator", "class_weights"),
                "is for classes and cannot be combined with --regression",
            )

    def _check_data(self) -> None:
        own_data = (*_FILES, *_LABELS, "validation_split")
        if self.tfds_name is not None:
            self._refuse(own_data, "cannot be combined with --tfds_name")
        name = (self.task_name or "").lower()
        if name != "xnli":
            self._refuse(("language",), "requires --task_name=XNLI")
        flag_of: dict[str, str] = {}
        for flag in _COLUMNS:
            column = getattr(self, flag)
            if column in flag_of:
                raise options_module.OptionError(
                    f"--{flag}={column} is also --{flag_of[column]}; expected another "
                    "column."
                )
            if column:
                flag_of[column] = flag
        if self.task_name is None:
            if self.tfds_name is None:
                self._check_own_data()
            return
        self._check_task(name)
        self._refuse(
            (*own_data, *_COLUMNS),
            "is for your own data and cannot be combined with --task_name",
        )
        self._refuse(("tfds_name",), "cannot be combined with --task_name")
        self._require("data_dir", f"--task_name={self.task_name}")

    def _check_task(self, name: str) -> None:
        if name not in TASK_NAMES:
            raise options_module.OptionError(
                f"--task_name={self.task_name}: expected one of "
                f"{', '.join(TASK_NAMES)}, or no --task_name and --train_file, "
                "--eval_file, --predict_file for your own data."
            )
        if name == "sts-b":
            self._refuse(
                ("class_weights",),
                "is for classes, but the labels of STS-B are numbers",
            )

    def _check_own_data(self) -> None:
        if self.data_dir is not None:
            raise options_module.OptionError(
                "--data_dir requires --task_name; name your own files with "
                "--train_file, --eval_file and --predict_file."
            )
        self._check_files("task_name", has_dev=self.validation_split > 0)
        if self.validation_split:
            self._require("train_file", "--validation_split")
            self._refuse(("eval_file",), "cannot be combined with --validation_split")

    def _check_teacher(self) -> None:
        if self.teacher is None:
            return
        if os.path.realpath(self.teacher) == os.path.realpath(self.output_dir):
            raise options_module.OptionError(
                f"--teacher={self.teacher} is also --output_dir; choose another "
                "--output_dir for the student."
            )
        self._refuse(
            ("label_separator", "regression"),
            "cannot be combined with --teacher; distillation supports one class per "
            "text",
        )
