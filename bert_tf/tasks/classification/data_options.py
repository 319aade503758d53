"""Options for a classifier's data: a task, a TensorFlow dataset, or your own tables."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.fine_tuning import trial_options
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
    "ax",
    "xnli",
)
# Data sets of TensorFlow Datasets: the training set, and the others.
TFDS_XNLI = ("xtreme_xnli", "xnli")
WITHOUT_TRAINING = ("ax",)
SPLITS = ("train", "validation", "test")
_FILES = ("train_file", "eval_file", "predict_file")
_COLUMNS = ("text_column", "text_b_column", "label_column")
_LABELS = ("labels", "label_separator", "regression")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataOptions(trial_options.TrialOptions):
    """Options for the data and labels of a classifier."""

    task_name: str | None = option(
        None,
        help="GLUE task or XNLI: CoLA, MRPC, SST-2, STS-B, QQP, MNLI, QNLI, RTE, WNLI, "
        "AX, XNLI. Leave it out for your own data.",
    )
    data_dir: str | None = option(
        None,
        help="Folder with the task's files, such as train.tsv, dev.tsv and test.tsv. "
        "With tfds_name: the folder of TensorFlow Datasets.",
        on_resume=options_module.FREE,
    )
    train_language: tuple[str, ...] = option(
        (),
        help="XNLI: one or more languages to train on. Default: zh, as in the release.",
    )
    eval_language: tuple[str, ...] = option(
        (),
        help="XNLI: one or more languages to evaluate on and to predict, or all. "
        "Default: train_language.",
        on_resume=options_module.FREE,
    )
    tfds_name: str | None = option(
        None,
        help="TensorFlow dataset to use instead of files, such as glue/mrpc, xnli or "
        "imdb_reviews. Requires bert_tf[datasets].",
    )
    tfds_splits: tuple[str, ...] = option(
        SPLITS, help="Splits of tfds_name: to train on, to evaluate on and to predict."
    )
    train_file: str | None = option(
        None,
        help="Your own table to train on: .tsv (without quoting), .csv or .jsonl. The "
        "first line of a .tsv or .csv file names the columns.",
        on_resume=options_module.FREE,
    )
    eval_file: str | None = option(
        None,
        help="Your own table to evaluate on.",
        on_resume=options_module.FREE,
    )
    predict_file: str | None = option(
        None,
        help="Your own table to predict. It needs no labels.",
        on_resume=options_module.FREE,
    )
    validation_split: float = option(
        0.0,
        minimum=0.0,
        maximum=0.5,
        help="Share of train_file to hold out for evaluation, instead of eval_file. "
        "Each class has about the same share on both sides, and no text is on both. "
        "0: nothing is held out.",
    )
    text_column: str | None = option(
        None, help="Column of the text. Default: the column used in training, or text."
    )
    text_b_column: str | None = option(
        None,
        help="Column of the second text of each pair. Default: the column used in "
        "training, or none.",
    )
    label_column: str | None = option(
        None,
        help="Column of the label. Default: the column used in training, or label.",
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
    threshold: float | None = option(
        None,
        minimum=0.0,
        maximum=1.0,
        help="Minimum probability of a predicted class, if a text can have several. "
        "Default: the value used in training, or 0.5.",
        group="evaluation",
    )
    regression: bool = option(
        False, help="Predict a number: the label column contains numbers."
    )
    class_weights: tuple[str, ...] = option(
        (),
        help="Weights of classes in the loss, such as rain=2,sun=0.5 (default 1), or "
        "balanced: rare classes count as much in total as frequent ones.",
        group="training",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_labels()
        if self.task_name is not None:
            self._check_task(self.task_name.lower())
        elif self.tfds_name is not None:
            self._check_tfds(self.tfds_name)
        else:
            self._check_own_data()

    def _check_labels(self) -> None:
        if len(set(self.labels)) != len(self.labels) or len(self.labels) == 1:
            raise options_module.OptionError(
                f"--labels={','.join(self.labels)}: expected two or more different "
                "names."
            )
        if self.label_separator == "":
            raise options_module.OptionError(
                "--label_separator is empty; expected the text between two class names."
            )
        if self.regression:
            self._refuse(
                (
                    *("labels", "label_separator"),
                    *("threshold", "class_weights"),
                ),
                "is for classes and cannot be combined with --regression",
            )

    def _check_task(self, name: str) -> None:
        if name not in TASK_NAMES:
            raise options_module.OptionError(
                f"--task_name={self.task_name}: expected one of "
                f"{', '.join(TASK_NAMES)}, or no --task_name and --train_file, "
                "--eval_file, --predict_file for your own data."
            )
        self._refuse(
            (*_FILES, *_COLUMNS, *_LABELS, "validation_split"),
            "is for your own data and cannot be combined with --task_name",
        )
        self._refuse(("tfds_name",), "cannot be combined with --task_name")
        self._check_tfds_splits()
        self._require("data_dir", f"--task_name={self.task_name}")
        if name != "xnli":
            self._refuse_languages()
        if name == "sts-b":
            self._refuse(
                ("class_weights",),
                "is for classes, but the labels of STS-B are numbers",
            )
        if name in WITHOUT_TRAINING and (self.do_train or self.dry_run):
            raise options_module.OptionError(
                "--task_name=AX has no training data; train with --task_name=MNLI, "
                "then use --task_name=AX with the --output_dir of that run."
            )

    def _check_tfds(self, name: str) -> None:
        self._refuse(
            (*_FILES, *_LABELS, "validation_split"),
            "is for your own tables and cannot be combined with --tfds_name",
        )
        if is_xnli(name):
            self._refuse(_COLUMNS, "cannot be combined with XNLI")
        else:
            self._refuse_languages()
        if len(self.tfds_splits) != 3:
            raise options_module.OptionError(
                f"--tfds_splits={','.join(self.tfds_splits)}: expected three splits, "
                "for training, evaluation and prediction."
            )

    def _check_own_data(self) -> None:
        if self.data_dir is not None:
            raise options_module.OptionError(
                "--data_dir requires --task_name; name your own files with "
                "--train_file, --eval_file and --predict_file."
            )
        self._refuse_languages()
        self._check_tfds_splits()
        if self.do_train or self.dry_run:
            self._require("train_file", "Training without --task_name")
        if self.validation_split:
            self._require("train_file", "--validation_split")
            self._refuse(("eval_file",), "cannot be combined with --validation_split")
        elif self.do_eval or self.eval_every_steps:
            self._require("eval_file", "Evaluating without --task_name")
        if self.do_predict:
            self._require("predict_file", "Predicting without --task_name")

    def _refuse_languages(self) -> None:
        self._refuse(
            ("train_language", "eval_language"),
            "requires --task_name=XNLI or --tfds_name=xnli",
        )

    def _check_tfds_splits(self) -> None:
        if self.tfds_splits != SPLITS:
            raise options_module.OptionError("--tfds_splits requires --tfds_name.")


def is_xnli(tfds_name: str) -> bool:
    """Returns whether a TensorFlow dataset is XNLI."""
    return tfds_name in TFDS_XNLI
