"""Lists of words to put into a vocabulary, checked against its tokenizer."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator

from bert_tf.tokenization import basic
from bert_tf.tokenization import wordpiece


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedWord:
    """A word of a list."""

    given: str  # As in the list.
    token: str  # As the tokenizer normalizes it, with "##" if the list has it.
    place: str  # The file and the line, or the index in the list, for messages.


def read(
    words: Iterable[str], tokenizer: basic.BasicTokenizer, *, source: str | None
) -> Iterator[ListedWord]:
    """Yields the words of a list; skips empty lines and repeated words.

    Args:
        words: such as the lines of a file. Each must be a single word for the
            tokenizer. With the prefix "##" it is a piece for the inside of words.
        tokenizer: normalizes each word like text.
        source: the file of the words, for error messages; None: a list in memory.

    Raises:
        ValueError: the words are not a list of strings, or a line is not a single word
            or too long for a word.
    """
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise ValueError(f"Expected a list of words, got {words!r:.60}.")
    seen = set()
    for index, line in enumerate(words):
        place = f"Word {index}" if source is None else f"{source}:{index + 1}"
        if not isinstance(line, str):
            raise ValueError(f"{place}: expected a string, got {line!r:.60}.")
        text = line.strip()
        if not text:
            continue
        token = _one_word(text, tokenizer, place)
        if token not in seen:
            seen.add(token)
            yield ListedWord(given=text, token=token, place=place)


def _one_word(text: str, tokenizer: basic.BasicTokenizer, place: str) -> str:
    prefix = wordpiece.CONTINUATION if text.startswith(wordpiece.CONTINUATION) else ""
    words = tokenizer.tokenize(text.removeprefix(prefix))
    if len(words) != 1:
        found = f" ({' '.join(words)})" if words else ""
        raise ValueError(
            f"{place}: the tokenizer splits {text!r} into {len(words)} words{found}; a "
            "token must be a single word."
        )
    if len(words[0]) > wordpiece.MAX_INPUT_CHARS_PER_WORD:
        raise ValueError(
            f"{place}: the word has {len(words[0])} characters, but the tokenizer "
            f"replaces words of more than {wordpiece.MAX_INPUT_CHARS_PER_WORD} by "
            "[UNK]; shorten or remove it."
        )
    return prefix + words[0]
