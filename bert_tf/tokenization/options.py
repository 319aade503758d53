"""Options of `build_vocabulary`."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildVocabularyOptions(options_module.Options):
    """Learns a WordPiece vocabulary from text, or adds words to an existing one."""

    input_file: tuple[str, ...] = option(
        (), help="Text files to learn from: a comma-separated list of paths and globs."
    )
    vocab_file: str = option(
        help="Vocabulary file to write. Without --input_file: the file to add words to."
    )
    output_file: str | None = option(
        None,
        help="File to write when words are added. Default: replace --vocab_file.",
    )
    vocab_size: int = option(
        30522,
        help="Number of tokens, including special and [unused] tokens.",
        minimum=6,
    )
    do_lower_case: bool = option(
        True, help="Whether text is lowercased. Use the same value in later steps."
    )
    fill_unused: str | None = option(
        None, help="File with one word per line; the words replace [unused] tokens."
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.input_file and self.fill_unused is None:
            raise options_module.OptionError(
                "--input_file: expected text files to learn from, or --fill_unused "
                "with words for an existing --vocab_file, got neither."
            )
        if self.input_file and self.output_file is not None:
            raise options_module.OptionError(
                "--output_file can only be used with --fill_unused; a vocabulary "
                "learned from --input_file is written to --vocab_file."
            )
        if not self.input_file and not self.is_default("vocab_size"):
            raise options_module.OptionError(
                "--vocab_size has no effect unless a vocabulary is learned; omit it, "
                "or pass --input_file."
            )

    @property
    def written_file(self) -> str:
        """The file that the vocabulary is written to."""
        return self.output_file or self.vocab_file
