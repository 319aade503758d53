"""Options of run_pretraining and fill_mask."""

import dataclasses
import itertools
import math
import re

from bert_tf import options as options_module
from bert_tf.checkpoints import kinds
from bert_tf.options import option
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.training import options as training_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPretrainingOptions(
    pretraining_data_options.ExampleOptions, training_options.TrainingOptions
):
    """Trains and evaluates BERT on masked words and next sentences.

    With --objective=left_to_right, the model predicts each next word piece instead.
    Flags of sentence pairs, lengths and masking apply to text.
    """

    input_file: str = option(
        help="TFRecord files written by bert_tf create-data, or text files with "
        "one sentence per line and a blank line between documents: names and globs, "
        "separated by commas.",
        on_resume=options_module.FREE,
    )
    optimizer: str = option(
        "adamw",
        choices=("adamw", "lamb"),
        group="advanced",
        help="adamw: the release's optimizer. lamb: for very large batches.",
    )
    keep_checkpoint_max: int = option(
        5, minimum=1, group="saving", help="Number of recent checkpoints to keep."
    )
    jit_compile: bool | None = option(
        None,
        group="devices",
        help="Compile the forward and backward pass with XLA. On a TPU this is always "
        "done. Default: on GPUs.",
    )
    shuffle_buffer_size: int = option(
        0,
        choices=(0, 1),
        group="advanced",
        help="0: shuffle all examples in every epoch; of remote files (gs://), shuffle "
        "those of 16 random blocks of 3 MB together. 1: keep their order.",
    )
    phases: tuple[str, ...] = option(
        (),
        help="Steps and sequence length of each phase, such as 900000@128,100000@512, "
        "instead of num_train_steps, max_seq_length and max_predictions_per_seq. All "
        "phases have one learning rate schedule. Each reads the records of input_file "
        "that have its length, or makes examples of its length from text.",
        group="training",
    )
    model_size: str | None = option(
        None,
        help="Size of a new model, instead of bert_config_file: tiny, mini, small, "
        "medium, base or large; or layers and width, as in L-6_H-768; or also heads, "
        "as in L-6_H-768_A-3. The vocabulary size is that of the examples.",
        group="model",
        on_resume=options_module.FREE,
    )
    config_overrides: tuple[str, ...] = option(
        (),
        help="Values to change in the model's configuration, for example "
        "hidden_dropout_prob=0,position_initializer=sinusoidal. With init_checkpoint, "
        "only dropout rates. Changing one size does not change the others.",
        group="model",
        on_resume=options_module.FREE,
    )
    objective: str | None = option(
        None,
        choices=("masked_lm", "left_to_right"),
        help="masked_lm: predict masked pieces. left_to_right: predict each next "
        "piece; each position attends only to itself and earlier positions. Default: "
        "the objective of the model, or masked_lm for a new one.",
        group="model",
        on_resume=options_module.FREE,
    )
    eval_input_file: str | None = option(
        None,
        help="TFRecord or text files to evaluate on. Default: input_file.",
        group="evaluation",
    )
    do_lower_case: bool | None = option(
        None,
        help="For text: lowercase it. Default: the setting of init_checkpoint, or "
        "true.",
        on_resume=options_module.FREE,
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="Length of the examples; for records, the value that they were created "
        "with.",
    )
    max_predictions_per_seq: int = option(
        20,
        minimum=1,
        help="Maximum number of masked pieces per example; for records, the value that "
        "they were created with.",
    )
    num_train_steps: int = option(
        100000,
        minimum=1,
        help="Total number of training steps.",
        group="training",
        on_resume=options_module.LONGER,
    )
    num_warmup_steps: int = option(
        10000,
        minimum=0,
        help="Number of steps over which the learning rate rises to its maximum.",
        group="training",
    )
    max_train_minutes: float | None = option(
        None,
        minimum=0.001,
        help="Minutes to train, instead of num_train_steps. Evaluations and earlier "
        "parts of a resumed run count. Warm-up and decay follow the clock, so such a "
        "run cannot be reproduced exactly.",
        group="training",
        on_resume=options_module.LONGER,
    )
    warmup_proportion: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="Share of max_train_minutes over which the learning rate rises.",
        group="training",
    )
    early_stopping_evals: int = option(
        0,
        minimum=0,
        help="Stop training after this many evaluations in a row without a better "
        "best_metric. 0: never stop early.",
        group="evaluation",
        on_resume=options_module.LONGER,
    )
    best_metric: str = option(
        "eval_loss",
        help="Score that selects the checkpoint in best/. Lower is better if its name "
        "ends in loss or perplexity; otherwise higher is better.",
        group="evaluation",
        on_resume=options_module.REFUSED,
    )
    max_eval_steps: int = option(
        100,
        minimum=0,
        help="Maximum number of batches to evaluate; 0 evaluates all examples.",
        group="evaluation",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phases:
            self._set_lengths()
        if not self.eval_every_steps:
            for name in ("early_stopping_evals", "best_metric"):
                self.refuse(name, "has no effect without --eval_every_steps")
        if self.max_train_minutes is None:
            self.refuse("warmup_proportion", "needs --max_train_minutes")
        else:
            for name in ("num_train_steps", "num_warmup_steps"):
                self.refuse(
                    name,
                    "cannot be combined with --max_train_minutes; set the warm-up "
                    "with --warmup_proportion",
                )

    def _set_lengths(self) -> None:
        """Sets the options that phases determine: the last step, the longest length."""
        for name in ("max_train_minutes", "early_stopping_evals"):
            self.refuse(name, "cannot be combined with --phases, which set the steps")
        phases = self.each_phase()
        longest = max(phases, key=lambda phase: phase.max_seq_length)
        values = {
            "num_train_steps": phases[-1].num_train_steps,
            "max_seq_length": longest.max_seq_length,
            "max_predictions_per_seq": longest.max_predictions_per_seq,
        }
        for name, value in values.items():
            if getattr(self, name) != value:
                self.refuse(name, "cannot be combined with --phases, which set it")
            # The record is frozen, but its construction is not finished yet.
            object.__setattr__(self, name, value)

    def each_phase(self) -> "list[RunPretrainingOptions]":
        """Returns the options of each phase, or of the run if it has no phases.

        The `num_train_steps` of a phase is the step at which it ends.
        """
        if not self.phases:
            return [self]
        if not all(re.fullmatch(r"[1-9]\d*@[1-9]\d*", text) for text in self.phases):
            raise options_module.OptionError(
                f"--phases={','.join(self.phases)}: expected STEPS@LENGTH for each "
                "phase, such as 900000@128,100000@512."
            )
        pairs = (map(int, text.split("@")) for text in self.phases)
        steps, lengths = zip(*pairs, strict=True)
        return [
            dataclasses.replace(
                self,
                phases=(),
                num_train_steps=end,
                max_seq_length=length,
                max_predictions_per_seq=max(1, math.ceil(length * self.masked_lm_prob)),
            )
            for end, length in zip(itertools.accumulate(steps), lengths, strict=True)
        ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskOptions(kinds.CompletionOptions):
    """Predicts the words behind [MASK], or scores how likely a text is.

    With --pseudo_log_likelihood, each word piece of a text is masked in turn. The sum
    of the log-probabilities of the pieces separates likely texts from unlikely ones.
    """

    init_checkpoint: str = option(
        help="Pretrained checkpoint in any format, the output_dir of bert_tf pretrain, "
        "or the name of a released model, such as bert-base-uncased.",
        group="model",
    )
    text: tuple[str, ...] = option(
        repeated=True,
        help="Text with one or more [MASK]; repeat the flag for several texts.",
    )
    top_k: int = option(5, minimum=1, help="Candidates to show per mask.")
    pseudo_log_likelihood: bool = option(
        False, help="Score texts without [MASK] instead of filling masks."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pseudo_log_likelihood and not self.is_default("top_k"):
            raise options_module.OptionError(
                "--top_k cannot be combined with --pseudo_log_likelihood, which fills "
                "no masks."
            )
