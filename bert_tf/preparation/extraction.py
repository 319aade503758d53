"""Reads one unit of input and writes it as a part: the work of one reading task."""

import dataclasses
from collections.abc import Callable

from bert_tf.data import sentences
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import documents
from bert_tf.preparation import input_units
from bert_tf.preparation import options as preparation_options
from bert_tf.preparation import parts as parts_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A unit to read."""

    unit: input_units.Unit
    options: preparation_options.PrepareCorpusOptions
    folder: str  # Where the part is written.


def extract(task: Task, on_bytes: Callable[[int], None]) -> None:
    """Writes the sentences of a unit as a part, unless the part is already complete.

    Args:
        task: what to read, and where to write it.
        on_bytes: called with the number of bytes that were read since the last call.

    Raises:
        ImportError, OSError, ValueError: see `documents.read`.
    """
    stem = parts_module.stem(task.folder, task.unit.number)
    if parts_module.load(stem) is not None:
        on_bytes(task.unit.num_bytes)
        return
    counts = counts_module.ReadCounts(bytes=task.unit.num_bytes)
    with parts_module.Writer(stem, counts, task.options.near_duplicates) as writer:
        for source in task.unit.sources:
            for document in documents.read(source, task.options, counts, on_bytes):
                writer.start_document(document.language)
                for paragraph in document.paragraphs:
                    writer.add_paragraph(_sentences(paragraph, document))
                writer.end_document()


def _sentences(paragraph, document):
    if document.is_split:
        return [paragraph]
    return sentences.split(paragraph, document.language)
