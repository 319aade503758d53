"""Splits plain text into words and keeps their positions."""

import dataclasses
import re

from bert_tf.tokenization import characters


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words:
    """The words of a text and their positions."""

    words: tuple[str, ...]
    starts: tuple[int, ...]  # Index of each word's first character.
    ends: tuple[int, ...]  # Index after each word's last character.


def split_text(text: str) -> Words:
    """Splits a text into words at white space and punctuation.

    Every punctuation mark and every Chinese character is a separate word.

    Example:
        >>> split_text("Rome, too.")
        Words(words=('Rome', ',', 'too', '.'), starts=(0, 4, 6, 9), ends=(4, 5, 9, 10))
    """
    found = list(_WORD.finditer(text))
    return Words(
        words=tuple(match.group() for match in found),
        starts=tuple(match.start() for match in found),
        ends=tuple(match.end() for match in found),
    )


def _character_class(codes):
    return "".join(re.escape(chr(code)) for code in sorted(codes))


def _word_pattern():
    alone = _character_class(characters.PUNCTUATION)
    alone += "".join(
        f"{chr(block.start)}-{chr(block.stop - 1)}"
        for block in characters.CHINESE_BLOCKS
    )
    return re.compile(f"[{alone}]|[^{alone}{_character_class(characters.WHITESPACE)}]+")


_WORD = _word_pattern()
