"""Text to words: clean, split at white space and punctuation, lower-case."""

import re

from bert_tf.tokenization import characters


def _character_class(codes):
    return "[" + "".join(re.escape(chr(code)) for code in sorted(codes)) + "]"


def _block(block):
    return f"{chr(block.start)}-{chr(block.stop - 1)}"


_DELETED = re.compile(_character_class(characters.DELETED))
_CHINESE = re.compile("([" + "".join(map(_block, characters.CHINESE_BLOCKS)) + "])")
_WHITESPACE = re.compile(_character_class(characters.WHITESPACE) + "+")
_PUNCTUATION = re.compile("(" + _character_class(characters.PUNCTUATION) + ")")


def convert_to_unicode(text):
    """Returns text as str; bytes are decoded from UTF-8, what is invalid dropped.

    Raises:
        ValueError: it is neither str nor bytes.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"Expected text as str or bytes, got {type(text).__name__}.")


class BasicTokenizer:
    """Splits text into words, punctuation marks and single Chinese characters.

    Args:
        do_lower_case: whether to lower-case.
        strip_accents: whether to drop accents (nonspacing marks, after canonical
            decomposition). None: as `do_lower_case`, which is what the release does.
        never_split: texts that are kept whole and unchanged wherever they occur, such
            as "[MASK]". Where two of them could start, the longer one wins.

    Source: BasicTokenizer of tokenization.py, 2018.
    """

    def __init__(self, do_lower_case=True, *, strip_accents=None, never_split=()):
        self.do_lower_case = do_lower_case
        self.strip_accents = do_lower_case if strip_accents is None else strip_accents
        self.never_split = checked_never_split(never_split)

    def tokenize(self, text):
        """Returns the list of words of a text (str, or bytes in UTF-8)."""
        tokens = []
        for part in self.parts(convert_to_unicode(text)):
            if part in self.never_split:
                tokens.append(part)
                continue
            for word in split_words(part):
                tokens += self.tokenize_word(word)
        return tokens

    def parts(self, text):
        """Returns a text cut around the occurrences of `never_split`."""
        if not self.never_split:
            return [text]
        alternatives = "|".join(map(re.escape, self.never_split))
        return re.split(f"({alternatives})", text)

    def tokenize_word(self, word):
        """Returns the tokens of one word that `split_words` gave."""
        if self.do_lower_case:
            word = characters.lower(word)
        if self.strip_accents:
            word = characters.strip_accents(word)
        return [token for token in _PUNCTUATION.split(word) if token]


def split_words(text):
    """Returns what stands between white space in a cleaned text.

    Control characters are deleted; each Chinese character is a word.
    """
    if not text.isascii():
        text = _CHINESE.sub(r" \1 ", text)
    text = _DELETED.sub("", text)
    return [word for word in _WHITESPACE.split(text) if word]


def checked_never_split(never_split):
    """Returns the texts as a tuple, longest first.

    Raises:
        ValueError: one is empty, or a single text was given in place of several.
    """
    if isinstance(never_split, str | bytes):
        raise ValueError(
            f"never_split: expected several texts, got one: {never_split!r}; "
            "put it into a tuple."
        )
    if not all(isinstance(text, str) and text for text in never_split):
        raise ValueError(
            f"never_split: expected texts that are not empty, got {never_split!r}."
        )
    return tuple(sorted(set(never_split), key=lambda text: (-len(text), text)))
