"""Options of the tool that makes vocabularies."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildVocabularyOptions(options_module.Options):
    """Learns a WordPiece vocabulary from text, or adds words to one."""

    input_file: tuple[str, ...] = option(
        (), help="Text files (comma list, globs) to learn from."
    )
    vocab_file: str = option(
        help="The vocabulary to write; without --input_file, the one to add words to."
    )
    output_file: str | None = option(
        None,
        help="Where the vocabulary goes when words are added; default: --vocab_file.",
    )
    vocab_size: int = option(
        30522,
        help="Number of tokens to learn, special and [unused] ones included.",
        minimum=6,
    )
    do_lower_case: bool = option(
        True, help="Whether the tokenizer that will use it lower-cases."
    )
    strip_accents: bool | None = option(
        None, help="Whether it strips accents; default: as --do_lower_case."
    )
    num_unused: int | None = option(
        None,
        help="Number of [unused] tokens; default: 994 of 30522, in proportion, and "
        "from 1000 tokens on at least the 99 that put [UNK] at 100.",
        minimum=0,
    )
    min_frequency: int = option(
        2, help="How often two pieces must meet to become one.", minimum=1
    )
    character_coverage: float = option(
        0.99995,
        help="Share of words whose characters must all be known.",
        minimum=0.0,
        maximum=1.0,
    )
    fill_unused: str | None = option(
        None, help="File of words, one a line, that take the place of [unused] tokens."
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
                "--output_file goes with --fill_unused alone; what is learned from "
                "--input_file is written to --vocab_file."
            )
        if not self.input_file:
            self._check_nothing_is_learned()

    def _check_nothing_is_learned(self):
        names = ("vocab_size", "num_unused", "min_frequency", "character_coverage")
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in names:
            if getattr(self, name) != defaults[name]:
                raise options_module.OptionError(
                    f"--{name} has a meaning only where a vocabulary is learned; "
                    "leave it out, or give --input_file."
                )

    @property
    def written_file(self) -> str:
        """Where the vocabulary goes."""
        return self.output_file or self.vocab_file
