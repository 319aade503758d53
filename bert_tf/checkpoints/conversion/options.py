"""Options of convert_checkpoint."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option

# As in `formats` and `head`, which this module does not import: they bring TensorFlow.
TARGET_FORMATS = ("bert", "hugging_face", "keras_hub", "keras", "saved_model")
HEADS = (
    "encoder",
    "pretraining",
    "masked_lm",
    "classification",
    "question_answering",
    "token_classification",
    "multiple_choice",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertCheckpointOptions(options_module.Options):
    """Converts a BERT checkpoint from any format to another one, and proves it.

    The result is read back: every weight that has a place must have the very same
    bits, and on a batch of probe texts the outputs must be the same. Otherwise nothing
    is left under the target's name.
    """

    source: str = option(
        help="What to convert: a checkpoint of the release (prefix or folder), the "
        "output_dir of a run, a Hugging Face folder, a KerasHub preset, a .keras or "
        ".weights.h5 file, a SavedModel, a TensorFlow 2 checkpoint of the Model "
        "Garden, or the name of a released model, such as bert-base-uncased."
    )
    target: str = option(
        help="What to write: a new folder; for --target_format=keras a file that ends "
        "in .keras or .weights.h5; for --target_format=bert also a prefix that ends in "
        ".ckpt."
    )
    target_format: str = option(choices=TARGET_FORMATS, help="Format of the target.")
    head: str | None = option(
        None,
        choices=HEADS,
        help="The head that the target gets, or encoder for none; other heads are left "
        "out. Also says what output_weights are where the source does not. Default: "
        "the source's.",
        group="model",
    )
    drop_head: bool = option(
        False, help="Leave out heads, or parts of them, that the target has not."
    )
    allow_activation_change: bool = option(
        False,
        help="Convert although the target computes another activation than the "
        "source's.",
    )
    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's size; default: the source's.",
        group="model",
    )
    vocab_file: str | None = option(
        None, help="Vocabulary of the model; default: the source's.", group="model"
    )
    do_lower_case: bool | None = option(
        None,
        help="Whether text is lower-cased; default: as the source says.",
        group="model",
    )
    overwrite: bool = option(
        False, help="Replace a target that is there.", group="advanced"
    )
    verbose: bool = option(
        False,
        help="Name every weight in the report, not one for all layers.",
        group="advanced",
    )
