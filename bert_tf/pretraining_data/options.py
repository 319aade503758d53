"""Options of create_pretraining_data."""

import dataclasses
from typing import Any
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.data import parallel
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskShares:
    """Shares of the chosen pieces; they add up to 1.

    Why not [MASK] always: the model never sees [MASK] in fine-tuning, so a model that
    learned to encode only masked positions well would fit its later tasks badly. A
    tenth therefore keeps its piece, which pulls the encoding of a visible word towards
    that word, and a tenth gets a random piece. The model cannot tell which positions
    were chosen or changed, so it has to encode every position in its context. Random
    pieces are 1.5 % of all pieces, too few to harm what it learns of the language.

    Source: section 3.1 and appendix A.1 of arXiv:1810.04805. Its Table 8 compares other
    shares: fine-tuning hardly notices them, but feature-based use suffers from [MASK]
    alone, and random pieces alone do worse in every column.
    """

    mask: float = 0.8  # Replaced by [MASK].
    same: float = 0.1  # Kept.
    random: float = 0.1  # Replaced by a random piece of the vocabulary.

    @property
    def same_of_rest(self) -> float:
        """Share that is kept among the pieces that are not replaced by [MASK]."""
        rest = self.same + self.random
        return self.same / rest if rest else 0.0


def num_wanted(length: int, masked_lm_prob: float) -> int:
    """Returns how many positions of a sequence to choose: at least one.

    `max_predictions` limits the number because records and batches need a fixed shape,
    and the model computes its costly scores of the whole vocabulary at these positions
    alone. It should be about max_seq_length * masked_lm_prob, so that full sequences
    lose no masks (README of the release). The length includes [CLS] and [SEP].
    """
    return max(1, round(length * masked_lm_prob))


