"""Options of run_classifier."""

import dataclasses
import os

from bert_tf import options as options_module
from bert_tf.options import option
from bert_tf.tasks.classification import data_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunClassifierOptions(data_options.DataOptions):
    """Trains, evaluates and applies a classifier of sentences or pairs of sentences.

    The data are a task of GLUE or XNLI (--task_name, --data_dir), a TensorFlow dataset
    (--tfds_name) or tables of your own (--train_file, --eval_file, --predict_file and
    the names of their columns).
    """

    do_lower_case: bool = option(
        True, help="True for uncased checkpoints, False for cased ones."
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="The most word pieces of an example with [CLS] and [SEP]; longer texts "
        "are cut.",
    )
    doc_stride: int = option(
        0,
        minimum=0,
        help="Texts that are too long are read in windows that start so many pieces "
        "apart, and their logits averaged; 0: they are cut.",
    )
    predict_batch_size: int = option(
        8, minimum=1, help="Examples a step when predicting."
    )
    bilstm_on_top: bool = option(
        False,
        help="Put a newly initialized BiLSTM between encoder and head, as in Table 5 "
        "of the paper for left-to-right models.",
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
        self._check_start()
        self._check_teacher()
        if self.doc_stride > self.max_seq_length - 2:
            raise options_module.OptionError(
                f"--doc_stride={self.doc_stride} leaves pieces out between windows of "
                f"--max_seq_length={self.max_seq_length}; expected at most "
                f"{self.max_seq_length - 2}."
            )

    def _check_start(self):
        if (self.do_train or self.dry_run) and self.init_checkpoint is None:
            for name in ("bert_config_file", "vocab_file"):
                self._require(name, "Training without --init_checkpoint")

    def _check_teacher(self):
        if self.teacher is None:
            for name in ("distillation_temperature", "distillation_weight"):
                if getattr(self, name) != self._default(name):
                    raise options_module.OptionError(f"--{name} goes with --teacher.")
            return
        if os.path.realpath(self.teacher) == os.path.realpath(self.output_dir):
            raise options_module.OptionError(
                f"--teacher={self.teacher} is --output_dir too; a student needs a "
                "folder of its own."
            )
        self._refuse(
            ("label_separator", "regression", "doc_stride"),
            "does not go with --teacher, which knows one class of short texts",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateGlueOptions(options_module.Options):
    """Puts the scores of GLUE's tasks into one table, with the paper's average."""

    input_dir: str = option(
        help="Folder with a folder a run of run_classifier in it, or with files of "
        "answers as GLUE's server takes them: CoLA.tsv, MNLI-m.tsv, ..."
    )
    data_dir: str | None = option(
        None,
        help="Folder with GLUE's tasks (CoLA, MNLI, ...): files of answers are scored "
        "on their dev sets.",
    )
    output_file: str | None = option(None, help="JSON file to write the scores to.")
