"""Groups Chinese characters into words with jieba.

BERT's tokenizer makes each Chinese character a word, so `##` does not show which of
them belong together. Whole-word masking of Chinese needs a segmenter.
"""

import re
from collections.abc import Sequence

import numpy as np

from bert_tf.tokenization import basic

JIEBA = "jieba"  # Value of --whole_word_segmenter.
_RUN = re.compile(f"[{basic.CHINESE}]+")


class Segmenter:
    """Finds the first character of each Chinese word.

    Raises:
        ImportError: jieba is not installed.
    """

    def __init__(self) -> None:
        try:
            import jieba
        except ImportError:
            raise ImportError(
                "--whole_word_segmenter=jieba needs jieba: pip install "
                "'bert_tf[chinese]'."
            ) from None
        # Otherwise it logs to standard error when it loads its dictionary.
        jieba.setLogLevel("WARNING")
        self._segment = jieba.cut

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
