"""Builds a vocabulary: counts words, learns pieces, fills [unused] tokens, writes."""

import logging

from bert_tf import files
from bert_tf import locks
from bert_tf import options as options_module
from bert_tf.tokenization import full
from bert_tf.tokenization import learning
from bert_tf.tokenization import options as tokenization_options
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)


def build_vocabulary(
    options: tokenization_options.BuildVocabularyOptions,
) -> str:
    """Learns a vocabulary or adds words to one, writes it, and returns a report.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the text has no words, a new word is not a single word, or the
            vocabulary is not valid.
    """
    inputs = files.expand(options.input_file) if options.input_file else []
    written, fill_unused = options.written_file, options.fill_unused
    flag = "output_file" if options.output_file else "vocab_file"
    # Before the long work.
    options_module.check_not_overwritten(
        outputs={flag: [written]},
        inputs={"input_file": inputs, "fill_unused": filter(None, [fill_unused])},
    )
    if files.is_folder(written):
        raise IsADirectoryError(f"{written} is a folder; expected a file name.")
    lines: list[str] = []
    with locks.output_file(written, flag=flag):
        if inputs:
            counts = learning.count_words(inputs, do_lower_case=options.do_lower_case)
            vocabulary = learning.vocabulary_from_counts(
                counts,
                vocab_size=options.vocab_size,
                do_lower_case=options.do_lower_case,
            )
            if options.vocab_size > len(vocabulary):
                lines.append(
                    "the text has too few frequent pieces for "
                    f"--vocab_size={options.vocab_size}; use more text"
                )
            lines.append(f"learned from {sum(counts.values()):,} words")
        else:
            vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
            warning = full.casing_warning(
                vocabulary, do_lower_case=options.do_lower_case
            )
            if warning is not None:
                logger.warning("%s", warning)
        if fill_unused is not None:
            before = len(learning.unused_places(vocabulary))
            vocabulary_module.check_size(fill_unused)
            words = files.read_lines(fill_unused)
            vocabulary = learning.fill_unused(
                vocabulary,
                words,
                do_lower_case=options.do_lower_case,
                source=fill_unused,
            )
            num_filled = before - len(learning.unused_places(vocabulary))
            if num_filled:
                lines.append(f"{num_filled:,} [unused] tokens replaced by words")
        vocabulary.save(written)
    num_unused = len(learning.unused_places(vocabulary))
    first = f"{written}: {len(vocabulary):,} tokens, {num_unused:,} of them [unused]"
    return "\n".join([first, *lines])
