"""Options of run_classifier and evaluate_glue."""

import dataclasses
import os

from bert_tf import options as options_module
from bert_tf.options import option
from bert_tf.tasks.classification import data_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunClassifierOptions(data_options.DataOptions):
    """Trains, evaluates and applies a classifier of texts or pairs of texts.

    The data is a GLUE task or XNLI (--task_name, --data_dir), a TensorFlow dataset
    (--tfds_name), or tables of your own (--train_file, --eval_file, --predict_file
    and the names of their columns).
    """

    do_lower_case: bool = option(
        True,
        help="Lowercase the text: true for uncased checkpoints, false for cased ones.",
        group="model",
    )
    # The cost of attention grows with the square of the length (appendix A.2 of the
    # paper), and the position embeddings of the released models end at 512. Texts are
    # truncated to one fixed length, because a TPU needs static shapes.
    max_seq_length: int = option(
        options_module.implicit(128),
        minimum=3,
        help="Maximum number of word pieces per example, including [CLS] and [SEP]. "
        "Longer texts are truncated, or divided into windows (see doc_stride).",
        group="model",
    )
    doc_stride: int = option(
        options_module.implicit(0),
        minimum=0,
        help="Read long texts in windows that start this many word pieces apart, and "
        "average their logits. 0: truncate long texts.",
        group="model",
    )
    predict_batch_size: int = option(
        8, minimum=1, help="Examples per prediction step.", group="evaluation"
    )
    bilstm_on_top: bool = option(
        False,
        help="Add a randomly initialized BiLSTM between the encoder and the head, as "
        "for the left-to-right models in Table 5 of the paper.",
        group="model",
    )
    teacher: str | None = option(
        None,
        help="Run folder of a trained model with the same classes. The new model also "
        "learns to match that model's logits (distillation).",
        group="training",
        is_path=True,
    )
    distillation_temperature: float = option(
        2.0,
        minimum=0.1,
        help="Temperature that divides the logits of teacher and student. Higher "
        "values reveal more of how the teacher rates the other classes.",
        group="training",
    )
    distillation_weight: float = option(
        0.5,
        minimum=0.0,
        maximum=1.0,
        help="Weight of the teacher in the loss. The labels get the rest.",
        group="training",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_start()
        self._check_teacher()
        if self.doc_stride > self.max_seq_length - 2:
            raise options_module.OptionError(
                f"--doc_stride={self.doc_stride} skips word pieces between windows of "
                f"--max_seq_length={self.max_seq_length}; expected at most "
                f"{self.max_seq_length - 2}."
            )

    def _check_start(self) -> None:
        if (self.do_train or self.dry_run) and self.init_checkpoint is None:
            for name in ("bert_config_file", "vocab_file"):
                self._require(name, "Training without --init_checkpoint")

    def _check_teacher(self) -> None:
        if self.teacher is None:
            for name in ("distillation_temperature", "distillation_weight"):
                if not self.is_default(name):
                    raise options_module.OptionError(f"--{name} requires --teacher.")
            return
        if os.path.realpath(self.teacher) == os.path.realpath(self.output_dir):
            raise options_module.OptionError(
                f"--teacher={self.teacher} is also --output_dir; choose another "
                "--output_dir for the student."
            )
        self._refuse(
            ("label_separator", "regression", "doc_stride"),
            "cannot be combined with --teacher; distillation supports one class per "
            "text, without windows",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateGlueOptions(options_module.Options):
    """Collects the scores of the GLUE tasks in one table, with the paper's average."""

    input_dir: str = option(
        help="Folder that contains the run folders of run_classifier, or answer files "
        "in the format of the GLUE server: CoLA.tsv, MNLI-m.tsv and so on."
    )
    data_dir: str | None = option(
        None,
        help="Folder with the GLUE tasks (CoLA, MNLI and so on). Answer files are "
        "scored on their dev sets.",
        on_resume=options_module.FREE,
    )
    output_file: str | None = option(None, help="JSON file to write the scores to.")
