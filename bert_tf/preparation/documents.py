"""Reads sources of every format as a stream of documents with paragraphs."""

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from bert_tf.preparation import archives
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import datasets
from bert_tf.preparation import input_units
from bert_tf.preparation import json_lines
from bert_tf.preparation import lines as lines_module
from bert_tf.preparation import options as preparation_options
from bert_tf.preparation import prose
from bert_tf.preparation import wiki40b
from bert_tf.preparation import wikipedia


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """A document. Read its paragraphs once, before you ask for the next document."""

    language: str  # Language code.
    paragraphs: Iterable[str]  # Without line breaks, with single spaces.
    is_split: bool = False  # True: each paragraph already is one sentence.


def read(
    source: input_units.Source,
    options: preparation_options.PrepareCorpusOptions,
    counts: counts_module.ReadCounts,
    on_bytes: Callable[[int], None],
) -> Iterator[Document]:
    """Yields the documents of a source; some may have no paragraphs.

    Args:
        source: what to read.
        options: the names of the fields of JSON objects and data sets.
        counts: receives the counts of omitted text.
        on_bytes: called with the number of bytes that were read since the last call.

    Raises:
        ImportError: a library for the format is not installed.
        OSError: the source cannot be read.
        ValueError: the source is damaged or a line is malformed; the message names the
            file and the line.
    """
    if source.format in ("json", "tfds"):
        rows = (
            datasets.read(source, options)
            if source.format == "tfds"
            else json_lines.read(source, counts, on_bytes)
        )
        for fields, place in rows:
            yield _from_fields(fields, place, source, options, counts)
    elif source.format == "wikipedia":
        for paragraphs in wikipedia.articles(source, counts, on_bytes):
            yield Document(language=source.language, paragraphs=paragraphs)
    else:
        with archives.open_stream(
            source.path, member=source.member, on_bytes=on_bytes
        ) as stream:
            lines = lines_module.read_lines(stream, source.name, counts)
            if source.format == "sentences":
                yield from _split_documents(lines, source.language)
            else:
                yield Document(
                    language=source.language, paragraphs=prose.paragraphs(lines, counts)
                )


def _split_documents(lines, language):
    lines = (" ".join(line.split()) for line in lines)
    for has_text, group in itertools.groupby(lines, key=bool):
        if has_text:
            yield Document(language=language, paragraphs=group, is_split=True)


def _from_fields(fields, place, source, options, counts):
    text = json_lines.field_text(fields, options.text_field, place)
    language = source.language
    if options.language_field:
        language = json_lines.field_text(fields, options.language_field, place)
    lines = wiki40b.running_text(text, counts).split("\n")
    paragraphs = filter(None, (" ".join(line.split()) for line in lines))
    return Document(language=language, paragraphs=paragraphs)
