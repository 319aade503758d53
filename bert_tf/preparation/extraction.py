"""Writes the sentences of one unit of input as a part.

A part has one paragraph per line, whose sentences are separated by tabs, and a blank
line after each document. (Tabs do not occur in sentences: white space is normalized.)
A JSON file with the counts is written last: if it exists, the part is complete.
"""

import dataclasses
import json
import os
from collections.abc import Callable

from bert_tf import files
from bert_tf.preparation import documents
from bert_tf.preparation.inputs import ReadCounts
from bert_tf.preparation.inputs import Unit
from bert_tf.preparation.options import PrepareCorpusOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A unit to read."""

    unit: Unit
    options: PrepareCorpusOptions
    folder: str  # Where the part is written.

    @property
    def text_path(self) -> str:
        """The file with the paragraphs."""
        return os.path.join(self.folder, f"{self.unit.number:06d}.txt")

    @property
    def counts_path(self) -> str:
        """The file with the counts."""
        return os.path.join(self.folder, f"{self.unit.number:06d}.json")

    def counts(self) -> ReadCounts:
        """Returns the counts of a complete part."""
        return ReadCounts(**files.read_json(self.counts_path))


def extract(task: Task, on_bytes: Callable[[int], None]) -> None:
    """Writes a part, unless it is already complete.

    Args:
        task: what to read, and where to write it.
        on_bytes: called with the number of bytes that were read since the last call.

    Raises:
        ImportError, OSError, ValueError: see `documents.read`.
    """
    if files.exists(task.counts_path):
        on_bytes(task.unit.num_bytes)
        return
    counts = ReadCounts(bytes=task.unit.num_bytes)
    with files.complete_or_absent(task.text_path, "wb") as file:
        for source in task.unit.sources:
            for document in documents.read(source, task.options, counts, on_bytes):
                num_paragraphs = 0
                for sentences in filter(None, document):
                    file.write(("\t".join(sentences) + "\n").encode())
                    num_paragraphs += 1
                if num_paragraphs:
                    file.write(b"\n")
                counts.documents += num_paragraphs > 0
                counts.paragraphs += num_paragraphs
                counts.empty_documents += num_paragraphs == 0
    with files.complete_or_absent(task.counts_path) as file:
        json.dump(dataclasses.asdict(counts), file)
