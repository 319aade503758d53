"""Builds a vocabulary: counts words, learns pieces, fills [unused] tokens, writes."""

import dataclasses
import logging
from collections.abc import Mapping

from bert_tf import files
from bert_tf import locks
from bert_tf import options as options_module
from bert_tf.tokenization import full
from bert_tf.tokenization import learning
from bert_tf.tokenization import options as tokenization_options
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coverage:
    """How well a vocabulary covers a text."""

    num_words: int  # Including punctuation marks.
    num_pieces: int
    num_unknown: int  # How many of the pieces are [UNK].

    def __str__(self):
        per_word = self.num_pieces / max(1, self.num_words)
        share = self.num_unknown / max(1, self.num_pieces)
        return (
            f"{self.num_words:,} words, {per_word:.4f} pieces per word, "
            f"{share:.4%} of the pieces are [UNK]"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyReport:
    """Result of `build_vocabulary`."""

    path: str  # The file that was written.
    vocabulary: vocabulary_module.Vocabulary
    asked_size: int | None  # --vocab_size; None if no vocabulary was learned.
    num_filled: int  # [unused] tokens that were replaced by words.
    coverage: Coverage | None  # None if no vocabulary was learned.

    def __str__(self) -> str:
        num_unused = len(learning.unused_places(self.vocabulary))
        lines = [
            f"{self.path}: {len(self.vocabulary):,} tokens, {num_unused:,} of them "
            "[unused]"
        ]
        if self.asked_size is not None and self.asked_size > len(self.vocabulary):
            lines.append(
                "the text has too few frequent pieces for "
                f"--vocab_size={self.asked_size}; use more text"
            )
        if self.num_filled:
            lines.append(f"{self.num_filled:,} [unused] tokens replaced by words")
        if self.coverage is not None:
            lines.append(str(self.coverage))
        return "\n".join(lines)


def build_vocabulary(
    options: tokenization_options.BuildVocabularyOptions,
) -> VocabularyReport:
    """Learns a vocabulary or adds words to one, and writes it.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the text has no words, a new word is not a single word, or the
            vocabulary is not valid.
    """
    inputs = files.expand(options.input_file) if options.input_file else []
    _check_output(options, inputs)
    flag = "output_file" if options.output_file else "vocab_file"
    with locks.output_file(options.written_file, flag=flag):
        return _build_vocabulary(options, inputs)


def _build_vocabulary(options, inputs):
    counts = None
    if inputs:
        if options.strip_accents not in (None, options.do_lower_case):
            logger.info(
                "Pretraining with this vocabulary strips accents if and only if it "
                "lowercases text (as in 2018), so --strip_accents=%s suits only your "
                "own training with text_dataset and such a tokenizer.",
                options.strip_accents,
            )
        counts = learning.count_words(
            inputs,
            do_lower_case=options.do_lower_case,
            strip_accents=options.strip_accents,
        )
        vocabulary = learning.vocabulary_from_counts(
            counts,
            vocab_size=options.vocab_size,
        )
    else:
        vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
        warning = full.casing_warning(vocabulary, do_lower_case=options.do_lower_case)
        if warning is not None:
            logger.warning("%s", warning)
    num_unused = len(learning.unused_places(vocabulary))
    if options.fill_unused is not None:
        words = files.read_lines(options.fill_unused)
        vocabulary = learning.fill_unused(
            vocabulary,
            words,
            do_lower_case=options.do_lower_case,
            strip_accents=options.strip_accents,
            source=options.fill_unused,
        )
    vocabulary.save(options.written_file)
    return VocabularyReport(
        path=options.written_file,
        vocabulary=vocabulary,
        asked_size=options.vocab_size if counts else None,
        num_filled=num_unused - len(learning.unused_places(vocabulary)),
        coverage=measure_coverage(vocabulary, counts) if counts else None,
    )


def measure_coverage(
    vocabulary: vocabulary_module.Vocabulary, counts: Mapping[str, int]
) -> Coverage:
    """Returns the `Coverage` of a vocabulary, given how often each word occurs."""
    tokenizer = wordpiece.WordpieceTokenizer(vocabulary.ids, vocabulary_module.UNK)
    num_pieces = num_unknown = 0
    for word, count in counts.items():
        pieces = tokenizer.tokenize_word(word)
        num_pieces += count * len(pieces)
        num_unknown += count * pieces.count(vocabulary_module.UNK)
    return Coverage(
        num_words=sum(counts.values()), num_pieces=num_pieces, num_unknown=num_unknown
    )


def _check_output(options, inputs):
    """Checks before the long work that its result can be written."""
    words = [] if options.fill_unused is None else [options.fill_unused]
    options_module.check_not_overwritten(
        outputs={
            "output_file" if options.output_file else "vocab_file": [
                options.written_file
            ]
        },
        inputs={"input_file": inputs, "fill_unused": words},
    )
    if files.is_folder(options.written_file):
        raise IsADirectoryError(
            f"{options.written_file} is a folder; expected a file name."
        )
