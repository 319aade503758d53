"""Options of extract_features."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.checkpoints import kinds
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

POOLINGS = ("none", *fine_tuning_options.POOLINGS)
FORMATS = ("jsonl", "npz")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractFeaturesOptions(kinds.CompletionOptions):
    """Writes the vectors of all word pieces, or one vector per text.

    The input has one text per line, or two with ` ||| ` between them.
    """

    input_file: str = option(
        help="Text file with one text, or one pair `A ||| B`, per line."
    )
    output_file: str = option(help="File to write.")
    output_format: str = option(
        "jsonl",
        choices=FORMATS,
        help="jsonl: the release's JSON lines, with 6 decimals. npz: NumPy arrays in "
        "full precision, with all lines concatenated.",
    )
    init_checkpoint: str = option(
        help="Checkpoint of any format (prefix, folder or file), or the name of a "
        "released model, such as bert-base-uncased.",
        group="model",
    )
    do_lower_case: bool = option(
        True,
        help="Lowercase the text: true for uncased checkpoints, false for cased ones.",
    )
    layers: tuple[int, ...] = option(
        (-1, -2, -3, -4),
        help="Layers to extract, counted from 0 (lowest) or from -1 (highest).",
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="Maximum number of word pieces per sequence, including [CLS] and [SEP]. "
        "Longer texts are truncated.",
        group="model",
    )
    batch_size: int = option(
        32,
        minimum=1,
        help="Sequences of 128 word pieces per batch. A batch of shorter sequences "
        "contains more of them, and one of longer sequences fewer. Larger batches need "
        "more memory.",
        group="advanced",
    )
    pooling: str = option(
        "none",
        choices=POOLINGS,
        help="One vector per text: that of [CLS], or the mean or maximum over its word "
        "pieces, with the layers concatenated. none: one vector per word piece and "
        "layer.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.layers or len(set(self.layers)) != len(self.layers):
            raise options_module.OptionError(
                f"--layers={','.join(map(str, self.layers))}: expected one or more "
                "different layers."
            )
        options_module.check_not_overwritten(
            {"output_file": [self.output_file]},
            {
                name: [getattr(self, name)]
                for name in ("input_file", "vocab_file", "bert_config_file")
                if getattr(self, name)
            },
        )
