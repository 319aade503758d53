"""Which Chinese characters form words, as jieba or a list of words says.

BERT's tokenizer makes every Chinese character a word of its own, so that `##` tells
nothing of Chinese words.
"""

import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf.tokenization import characters

JIEBA = "jieba"
_RUN = re.compile(
    "["
    + "".join(f"{chr(b.start)}-{chr(b.stop - 1)}" for b in characters.CHINESE_BLOCKS)
    + "]+"
)


class Segmenter:
    """Tells the first character of every Chinese word.

    Args:
        segment: function from a run of Chinese characters to the words that it is
            made of, in order.
    """

    def __init__(self, segment: Callable[[str], Iterable[str]]):
        self._segment = segment

    def starts(self, sentences: Sequence[str]) -> np.ndarray:
        """Returns bool [C]: whether each Chinese character begins a word.

        Args:
            sentences: texts with C Chinese characters in all, in this order.
        """
        flags = bytearray()
        for sentence in sentences:
            if not sentence.isascii():
                for run in _RUN.findall(sentence):
                    for word in self._segment(run):
                        flags += b"\1" + bytes(len(word) - 1)
        return np.frombuffer(flags, bool)


def create_segmenter(name: str) -> Segmenter:
    """Returns the segmenter that `--whole_word_segmenter` names.

    Args:
        name: "jieba", or a file with a Chinese word a line (UTF-8; what follows a
            space or tab does not count): text is cut into the longest words of the
            list from left to right.

    Raises:
        ImportError: jieba is not installed.
        OSError: the file cannot be read.
        ValueError: it is not UTF-8, or has no words.
    """
    if name == JIEBA:
        return Segmenter(_jieba())
    with files.open_file(name, "rb") as file:
        try:
            lines = file.read().decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise ValueError(f"{name}: not UTF-8; convert the file to UTF-8.") from None
    words = {line.split()[0] for line in lines if line.strip()}
    if not words:
        raise ValueError(f"{name}: has no words; expected a Chinese word a line.")
    return Segmenter(_longest_words(words))


def _longest_words(words):
    most = max(map(len, words))

    def segment(run):
        start = 0
        while start < len(run):
            size = min(most, len(run) - start)
            while size > 1 and run[start : start + size] not in words:
                size -= 1
            yield run[start : start + size]
            start += size

    return segment


def _jieba():
    try:
        import jieba
    except ImportError:
        raise ImportError(
            "--whole_word_segmenter=jieba needs jieba; install bert_tf[chinese], or "
            "give a file with a word a line."
        ) from None
    # It would tell on standard error that it reads its dictionary.
    jieba.setLogLevel("WARNING")
    return jieba.cut
