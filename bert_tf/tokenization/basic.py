"""Text to words: cleans it, splits at white space and punctuation, lowercases."""

import re
from collections.abc import Iterable
from collections.abc import Sequence

from bert_tf.tokenization import characters

# For a regular expression: the Chinese characters, in brackets.
CHINESE = "".join(
    f"{chr(block.start)}-{chr(block.stop - 1)}" for block in characters.CHINESE_BLOCKS
)
_DELETED = re.compile(f"[{characters.character_class(characters.DELETED)}]")
_CHINESE = re.compile(f"([{CHINESE}])")
_WHITESPACE = re.compile(f"[{characters.character_class(characters.WHITESPACE)}]+")
_PUNCTUATION = re.compile(f"([{characters.character_class(characters.PUNCTUATION)}])")


def convert_to_unicode(text: str | bytes) -> str:
    """Returns text as str. Bytes are decoded as UTF-8, and invalid bytes are dropped.

    Raises:
        ValueError: `text` is neither str nor bytes.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"Expected text as str or bytes, got {type(text).__name__}.")


class BasicTokenizer:
    """Splits text into words, punctuation marks and single Chinese characters.

    Args:
        do_lower_case: whether to lowercase.
        strip_accents: whether to drop accents (nonspacing marks, after canonical
            decomposition). None means the value of `do_lower_case`, as in the release.
        never_split: strings that are kept whole and unchanged wherever they occur, such
            as "[MASK]". If two of them match at the same place, the longer one wins.

    Source: BasicTokenizer of tokenization.py, 2018.
    """

    def __init__(
        self,
        do_lower_case: bool = True,
        *,
        strip_accents: bool | None = None,
        never_split: Sequence[str] = (),
    ):
        self.do_lower_case = do_lower_case
        self.strip_accents = do_lower_case if strip_accents is None else strip_accents
        self.never_split = checked_never_split(never_split)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the words of a text (str, or bytes in UTF-8)."""
        tokens: list[str] = []
        for part in self.parts(convert_to_unicode(text)):
            if part in self.never_split:
                tokens.append(part)
                continue
            for word in split_words(part):
                tokens += self.tokenize_word(word)
        return tokens

    def parts(self, text: str) -> list[str]:
        """Splits a text around the occurrences of `never_split`, which are kept."""
        if not self.never_split:
            return [text]
        alternatives = "|".join(map(re.escape, self.never_split))
        return re.split(f"({alternatives})", text)

    def tokenize_word(self, word: str) -> list[str]:
        """Returns the tokens of one word from `split_words`."""
        if self.do_lower_case:
            word = characters.lower(word)
        if self.strip_accents:
            word = characters.strip_accents(word)
        return [token for token in _PUNCTUATION.split(word) if token]


def split_words(text: str) -> list[str]:
    """Cleans a text and splits it at white space.

    Control characters are deleted, and each Chinese character becomes a word.
    """
    if text.isascii() and text.isprintable():
        return text.split()  # Spaces are the only white space in it.
    # Chinese is written without spaces, so white space cannot separate its words. The
    # release therefore makes every ideograph a separate token.
    if not text.isascii():
        text = _CHINESE.sub(r" \1 ", text)
    text = _DELETED.sub("", text)
    return [word for word in _WHITESPACE.split(text) if word]


def checked_never_split(never_split: Iterable[str]) -> tuple[str, ...]:
    """Returns the strings as a tuple, longest first.

    Raises:
        ValueError: a string is empty, or a single string was given instead of several.
    """
    if isinstance(never_split, str | bytes):
        raise ValueError(
            f"never_split: expected several strings, got one: {never_split!r}; "
            "put it into a tuple."
        )
    never_split = tuple(never_split)
    if not all(isinstance(text, str) and text for text in never_split):
        raise ValueError(
            f"never_split: expected non-empty strings, got {never_split!r}."
        )
    return tuple(sorted(set(never_split), key=lambda text: (-len(text), text)))
