"""Making a vocabulary: count words, learn pieces, fill [unused] places, write."""

import dataclasses

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.tokenization import coverage
from bert_tf.tokenization import learning
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyReport:
    """What `build_vocabulary` made."""

    path: str  # Where the vocabulary was written.
    vocabulary: vocabulary_module.Vocabulary  # What was written.
    asked_size: int | None  # --vocab_size, where one was learned.
    num_filled: int  # [unused] places that were given to words.
    coverage: coverage.Coverage | None  # On the text, where one was learned.

    def __str__(self):
        num_unused = len(learning.unused_places(self.vocabulary))
        lines = [
            f"{self.path}: {len(self.vocabulary):,} tokens, {num_unused:,} of them "
            "[unused]"
        ]
        if self.asked_size is not None and self.asked_size > len(self.vocabulary):
            lines.append(
                f"the text has no pieces for all of --vocab_size={self.asked_size}; "
                "more text, or a smaller --min_frequency, gives more"
            )
        if self.num_filled:
            lines.append(f"{self.num_filled:,} words put in [unused] places")
        if self.coverage is not None:
            lines.append(str(self.coverage))
        return "\n".join(lines)


def build_vocabulary(options, *, progress=progress_module.silent):
    """Learns a vocabulary, or adds words to one, and writes it.

    Args:
        options: a `BuildVocabularyOptions`.
        progress: a `progress.Progress`.

    Returns:
        A `VocabularyReport`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the text, the words or the vocabulary cannot be used.
    """
    case = {
        "do_lower_case": options.do_lower_case,
        "strip_accents": options.strip_accents,
    }
    counts = None
    inputs = files.expand(options.input_file) if options.input_file else []
    _check_output(options, inputs)
    if inputs:
        counts = learning.count_words(inputs, **case, progress=progress)
        vocabulary = learning.vocabulary_from_counts(
            counts,
            vocab_size=options.vocab_size,
            num_unused=options.num_unused,
            min_frequency=options.min_frequency,
            character_coverage=options.character_coverage,
            progress=progress,
        )
    else:
        vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    num_unused = len(learning.unused_places(vocabulary))
    if options.fill_unused is not None:
        words = files.read_lines(options.fill_unused)
        vocabulary = learning.fill_unused(
            vocabulary, words, **case, source=options.fill_unused
        )
    vocabulary.save(options.written_file)
    return VocabularyReport(
        path=options.written_file,
        vocabulary=vocabulary,
        asked_size=options.vocab_size if counts else None,
        num_filled=num_unused - len(learning.unused_places(vocabulary)),
        coverage=coverage.measure(vocabulary, counts) if counts else None,
    )


def _check_output(options, inputs):
    """Finds out before the long work whether its result can be written."""
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
            f"{options.written_file} is a folder; expected the name of a file."
        )
    files.check_can_be_made(options.written_file)
