"""Options of extract_features."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option

POOLINGS = ("none", "cls", "mean", "max")
COMBINATIONS = ("concatenation", "sum")
FORMATS = ("jsonl", "npz", "h5", "tfrecord")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractionOptions(options_module.Options):
    """What is extracted, and with which model."""

    init_checkpoint: str = option(
        help="Checkpoint of any format (prefix, folder or file), or the name of a "
        "released model."
    )
    bert_config_file: str | None = option(
        None, help="JSON file with the model's size; default: as init_checkpoint says."
    )
    vocab_file: str | None = option(
        None, help="Vocabulary of the checkpoint; default: as init_checkpoint has it."
    )
    do_lower_case: bool | None = option(
        None,
        help="True for uncased checkpoints, False for cased ones; default: as "
        "init_checkpoint says, or else True.",
    )
    layers: tuple[int, ...] = option(
        (-1, -2, -3, -4),
        help="Layers wanted: 0 is the lowest, -1 the highest.",
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="The most word pieces of a sequence with [CLS] and [SEP]; longer texts "
        "are cut, or divided (see doc_stride).",
    )
    batch_size: int = option(
        32, minimum=1, help="Sequences computed at a time; memory grows with it."
    )
    doc_stride: int | None = option(
        None,
        minimum=1,
        help="Divide longer texts into windows that start so many pieces after each "
        "other; every piece has its vector from the window with the most context. "
        "Default: cut longer texts.",
    )
    pooling: str = option(
        "none",
        choices=POOLINGS,
        help="One vector a text: that of [CLS], or mean or maximum of its pieces'. "
        "none: a vector for every piece and layer.",
    )
    layer_combination: str | None = option(
        None,
        choices=COMBINATIONS,
        help="How several layers make the one vector of pooling: concatenation (the "
        "default there) or sum.",
    )
    normalize: bool = option(False, help="Scale the vectors of pooling to length 1.")
    attention_weights: bool = option(
        False, help="Extract the attention weights of the layers too."
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.layers or len(set(self.layers)) != len(self.layers):
            raise options_module.OptionError(
                f"--layers={','.join(map(str, self.layers))}: expected one or more "
                "different layers."
            )
        if self.pooling == "none":
            for name in ("layer_combination", "normalize"):
                if getattr(self, name):
                    raise options_module.OptionError(
                        f"--{name} goes with --pooling=cls, mean or max."
                    )
        if self.doc_stride is None:
            return
        if self.attention_weights:
            raise options_module.OptionError(
                "--attention_weights does not go with --doc_stride: pieces of "
                "different windows do not look at each other."
            )
        if self.doc_stride > self.max_seq_length - 2:
            raise options_module.OptionError(
                f"--doc_stride={self.doc_stride}: expected at most max_seq_length - 2 "
                f"({self.max_seq_length - 2}), or pieces would be left out."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractFeaturesOptions(ExtractionOptions):
    """Writes the vectors of the word pieces of every line, or one vector a line.

    A line is a text, or two with ` ||| ` between them.
    """

    input_file: str = option(help="Text file; a text, or `A ||| B`, a line.")
    output_file: str = option(help="File to write.")
    output_format: str = option(
        "jsonl",
        choices=FORMATS,
        help="jsonl: the release's, with 6 decimals; npz, h5: arrays of all lines end "
        "to end; tfrecord: an Example a line.",
    )
    # As released; Python callers leave it to the checkpoint.
    do_lower_case: bool = option(
        True, help="True for uncased checkpoints, False for cased ones."
    )

    def __post_init__(self):
        super().__post_init__()
        options_module.check_not_overwritten(
            {"output_file": [self.output_file]},
            {
                name: [getattr(self, name)]
                for name in ("input_file", "vocab_file", "bert_config_file")
                if getattr(self, name)
            },
        )
