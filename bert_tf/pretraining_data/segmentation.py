"""Groups Chinese characters into words, with jieba or a list of words.

BERT's tokenizer makes each Chinese character a word, so `##` does not show which of
them belong together. Whole-word masking of Chinese needs a segmenter.
"""

import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf.tokenization import basic

JIEBA = "jieba"
_RUN = re.compile(f"[{basic.CHINESE}]+")


class Segmenter:
    """Finds the first character of each Chinese word.

    Args:
        segment: function that splits a run of Chinese characters into words.
    """

    def __init__(self, segment: Callable[[str], Iterable[str]]):
        self._segment = segment

    def starts(self, sentences: Sequence[str]) -> np.ndarray:
        """Returns bool [C]: whether each Chinese character begins a word.

        Args:
            sentences: texts with C Chinese characters in total.
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
        name: "jieba", or a UTF-8 file with one Chinese word per line; text after a
            space or tab is ignored. Runs are split from left to right into the longest
            words of the list.

    Raises:
        ImportError: jieba is not installed.
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8, or has no words.
    """
    if name == JIEBA:
        return Segmenter(_jieba())
    with files.open_file(name, "rb") as file:
        try:
            lines = file.read().decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise ValueError(f"{name}: not UTF-8; convert the file to UTF-8.") from None
    words = {line.split()[0] for line in lines if line.strip()}
    if not words:
        raise ValueError(f"{name} has no words; expected one Chinese word per line.")
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
            "--whole_word_segmenter=jieba needs jieba: pip install "
            "'bert_tf[chinese]', or pass a file with one word per line."
        ) from None
    # Otherwise it logs to standard error when it loads its dictionary.
    jieba.setLogLevel("WARNING")
    return jieba.cut
