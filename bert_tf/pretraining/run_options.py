"""Options of run_pretraining and fill_mask."""

import dataclasses

from bert_tf import options
from bert_tf.options import option
from bert_tf.training import options as training_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPretrainingOptions(training_options.TrainingOptions):
    """Trains and evaluates the masked-word and next-sentence tasks."""

    input_file: str = option(
        help="TFRecord files of create_pretraining_data; patterns, commas between."
    )
    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's size; default: that of init_checkpoint, or of "
        "the run in output_dir.",
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
        20, minimum=1, help="Masked positions an example; as they were created."
    )
    num_train_steps: int = option(100000, minimum=1, help="Optimizer steps in all.")
    num_warmup_steps: int = option(
        10000, minimum=0, help="Steps over which the rate rises."
    )
    max_eval_steps: int = option(
        100, minimum=0, help="The most batches evaluated; 0: all examples."
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskOptions(options.Options):
    """Predicts the words behind [MASK]."""

    init_checkpoint: str = option(
        help="Pretrained checkpoint of any format, the output_dir of run_pretraining, "
        "or the name of a released model, such as bert-base-uncased."
    )
    text: str = option(help="Text with [MASK]; - reads a text a line from stdin.")
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
