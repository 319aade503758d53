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
    """Trains and evaluates the masked-word and next-sentence tasks.

    Or, with --objective=left_to_right, the prediction of every next piece.
    """

    input_file: str | None = option(
        None,
        help="TFRecord files of create_pretraining_data; patterns, commas between.",
    )
    phase: tuple[str, ...] = option(
        (),
        repeated=True,
        help="Instead of one run, several one after the other, each from the weights "
        "of the one before, in the folders phase_1, phase_2, ... of output_dir: what "
        "differs in this one, as in --phase='input_file=a/* max_seq_length=512'. Give "
        "the flag once for each.",
    )
    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's size; default: that of init_checkpoint, or of "
        "the run in output_dir.",
    )
    model_size: str | None = option(
        None,
        help="Instead of a file: tiny, mini, small, medium, base or large, or layers "
        "and width as in L-6_H-768, heads too as in L-6_H-768_A-3. The size of the "
        "vocabulary is that of the examples.",
    )
    config_overrides: tuple[str, ...] = option(
        (),
        help="Values of the model's configuration to change, as in "
        "hidden_dropout_prob=0,position_initializer=sinusoidal; of a checkpoint's, "
        "dropout rates only. A size that is changed leaves the others as they are.",
    )
    objective: str | None = option(
        None,
        choices=("masked_lm", "left_to_right"),
        help="masked_lm: what masks hide; left_to_right: every next piece, each "
        "position seeing only itself and those before it. Default: as the model does, "
        "masked_lm for a new one.",
    )
    eval_input_file: str | None = option(
        None, help="TFRecord files to evaluate on; default: input_file."
    )
    vocab_file: str | None = option(
        None,
        help="Vocabulary of the examples, kept with the run. Default: that of "
        "init_checkpoint, or the one that create_pretraining_data recorded.",
    )
    max_seq_length: int = option(
        128, minimum=3, help="Length of the examples; as they were created."
    )
    max_predictions_per_seq: int = option(
        20,
        minimum=1,
        help="The most masked positions of an example; as they were created, where "
        "they were masked then.",
    )
    do_whole_word_mask: bool = option(
        False,
        help="Of examples made with --dynamic_masking: mask all pieces of a word "
        "together.",
    )
    masking: str = option(
        "random",
        choices=pretraining_data_options.MASKINGS,
        help="Of examples made with --dynamic_masking. random: pieces, or words, each "
        "by itself; span: up to ten words that follow one another, as in SpanBERT.",
    )
    masked_lm_prob: float = option(
        0.15,
        minimum=0.0,
        maximum=1.0,
        help="Of examples made with --dynamic_masking: share of the pieces that is "
        "masked.",
    )
    num_train_steps: int = option(100000, minimum=1, help="Optimizer steps in all.")
    num_warmup_steps: int = option(
        10000, minimum=0, help="Steps over which the rate rises."
    )
    max_train_minutes: float | None = option(
        None,
        minimum=0.001,
        help="Instead of num_train_steps: minutes of training in all, evaluations and "
        "earlier parts of the run included. Warm-up and decay then go by the time, so "
        "the run cannot be repeated step for step.",
    )
    warmup_proportion: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="Share of max_train_minutes over which the rate rises.",
    )
    pad_vocabulary: bool = option(
        False,
        help="Pad the words' table to a multiple of 64 rows while training, for "
        "hardware that likes such sizes. Checkpoints and results have no padding.",
    )
    max_eval_steps: int = option(
        100, minimum=0, help="The most batches evaluated; 0: all examples."
    )

    def __post_init__(self):
        super().__post_init__()
        if self.phase:
            phases.options_of(self)  # Finds what is wrong in a later one right now.
        elif self.input_file is None:
            raise options_module.OptionError(
                "--input_file is required: the TFRecord files to train on."
            )
        if self.device == "multi_worker":
            self._refuse(  # The processes meet once in their lives.
                "phase",
                "does not go with --device=multi_worker; start each phase by itself, "
                "with the folder of the one before as --init_checkpoint",
            )
        if self.max_train_minutes is None:
            self._refuse("warmup_proportion", "goes with --max_train_minutes")
        else:
            for name in ("num_train_steps", "num_warmup_steps"):
                self._refuse(
                    name,
                    "does not go with --max_train_minutes; the warm-up is "
                    "--warmup_proportion of the time",
                )

    def _refuse(self, name, reason):
        if getattr(self, name) != self._default(name):
            raise options_module.OptionError(f"--{name} {reason}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskOptions(options_module.Options):
    """Predicts the words behind [MASK], or says how likely a text is.

    With --pseudo_log_likelihood every word piece of a text is masked in turn; the sum
    of the pieces' log-probabilities tells likely texts from unlikely ones.
    """

    init_checkpoint: str = option(
        help="Pretrained checkpoint of any format, the output_dir of run_pretraining, "
        "or the name of a released model, such as bert-base-uncased."
    )
    text: str | None = option(
        None,
        help="Text with one [MASK] or several; - reads a text a line from standard "
        "input.",
    )
    input_file: str | None = option(
        None, help="Instead of text: a file with a text a line."
    )
    output_file: str | None = option(
        None, help="JSON lines to write, a text a line; default: print a report."
    )
    bert_config_file: str | None = option(
        None, help="JSON file with the model's size; default: the checkpoint's."
    )
    vocab_file: str | None = option(
        None, help="Vocabulary of the checkpoint; default: its own."
    )
    do_lower_case: bool | None = option(
        None,
        help="Whether text is lower-cased; default: as the checkpoint says, or else "
        "True.",
    )
    top_k: int = option(5, minimum=1, help="Words a mask.")
    iterative: bool = option(
        False,
        help="Fill the masks of a text one after the other, the surest first, each "
        "knowing those before it.",
    )
    pseudo_log_likelihood: bool = option(
        False, help="Score whole texts without [MASK] instead of filling masks."
    )
    batch_size: int = option(32, minimum=1, help="Sequences computed at a time.")

    def __post_init__(self):
        super().__post_init__()
        if (self.text is None) == (self.input_file is None):
            raise options_module.OptionError("Expected either --text or --input_file.")
        if self.output_file is not None and self.input_file is not None:
            options_module.check_not_overwritten(
                {"output_file": [self.output_file]}, {"input_file": [self.input_file]}
            )
        if not self.pseudo_log_likelihood:
            return
        if self.iterative or self.top_k != type(self).top_k:
            name = "iterative" if self.iterative else "top_k"
            raise options_module.OptionError(
                f"--{name} does not go with --pseudo_log_likelihood, which fills no "
                "masks."
            )
