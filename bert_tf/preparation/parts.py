"""Parts: the files that hold what was read from a unit of input.

`N.txt` has one sentence per line. `N.paragraphs` and `N.documents` are tables of
records. `N.signatures` is written only if near duplicates are removed. `N.json`, with
the counts, is written last: if it exists, the part is complete.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import typing
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import minhash

PARAGRAPH = np.dtype([("bytes", "<u4"), ("hash", "<u8")])
DOCUMENT = np.dtype(
    [
        ("paragraphs", "<u4"),
        ("bytes", "<u8"),
        ("characters", "<u8"),
        ("language", "<u4"),
    ]
)
_SUFFIXES = (".txt", ".paragraphs", ".documents", ".signatures")
_FLUSHED = 4096  # Records held in memory before they are written.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A complete part."""

    stem: str  # Path of its files without suffix.
    languages: tuple[str, ...]  # Codes, indexed by the table of documents.
    counts: counts_module.ReadCounts

    def documents(self) -> np.ndarray:
        """Returns the table of documents, `DOCUMENT` [D]."""
        return self._table(".documents", DOCUMENT, 0, None)

    def paragraphs(self, start: int = 0, count: int | None = None) -> np.ndarray:
        """Returns `count` or all rows of the table of paragraphs, `PARAGRAPH` [P]."""
        return self._table(".paragraphs", PARAGRAPH, start, count)

    def signatures(self) -> np.ndarray:
        """Returns the signatures of the documents, uint32 [D, 128]."""
        kind = np.dtype(("<u4", (minhash.NUM_VALUES,)))
        return self._table(".signatures", kind, 0, None)

    def open_text(self) -> typing.IO[bytes]:
        """Opens the file of sentences in binary mode."""
        return files.open_file(self.stem + ".txt", "rb")

    def _table(self, suffix, kind, start, count):
        with files.open_file(self.stem + suffix, "rb") as file:
            file.seek(start * kind.itemsize)
            data = file.read() if count is None else file.read(count * kind.itemsize)
        return np.frombuffer(data, kind)


def load(stem: str) -> Part | None:
    """Returns a part, or None if it is not complete.

    Raises:
        ValueError: the file with its counts is damaged.
    """
    path = stem + ".json"
    if not files.exists(path):
        return None
    advice = f"remove the folder {os.path.dirname(path)} to start again"
    saved = files.read_json(path, advice=advice)
    try:
        return Part(
            stem=stem,
            languages=tuple(saved["languages"]),
            counts=counts_module.ReadCounts(**saved["counts"]),
        )
    except (KeyError, TypeError):
        raise ValueError(f"{path} has no counts of a part; {advice}.") from None


class Writer:
    """Writes the files of a part. They appear when the `with` block succeeds.

    Args:
        stem: path of the files without suffix.
        counts: receives the counts of what is written; all counts are saved.
        has_signatures: whether near duplicates are removed.
    """

    def __init__(
        self, stem: str, counts: counts_module.ReadCounts, has_signatures: bool
    ):
        self._stem = stem
        self._counts = counts
        self._languages: dict[str, int] = {}
        self._signature = minhash.Signature() if has_signatures else None
        self._paragraphs: list[tuple[int, int]] = []
        self._document: list[int] = []  # The values of its row.

    def __enter__(self) -> "Writer":
        with contextlib.ExitStack() as stack:
            self._files = {
                suffix: stack.enter_context(
                    files.complete_or_absent(self._stem + suffix, "wb")
                )
                for suffix in _SUFFIXES
                if self._signature or suffix != ".signatures"
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self._flush()
        self._stack.__exit__(*error)
        if error[0] is None:
            saved = {
                "languages": list(self._languages),
                "counts": dataclasses.asdict(self._counts),
            }
            with files.complete_or_absent(self._stem + ".json") as file:
                json.dump(saved, file)

    def start_document(self, language: str) -> None:
        """Begins a document. A document without sentences is not written."""
        number = self._languages.setdefault(language, len(self._languages))
        self._document = [0, 0, 0, number]

    def add_paragraph(self, sentences: Sequence[str]) -> None:
        """Adds the sentences of a paragraph: not empty, and without line breaks."""
        if not sentences:
            return
        text = "\n".join(sentences)
        data = (text + "\n").encode("utf-8")
        digest = hashlib.blake2b(data, digest_size=8).digest()
        self._paragraphs.append((len(data), int.from_bytes(digest, "little")))
        self._files[".txt"].write(data)
        self._document[0] += 1
        self._document[1] += len(data)
        self._document[2] += len(text)
        if self._signature:
            self._signature.add(text)
        if len(self._paragraphs) >= _FLUSHED:
            self._flush()

    def end_document(self) -> None:
        """Ends the current document."""
        num_paragraphs = self._document[0]
        if num_paragraphs:
            self._counts.documents += 1
            self._counts.paragraphs += num_paragraphs
            row = np.array(tuple(self._document), DOCUMENT)
            self._files[".documents"].write(row.tobytes())
            if self._signature:
                values = self._signature.finish()
                self._files[".signatures"].write(values.astype("<u4").tobytes())
        else:
            self._counts.empty_documents += 1

    def _flush(self):
        rows = np.array(self._paragraphs, PARAGRAPH)
        self._files[".paragraphs"].write(rows.tobytes())
        self._paragraphs = []


def stem(folder: str, number: int) -> str:
    """Returns the path of a part's files without suffix."""
    return os.path.join(folder, f"{number:06d}")
