"""Options of run_pretraining and fill_mask."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option
from bert_tf.pretraining import phases
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.training import options as training_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPretrainingOptions(
    pretraining_data_options.MaskShareOptions, training_options.TrainingOptions
):
    """Trains and evaluates BERT on masked words and next sentences.

    With --objective=left_to_right, the model predicts each next word piece instead.
    """

    input_file: str | None = option(
        None,
        help="TFRecord files written by create_pretraining_data, or text files with "
        "one sentence per line and a blank line between documents: names and globs, "
        "separated by commas.",
    )
    cache_dir: str | None = option(
        None,
        help="Local folder to copy remote examples (gs://) to before training. "
        "Later runs use the copies again. Copies are shuffled like local files. "
        "Default: read the examples where they are, in blocks.",
        group="advanced",
    )
    phase: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Train in several phases instead of one. Repeat the flag for each phase, "
        "with the flags that differ, for example --phase='input_file=a/* "
        "max_seq_length=512'. Each phase starts from the weights of the previous one "
        "and writes to phase_1, phase_2, ... in output_dir.",
        group="training",
    )
    phase_schedule: str = option(
        phases.SEPARATE,
        choices=(phases.SEPARATE, phases.SHARED),
        help="separate: each phase has its own warm-up and decay, new optimizer slots, "
        "and counts its steps from 1. shared: all phases together have one warm-up "
        "and one linear decay, and the slots and the step count carry over, as in the "
        "paper. The num_train_steps of a phase are its own steps in both cases.",
        group="training",
    )
    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's configuration. Default: that of "
        "init_checkpoint, or of the run in output_dir.",
        group="model",
    )
    model_size: str | None = option(
        None,
        help="Size of a new model, instead of bert_config_file: tiny, mini, small, "
        "medium, base or large; or layers and width, as in L-6_H-768; or also heads, "
        "as in L-6_H-768_A-3. The vocabulary size is that of the examples.",
        group="model",
    )
    config_overrides: tuple[str, ...] = option(
        (),
        help="Values to change in the model's configuration, for example "
        "hidden_dropout_prob=0,position_initializer=sinusoidal. With init_checkpoint, "
        "only dropout rates. Changing one size does not change the others.",
        group="model",
    )
    objective: str | None = option(
        None,
        choices=("masked_lm", "left_to_right"),
        help="masked_lm: predict masked pieces. left_to_right: predict each next "
        "piece; each position attends only to itself and earlier positions. Default: "
        "the objective of the model, or masked_lm for a new one.",
        group="model",
    )
    eval_input_file: str | None = option(
        None,
        help="TFRecord or text files to evaluate on. Default: input_file.",
        group="evaluation",
    )
    vocab_file: str | None = option(
        None,
        help="Vocabulary of the examples, which is saved with the run. Default: that "
        "of init_checkpoint, or the one recorded in the examples. Text needs one of "
        "the first two.",
    )
    do_lower_case: bool | None = option(
        None,
        help="For text: lowercase it. Default: the setting of init_checkpoint, or "
        "true.",
    )
    next_sentence: bool = option(
        True,
        help="For text: make sentence pairs with next_sentence_labels. False: make "
        "sequences of consecutive sentences without labels.",
    )
    short_seq_prob: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="For text: probability that a pass over a document makes shorter "
        "sequences.",
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
        help="Maximum number of masked pieces per example. If the examples are already "
        "masked, the value that they were created with.",
    )
    do_whole_word_mask: bool = option(
        False,
        help="For text, and examples created with --dynamic_masking: mask all pieces "
        "of a word together.",
    )
    masking: str = option(
        "random",
        choices=pretraining_data_options.MASKINGS,
        help="For text, and examples created with --dynamic_masking. random: choose "
        "pieces or words independently. span: choose up to ten consecutive words "
        "together, as SpanBERT does.",
    )
    masked_lm_prob: float = option(
        0.15,
        minimum=0.0,
        maximum=1.0,
        help="For text, and examples created with --dynamic_masking: share of the "
        "word pieces to mask.",
    )
    num_train_steps: int = option(
        100000,
        minimum=1,
        help="Total number of training steps. With continue_schedule they include the "
        "steps of init_checkpoint.",
        group="training",
    )
    num_warmup_steps: int = option(
        10000,
        minimum=0,
        help="Number of steps over which the learning rate rises to its maximum.",
        group="training",
    )
    schedule_steps: int | None = option(
        None,
        minimum=1,
        help="Step at which the learning rate reaches 0, if another run with "
        "continue_schedule follows this one. Default: num_train_steps.",
        group="training",
    )
    continue_schedule: bool = option(
        False,
        help="Take the optimizer's slots and the step from init_checkpoint as well, "
        "and continue its learning rate schedule. For phases with one schedule that "
        "are separate commands, as on several machines.",
        group="training",
    )
    max_train_minutes: float | None = option(
        None,
        minimum=0.001,
        help="Minutes to train, instead of num_train_steps. Evaluations and earlier "
        "parts of a resumed run count. Warm-up and decay follow the clock, so such a "
        "run cannot be reproduced exactly.",
        group="training",
    )
    warmup_proportion: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="Share of max_train_minutes over which the learning rate rises.",
        group="training",
    )
    max_eval_steps: int = option(
        100,
        minimum=0,
        help="Maximum number of batches to evaluate; 0 evaluates all examples.",
        group="evaluation",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_schedule()
        if self.phase:
            # Finds errors in a later phase before the first.
            phases.phase_options(self)
        elif self.input_file is None:
            raise options_module.OptionError(
                "--input_file is required: the TFRecord or text files to train on."
            )
        if self.device == "multi_worker":
            self._refuse(  # A process can create a multi-worker strategy only once.
                "phase",
                "cannot be combined with --device=multi_worker; run each phase "
                "separately, with the folder of the previous one as --init_checkpoint "
                "(and --continue_schedule for one schedule over all of them)",
            )
        if self.max_train_minutes is None:
            self._refuse("warmup_proportion", "needs --max_train_minutes")
        else:
            for name in ("num_train_steps", "num_warmup_steps"):
                self._refuse(
                    name,
                    "cannot be combined with --max_train_minutes; set the warm-up "
                    "with --warmup_proportion",
                )

    def _check_schedule(self):
        if not self.phase:
            self._refuse("phase_schedule", "needs --phase")
        if self.continue_schedule and self.init_checkpoint is None:
            raise options_module.OptionError(
                "--continue_schedule needs --init_checkpoint: the run whose schedule "
                "is continued."
            )
        if self.schedule_steps is not None and (
            self.schedule_steps < self.num_train_steps
        ):
            raise options_module.OptionError(
                f"--schedule_steps={self.schedule_steps} is less than "
                f"--num_train_steps={self.num_train_steps}, so the learning rate would "
                "be 0 in the last steps."
            )
        for name in ("schedule_steps", "continue_schedule"):
            if self.phase:
                self._refuse(
                    name, "cannot be combined with --phase; see --phase_schedule"
                )
            if self.max_train_minutes is not None:
                self._refuse(
                    name,
                    "cannot be combined with --max_train_minutes, which makes the "
                    "schedule follow the clock",
                )

    def _refuse(self, name, reason):
        if not self.is_default(name):
            raise options_module.OptionError(f"--{name} {reason}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskOptions(options_module.Options):
    """Predicts the words behind [MASK], or scores how likely a text is.

    With --pseudo_log_likelihood, each word piece of a text is masked in turn. The sum
    of the log-probabilities of the pieces separates likely texts from unlikely ones.
    """

    init_checkpoint: str = option(
        help="Pretrained checkpoint in any format, the output_dir of run_pretraining, "
        "or the name of a released model, such as bert-base-uncased.",
        group="model",
    )
    text: str | None = option(
        None,
        help="Text with one or more [MASK]. The value - reads one text per line from "
        "standard input.",
    )
    input_file: str | None = option(
        None, help="File with one text per line, instead of text."
    )
    output_file: str | None = option(
        None,
        help="JSON lines file to write, one line per text. Default: print a report.",
    )
    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's configuration. Default: that of the "
        "checkpoint.",
        group="model",
    )
    vocab_file: str | None = option(
        None,
        help="Vocabulary of the checkpoint. Default: the one stored with it.",
        group="model",
    )
    do_lower_case: bool | None = option(
        None,
        help="Lowercase the text. Default: the checkpoint's setting, or True if it is "
        "unknown.",
        group="model",
    )
    top_k: int = option(5, minimum=1, help="Candidates to show per mask.")
    iterative: bool = option(
        False,
        help="Fill the masks of a text one at a time, the most certain one first, so "
        "that later words fit the earlier ones.",
    )
    pseudo_log_likelihood: bool = option(
        False, help="Score texts without [MASK] instead of filling masks."
    )
    batch_size: int = option(
        32, minimum=1, help="Sequences per batch.", group="devices"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.text is None) == (self.input_file is None):
            raise options_module.OptionError("Pass either --text or --input_file.")
        if self.output_file is not None and self.input_file is not None:
            options_module.check_not_overwritten(
                {"output_file": [self.output_file]}, {"input_file": [self.input_file]}
            )
        if not self.pseudo_log_likelihood:
            return
        if self.iterative or self.top_k != type(self).top_k:
            name = "iterative" if self.iterative else "top_k"
            raise options_module.OptionError(
                f"--{name} cannot be combined with --pseudo_log_likelihood, which "
                "fills no masks."
            )
