"""Options of run_classifier."""

import dataclasses
import os

from bert_tf import options
from bert_tf.options import option
from bert_tf.training import options as training_options

TASK_NAMES = ("cola", "mrpc", "sst-2")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunClassifierOptions(training_options.FineTuningOptions):
    """Trains, evaluates and applies a classifier of sentences or pairs of sentences.

    The data are a GLUE task (--task_name, --data_dir) or tables of your own
    (--train_file, --eval_file, --predict_file and the names of their columns).
    """

    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's size; default: that of init_checkpoint.",
    )
    vocab_file: str | None = option(
        None,
        help="Vocabulary of the checkpoint; default: its own.",
    )
    task_name: str | None = option(
        None, help=f"GLUE task: {', '.join(TASK_NAMES)}; leave out for your own data."
    )
    data_dir: str | None = option(
        None, help="Folder with the task's train.tsv, dev.tsv and test.tsv."
    )
    train_file: str | None = option(
        None,
        help="Your own table to train on: .tsv (no quoting), .csv or .jsonl; the first "
        "line of a .tsv or .csv names the columns.",
    )
    eval_file: str | None = option(None, help="Your own table to evaluate on.")
    predict_file: str | None = option(
        None, help="Your own table to predict; it needs no labels."
    )
    text_column: str | None = option(
        None, help="Column of the text; default: as in training, or else text."
    )
    text_b_column: str | None = option(
        None,
        help="Column of the second text of a pair; default: as in training, or else "
        "none.",
    )
    label_column: str | None = option(
        None, help="Column of the class; default: as in training, or else label."
    )
    labels: tuple[str, ...] = option(
        (),
        help="Classes of your own data, in the order of the output columns; default: "
        "those of train_file, sorted.",
    )
    do_lower_case: bool = option(
        True, help="True for uncased checkpoints, False for cased ones."
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="The most word pieces of an example with [CLS] and [SEP]; longer texts "
        "are cut.",
    )
    do_predict: bool = option(
        False, help="Predict test.tsv, or predict_file, with the last checkpoint."
    )
    predict_batch_size: int = option(8, minimum=1, help="Examples a step there.")
    num_train_epochs: float = option(
        3.0, minimum=0.0, help="How often training goes over the examples."
    )
    warmup_proportion: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="Share of steps in which the rate rises.",
    )

    teacher: str | None = option(
        None,
        help="Folder of a trained run with the same classes, whose logits the model "
        "learns from too (distillation).",
    )
    distillation_temperature: float = option(
        2.0,
        minimum=0.1,
        help="What the logits of teacher and student are divided by; higher ones show "
        "more of how the teacher sees the other classes.",
    )
    distillation_weight: float = option(
        0.5,
        minimum=0.0,
        maximum=1.0,
        help="The teacher's share of the loss; the labels have the rest.",
    )

    def __post_init__(self):
        super().__post_init__()
        self._check_what_to_do()
        self._check_teacher()
        if self.task_name is None:
            self._check_own_data()
        else:
            self._check_task()

    def _check_what_to_do(self):
        if not (self.do_train or self.do_eval or self.do_predict or self.dry_run):
            raise options.OptionError(
                "Nothing to do; expected --do_train, --do_eval or --do_predict, or "
                "several."
            )
        if (self.do_train or self.dry_run) and self.init_checkpoint is None:
            for name in ("bert_config_file", "vocab_file"):
                self._require(name, "Training without --init_checkpoint")
        if len(set(self.labels)) != len(self.labels) or len(self.labels) == 1:
            raise options.OptionError(
                f"--labels={','.join(self.labels)}: expected two or more different "
                "names."
            )

    def _check_teacher(self):
        if self.teacher is None:
            for name in ("distillation_temperature", "distillation_weight"):
                if getattr(self, name) != self._default(name):
                    raise options.OptionError(f"--{name} goes with --teacher.")
        elif os.path.realpath(self.teacher) == os.path.realpath(self.output_dir):
            raise options.OptionError(
                f"--teacher={self.teacher} is --output_dir too; a student needs a "
                "folder of its own."
            )

    def _check_task(self):
        if self.task_name.lower() not in TASK_NAMES:
            raise options.OptionError(
                f"--task_name={self.task_name}: expected one of "
                f"{', '.join(TASK_NAMES)}, or no --task_name and --train_file, "
                "--eval_file, --predict_file for your own data."
            )
        own = ("train_file", "eval_file", "predict_file", "labels")
        own += ("text_column", "text_b_column", "label_column")
        given = [name for name in own if getattr(self, name)]
        if given:
            raise options.OptionError(
                f"--{given[0]} is for your own data and does not go with --task_name."
            )
        self._require("data_dir", f"--task_name={self.task_name}")

    def _check_own_data(self):
        if self.data_dir is not None:
            raise options.OptionError(
                "--data_dir goes with --task_name; name your own files with "
                "--train_file, --eval_file and --predict_file."
            )
        if self.do_train or self.dry_run:
            self._require("train_file", "Training without --task_name")
        if self.do_eval or self.eval_every_steps:
            self._require("eval_file", "Evaluating without --task_name")
        if self.do_predict:
            self._require("predict_file", "Predicting without --task_name")

    def _require(self, name, reason):
        if not getattr(self, name):
            raise options.OptionError(f"{reason} needs --{name}.")
