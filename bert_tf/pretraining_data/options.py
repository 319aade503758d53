"""Options of create_pretraining_data."""

import dataclasses
import os

from bert_tf import options as options_module
from bert_tf.data.parallel import execution
from bert_tf.options import option
from bert_tf.pretraining_data import mask_shares

_SHARES = mask_shares.MaskShares()
# Of `masking`, in both tools that mask.
MASKINGS = ("random", "span")
# Options that say how to mask, and with --dynamic_masking are those of run_pretraining.
MASKING_OPTIONS = (
    "do_whole_word_mask",
    "masking",
    "masked_lm_prob",
    "mask_share",
    "same_share",
    "random_share",
)
# Options that the release's sampler knows nothing of.
_VECTORIZED_ONLY = (
    "dynamic_masking",
    "masking",
    "packed_rows",
    "whole_word_segmenter",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskShareOptions(options_module.Options):
    """What becomes of masked pieces; of both tools that mask."""

    mask_share: float = option(
        _SHARES.mask,
        minimum=0.0,
        maximum=1.0,
        help="Of the pieces to be predicted, the share that becomes [MASK]; with "
        "same_share and random_share it adds up to 1.",
    )
    same_share: float = option(
        _SHARES.same, minimum=0.0, maximum=1.0, help="The share that stays as it is."
    )
    random_share: float = option(
        _SHARES.random,
        minimum=0.0,
        maximum=1.0,
        help="The share that becomes any piece of the vocabulary.",
    )

    def __post_init__(self):
        super().__post_init__()
        try:
            self.shares.check()
        except ValueError as error:
            raise options_module.OptionError(str(error)) from None

    @property
    def shares(self) -> mask_shares.MaskShares:
        """The three shares."""
        return mask_shares.MaskShares(
            mask=self.mask_share, same=self.same_share, random=self.random_share
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreatePretrainingDataOptions(MaskShareOptions, execution.RunnerOptions):
    """Makes TFRecord files of masked sentence pairs from text.

    Text has a sentence a line and a blank line between documents.
    """

    input_file: tuple[str, ...] = option(
        help="Text files; names and patterns, commas between."
    )
    output_file: tuple[str, ...] = option(
        help="TFRecord files to write, commas between."
    )
    vocab_file: str = option(help="The vocabulary, a word piece a line.")
    do_lower_case: bool = option(
        True, help="Lower-case the text; as the vocabulary was made."
    )
    do_whole_word_mask: bool = option(False, help="Mask all pieces of a word together.")
    whole_word_segmenter: str | None = option(
        None,
        help="Who tells Chinese words, whose characters stand alone in every "
        "vocabulary: jieba, or a file with a word a line. Default: nobody; each "
        "character is a word.",
    )
    masking: str = option(
        "random",
        choices=MASKINGS,
        help="random: pieces, or words, each by itself; span: up to ten words that "
        "follow one another, as in SpanBERT.",
    )
    dynamic_masking: bool = option(
        False,
        help="Mask nothing here: run_pretraining does, with other masks each time.",
    )
    max_seq_length: int = option(
        128, minimum=5, maximum=65536, help="Pieces of a sequence, padding included."
    )
    packed_rows: bool = option(
        False,
        help="Put several sequences into a row where they fit: less padding, the same "
        "losses. They do not see one another.",
    )
    max_predictions_per_seq: int = option(
        20, minimum=1, help="The most masked pieces of a sequence, or of a row."
    )
    random_seed: int = option(12345, minimum=0, help="Fixes every draw.")
    dupe_factor: int = option(
        10, minimum=1, help="Passes over the text, each with other masks."
    )
    masked_lm_prob: float = option(
        0.15, minimum=0.0, maximum=1.0, help="Share of the pieces that is masked."
    )
    short_seq_prob: float = option(
        0.1,
        minimum=0.0,
        maximum=1.0,
        help="Probability that a pass over a document makes shorter sequences.",
    )
    sampler: str = option(
        "vectorized",
        choices=("vectorized", "release"),
        help="vectorized: the release's distributions, drawn for thousands of "
        "sequences at a time; release: the release's own draws, one by one, which "
        "give its very records.",
    )
    next_sentence: bool = option(
        True,
        help="Make sentence pairs with next_sentence_labels. False: sequences of "
        "sentences that follow one another, without labels.",
    )
    num_workers: int | None = option(
        None,
        minimum=1,
        help="Processes; what is written does not depend on it. Default: one for each "
        "processor core, and at most one for each MB of text.",
    )
    shard_mb: float = option(
        64.0,
        minimum=0.0001,
        help="The most MB of text sampled together; memory grows with it. Unless "
        "--sampler=release it is 8 MB, or less of a small corpus, once there are 16 "
        "documents to draw from.",
    )

    def __post_init__(self):
        super().__post_init__()
        self._check_masking()
        most = self.max_predictions_per_seq
        if most > self.max_seq_length and not self.dynamic_masking:
            raise options_module.OptionError(
                f"--max_predictions_per_seq: expected at most max_seq_length "
                f"({self.max_seq_length}), got {most}."
            )
        if self.sampler == "release" and not self.next_sentence:
            raise options_module.OptionError(
                "--sampler: expected vectorized with --next_sentence=false, got "
                "'release'; the release knows sentence pairs only."
            )
        for name in self.output_file:
            others = [os.path.realpath(path) for path in self.output_file]
            if others.count(os.path.realpath(name)) > 1 or name in self.input_file:
                raise options_module.OptionError(
                    f"--output_file: expected names that are given once, got {name!r} "
                    f"twice among input and output files."
                )

    def _check_masking(self):
        how_to_mask = (*MASKING_OPTIONS, "max_predictions_per_seq")
        for name in how_to_mask if self.dynamic_masking else ():
            if not self._is_default(name):
                raise options_module.OptionError(
                    f"--{name} does not go with --dynamic_masking; give it to "
                    f"run_pretraining, which then masks."
                )
        for name in _VECTORIZED_ONLY if self.sampler == "release" else ():
            if not self._is_default(name):
                raise options_module.OptionError(
                    f"--{name} needs --sampler=vectorized; the release has no such "
                    f"thing."
                )
        uses_words = (
            self.do_whole_word_mask or self.dynamic_masking or self.masking == "span"
        )
        if self.whole_word_segmenter is not None and not uses_words:
            raise options_module.OptionError(
                "--whole_word_segmenter needs masks that know words: "
                "--do_whole_word_mask, --masking=span or --dynamic_masking."
            )

    def _is_default(self, name):
        return getattr(self, name) == type(self).__dataclass_fields__[name].default

    @property
    def max_tokens(self) -> int:
        """Pieces of text that a sequence has room for."""
        return self.max_seq_length - (3 if self.next_sentence else 2)
