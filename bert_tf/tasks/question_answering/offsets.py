"""The characters of a context that each word piece covers.

The release finds answers by searching for text. In scripts without spaces between
words, such as Chinese, Japanese and Thai, a word is a whole sentence or paragraph. Then
the search finds another occurrence, or nothing, and the answer would be the whole
paragraph. There, places decide. In other scripts, answers are those of the release.
"""

import re
import unicodedata
from collections.abc import Callable
from collections.abc import Sequence

from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

_WITHOUT_SPACES = re.compile(f"[{characters.SCRIPTS_WITHOUT_SPACES}]")


def is_without_spaces(text: str) -> bool:
    """Returns whether a text has a character of a script without spaces."""
    return _WITHOUT_SPACES.search(text) is not None


def piece_spans(
    word: str, pieces: Sequence[str], basic_tokens: Callable[[str], Sequence[str]]
) -> list[tuple[int, int]] | None:
    """Returns the start and the end of each piece in the word.

    Args:
        word: text between white space.
        pieces: its word pieces. [UNK] stands for a whole token.
        basic_tokens: splits text as the tokenizer does before word pieces.

    Returns:
        None if the characters cannot be matched, because the tokenizer changes their
        number depending on their neighbours.
    """
    # The character that each letter of the tokens comes from: "é" gives one letter,
    # "지" three, a control character none.
    owners = [i for i, one in enumerate(word) for _ in "".join(basic_tokens(one))]
    tokens = basic_tokens(word)
    if len(owners) != sum(map(len, tokens)):
        return None
    with_letters = set(owners)
    spans, rest, letter, token_end = [], iter(pieces), 0, 0
    for token in tokens:
        token_end += len(token)
        while letter < token_end:
            piece = next(rest, None)
            size = len((piece or "").removeprefix(wordpiece.CONTINUATION))
            if piece == vocabulary_module.UNK:
                size = token_end - letter
            if not 0 < size <= token_end - letter:
                return None
            end = owners[letter + size - 1] + 1
            # Accents that the tokenizer removes belong to the letter before them.
            while end < len(word) and unicodedata.category(word[end]) == "Mn":
                if end in with_letters:
                    break
                end += 1
            spans.append((owners[letter], end))
            letter += size
    return spans if next(rest, None) is None else None
