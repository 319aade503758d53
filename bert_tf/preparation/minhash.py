"""MinHash signatures: the share of equal values estimates how similar documents are.

A document is represented by the set of its runs of five words. The probability that two
sets have the same smallest hash is their Jaccard similarity: the size of the
intersection over the size of the union. A signature contains the smallest values of 128
hash functions (Broder 1997). This is our own NumPy code instead of a library, because
it works on files of signatures instead of keeping all documents in memory, and because
it gives the same result in every process.
"""

import re
import zlib

import numpy as np

NUM_VALUES = 128
_RUN = 5  # Words.
_HELD = 1 << 14  # Words hashed at once.
# In scripts without spaces between words, every character counts as a word.
_WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+"
)
_RANDOM = np.random.Generator(np.random.PCG64(20181011))
_FACTORS = _RANDOM.integers(1, 2**63, NUM_VALUES, np.uint64) * np.uint64(2) + np.uint64(
    1
)
_OFFSETS = _RANDOM.integers(0, 2**63, NUM_VALUES, np.uint64)
_ORDER = _RANDOM.integers(1, 2**63, _RUN, np.uint64) * np.uint64(2) + np.uint64(1)


class Signature:
    """Computes the signatures of documents, one after the other."""

    def __init__(self) -> None:
        self._start()

    def add(self, text: str) -> None:
        """Adds a part of the document."""
        words = _WORD.findall(text.lower())
        self._words += [zlib.crc32(word.encode("utf-8")) for word in words]
        if len(self._words) >= _HELD:
            self._use_words()

    def finish(self) -> np.ndarray:
        """Returns the signature, uint32 [128], and starts the next document.

        A document of fewer than five words counts as one run.
        """
        if len(self._words) < _RUN and not self._has_run:
            self._words += [0] * (_RUN - len(self._words))
        self._use_words()
        result = self._smallest
        self._start()
        return result

    def _start(self):
        self._words: list[int] = []
        self._has_run = False
        self._smallest = np.full(NUM_VALUES, 2**32 - 1, np.uint32)

    def _use_words(self):
        words = np.array(self._words, np.uint64)
        if len(words) < _RUN:
            return
        runs = np.lib.stride_tricks.sliding_window_view(words, _RUN) @ _ORDER
        runs ^= runs >> np.uint64(29)
        for some in np.array_split(np.unique(runs), len(runs) // 512 + 1):
            # Multiply-shift: the upper half of the product is the hash.
            hashes = some[:, None] * _FACTORS + _OFFSETS
            smallest = (hashes >> np.uint64(32)).min(axis=0, initial=2**32 - 1)
            self._smallest = np.minimum(self._smallest, smallest.astype(np.uint32))
        self._has_run = True
        self._words = self._words[1 - _RUN :]
