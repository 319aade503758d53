"""Statistics of a text that can be summed: lengths of sentences, letters by script."""

import io
import typing
import unicodedata
import zipfile

import numpy as np

_NAMES = ("words", "characters", "sentences", "code_points")
_LONGEST = 1 << 16  # Longer sentences and documents are counted as this long.
_NUM_CODE_POINTS = 0x110000
_HELD_BYTES = 1 << 21  # Bytes counted at once.
# First words of Unicode character names that do not name the script themselves.
_SCRIPTS = {"CJK": "Han", "IDEOGRAPHIC": "Han", "FULLWIDTH": "Latin", "MODIFIER": ""}


class Statistics:
    """Statistics of a text, or the sum of several.

    `words` and `characters` are histograms of sentences by their number of words
    (separated by spaces) and characters. `sentences` is a histogram of documents by
    their number of sentences.
    """

    def __init__(self) -> None:
        self.words = np.zeros(_LONGEST + 1, np.int64)
        self.characters = np.zeros(_LONGEST + 1, np.int64)
        self.sentences = np.zeros(_LONGEST + 1, np.int64)
        self.code_points = np.zeros(_NUM_CODE_POINTS, np.int64)
        self._num_sentences = 0
        self._held: list[bytes] = []
        self._num_held = 0

    def add(self, data: bytes) -> None:
        """Adds whole lines of UTF-8, one sentence each, to the current document."""
        self._num_sentences += data.count(b"\n")
        self._held.append(data)
        self._num_held += len(data)
        if self._num_held > _HELD_BYTES:
            self._count_held()

    def end_document(self) -> None:
        """Ends the current document."""
        self.sentences[min(self._num_sentences, _LONGEST)] += 1
        self._num_sentences = 0

    def save(self, file: typing.IO[bytes]) -> None:
        """Writes the statistics to an open binary file."""
        self._count_held()
        saved = io.BytesIO()  # np.savez needs a seekable file; remote files are not.
        np.savez_compressed(saved, **{name: getattr(self, name) for name in _NAMES})
        file.write(saved.getvalue())

    def _count_held(self):
        if not self._held:
            return
        data = b"".join(self._held)
        self._held, self._num_held = [], 0
        code_points = np.frombuffer(data.decode("utf-8").encode("utf-32-le"), "<u4")
        self.code_points += np.bincount(code_points, minlength=_NUM_CODE_POINTS)
        ends = np.flatnonzero(code_points == ord("\n"))
        spaces = np.cumsum(code_points == ord(" "))
        starts = np.concatenate([[0], ends[:-1] + 1])
        words = np.diff(spaces[ends], prepend=0) + 1
        for total, values in ((self.words, words), (self.characters, ends - starts)):
            values = np.minimum(values, _LONGEST)
            total += np.bincount(values, minlength=_LONGEST + 1)

    def add_saved(self, file: typing.IO[bytes]) -> None:
        """Adds statistics that `save` wrote.

        Raises:
            ValueError: the file is damaged.
        """
        try:
            with np.load(io.BytesIO(file.read())) as saved:
                for name in _NAMES:
                    getattr(self, name)[:] += saved[name]
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            raise ValueError("not the statistics of a corpus file") from None

    def scripts(self) -> dict[str, int]:
        """Returns {script: number of its letters}, the most frequent script first."""
        result: dict[str, int] = {}
        for code_point in np.flatnonzero(self.code_points):
            character = chr(code_point)
            if not character.isalpha():
                continue
            word = unicodedata.name(character, "OTHER").split()[0].split("-")[0]
            script = _SCRIPTS.get(word, word.capitalize())
            if script:
                count = int(self.code_points[code_point])
                result[script] = result.get(script, 0) + count
        return dict(sorted(result.items(), key=lambda item: (-item[1], item[0])))


def distribution(counts: np.ndarray) -> dict[str, float]:
    """Returns mean, percentiles and maximum of a histogram.

    Args:
        counts: int [N], how often each value n occurs.
    """
    total = int(counts.sum())
    if not total:
        return {}
    ends = np.cumsum(counts)
    result = {"mean": round(float(counts @ np.arange(len(counts)) / total), 2)}
    for percent in (5, 25, 50, 75, 95, 99):
        wanted = max(1, -(-total * percent // 100))
        result[f"p{percent}"] = int(np.searchsorted(ends, wanted))
    result["max"] = int(np.flatnonzero(counts)[-1])
    return result
