"""Options of convert_checkpoint."""

import dataclasses

from bert_tf.checkpoints import kinds
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertCheckpointOptions(kinds.CompletionOptions):
    """Converts a BERT checkpoint to another format and verifies the result.

    The result is read back: every weight must have the same bits, and on a batch of
    random word pieces the outputs must be the same. If they are not, nothing is left
    at the target.
    """

    source: str = option(
        help="Checkpoint to convert: a release checkpoint (prefix or folder), the "
        "output_dir of a run, a Hugging Face folder, a KerasHub preset, a .keras or "
        ".weights.h5 file, a SavedModel, a TensorFlow 2 checkpoint of the Model "
        "Garden, the name of a released model, such as bert-base-uncased, or "
        "hf://organization/model."
    )
    target: str = option(
        help="Where to write the result: a new folder; with --target_format=keras a "
        "file that ends in .keras; with --target_format=bert also a prefix in a new "
        "folder, which ends in .ckpt."
    )
    target_format: str = option(
        choices=kinds.WRITTEN_FORMATS, help="Format of the target."
    )
    head: str | None = option(
        None,
        choices=kinds.HEADS,
        help="Head to keep, or encoder for none; other heads are left out. Also "
        "determines what output_weights are if the source does not. Default: the "
        "source's head.",
        group="model",
    )
    drop_text_encoding: bool = option(
        False,
        help="Drop the text-encoding settings that the target cannot store: pooling, "
        "normalization, prompts, maximum length, or the activation of a score.",
    )
    allow_activation_change: bool = option(
        False,
        help="Convert even if the target uses a different activation from the "
        "source's.",
    )
    add_words: str | None = option(
        None,
        help="File with words to add to the vocabulary, one per line. Their rows in "
        "the embedding table begin as the mean of the pieces that each word had.",
        group="model",
    )
    do_lower_case: bool | None = option(
        None, help="Whether text is lowercased. Default: the source's setting."
    )