_SHARES = MaskShares()
_ROUNDING = 1e-6  # Of their sum.
# Options that the other samplers do not support.
_UNSUPPORTED = {
    "release": ("masking", "packed_rows", "whole_word_segmenter"),
    "tf_data": ("packed_rows", "whole_word_segmenter"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleOptions(options_module.Options):
    """How text becomes masked examples, for both tools that make them."""

    flag_group: ClassVar[str] = "advanced"

    do_whole_word_mask: bool = option(
        False,
        help="Mask all pieces of a word together.",
        group=options_module.TASK_AND_DATA,
    )
    masking: str = option(
        "random",
        choices=("random", "span"),
        help="random: choose pieces or words independently. span: choose up to ten "
        "consecutive words together, as SpanBERT does.",
    )
    masked_lm_prob: float = option(
        0.15,
        minimum=0.0,
        maximum=1.0,
        help="Share of the word pieces to mask.",
        group=options_module.TASK_AND_DATA,
    )
    max_unknown_share: float = option(
        0.3,
        minimum=0.0,
        maximum=1.0,
        help="If a larger share of the pieces is [UNK], the run ends with an error. "
        "Compared after each shard, or on the first lines of text to pretrain on.",
        on_resume=options_module.FREE,
    )
    short_seq_prob: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="Probability that a pass over a document makes shorter sequences.",
        group=options_module.TASK_AND_DATA,
    )
    next_sentence: bool = option(
        True,
        help="Make sentence pairs with next_sentence_labels. False: make sequences of "
        "consecutive sentences without labels.",
        group=options_module.TASK_AND_DATA,
    )
    mask_share: float = option(
        _SHARES.mask,
        minimum=0.0,
        maximum=1.0,
        help="Share of the chosen pieces that is replaced by [MASK]. mask_share, "
        "same_share and random_share must add up to 1.",
    )
    same_share: float = option(
        _SHARES.same,
        minimum=0.0,
        maximum=1.0,
        help="Share of the chosen pieces that stays unchanged.",
    )
    random_share: float = option(
        _SHARES.random,
        minimum=0.0,
        maximum=1.0,
        help="Share of the chosen pieces that is replaced by a random piece.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.mask_share + self.same_share + self.random_share
        if abs(total - 1) > _ROUNDING:
            raise options_module.OptionError(
                f"--mask_share={self.mask_share:g}, --same_share={self.same_share:g} "
                f"and --random_share={self.random_share:g} add up to {total:g}, "
                "expected 1; set all three."
            )

    def refuse(self, name: str, reason: str) -> None:
        """Raises an OptionError with a reason unless an option has its default."""
        if not self.is_default(name):
            raise options_module.OptionError(f"--{name} {reason}.")

    @property
    def shares(self) -> MaskShares:
        """The three shares."""
        return MaskShares(
            mask=self.mask_share, same=self.same_share, random=self.random_share
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreatePretrainingDataOptions(ExampleOptions, parallel.RunnerOptions):
    """Creates TFRecord files of masked sentence pairs from text.

    The text has one sentence per line and a blank line between documents.
    """

    after_interrupt: ClassVar[str] = (
        "Any finished parts are kept; run the same command again to continue."
    )

    input_file: tuple[str, ...] = option(
        help="Text files: names and globs, separated by commas."
    )
    output_file: tuple[str, ...] = option(
        help="TFRecord files to write, separated by commas."
    )
    vocab_file: str = option(help="Vocabulary file with one word piece per line.")
    check: bool = option(
        False,
        help="Check the text instead of creating examples: documents, truncated "
        "sentences, unknown words and casing. The exit code is 1 if there are errors.",
    )
    do_lower_case: bool = option(
        True, help="Lowercase the text. Use True for an uncased vocabulary."
    )
    whole_word_segmenter: str | None = option(
        None,
        choices=("jieba",),
        help="Segmenter that groups Chinese characters into words. Default: none; each "
        "character is a word.",
        group="advanced",
    )
    max_seq_length: int = option(
        128,
        minimum=5,
        maximum=65536,
        help="Length of each example in word pieces, padding included.",
    )
    packed_rows: bool = option(
        False,
        help="Pack several short sequences into one row to reduce padding. The "
        "sequences do not attend to each other, and the losses stay the same.",
        group="advanced",
    )
    max_predictions_per_seq: int = option(
        20, minimum=1, help="Maximum number of masked pieces per example."
    )
    random_seed: int = option(12345, minimum=0, help="Seed of the random draws.")
    dupe_factor: int = option(
        10,
        minimum=1,
        help="Number of passes over the text, each with different pairs and masks.",
    )
    sampler: str = option(
        "vectorized",
        choices=("vectorized", "release", "tf_data"),
        help="vectorized: draws thousands of sequences at a time from the "
        "distributions of the release. release: repeats the draws of the release one "
        "by one and creates the same records. tf_data: draws like vectorized, but with "
        "TensorFlow ops, as `text_dataset` does.",
        group="advanced",
    )
    num_workers: int | None = option(
        None,
        minimum=1,
        help="Number of processes. The output does not depend on it. Default: one per "
        "processor core, and at most one per MB of text.",
        group="devices",
    )
    shard_mb: float = option(
        64.0,
        minimum=0.0001,
        help="Maximum amount of text, in MB, that is sampled together. Limits memory "
        "use. The vectorized sampler ends a shard at 8 MB, or less for a small "
        "corpus, once it has 16 documents.",
        group="advanced",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        limit = self.max_predictions_per_seq
        if limit > self.max_seq_length:
            raise options_module.OptionError(
                f"--max_predictions_per_seq: expected at most max_seq_length "
                f"({self.max_seq_length}), got {limit}."
            )
        if self.sampler == "release" and not self.next_sentence:
            raise options_module.OptionError(
                "--sampler=release creates sentence pairs only; use "
                "--sampler=vectorized with --next_sentence=false."
            )
        for name in _UNSUPPORTED.get(self.sampler, ()):
            self.refuse(
                name,
                f"is not supported by --sampler={self.sampler}; use "
                "--sampler=vectorized",
            )
        masks_words = self.do_whole_word_mask or self.masking == "span"
        if self.whole_word_segmenter and not masks_words:
            raise options_module.OptionError(
                "--whole_word_segmenter needs --do_whole_word_mask or --masking=span."
            )


def of_arguments(**arguments: Any) -> CreatePretrainingDataOptions:
    """Returns arguments of `text_dataset` as the options of the same names.

    Raises:
        ValueError: one has the wrong kind or is out of range.
    """
    try:
        return CreatePretrainingDataOptions(
            input_file=("text",),
            output_file=("records",),
            vocab_file="vocabulary",
            sampler="tf_data",
            **arguments,
        )
    except options_module.OptionError as error:
        raise ValueError(str(error).replace("--", "")) from None
