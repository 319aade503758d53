"""Sources -> documents of paragraphs, as a stream."""

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from bert_tf.preparation import archives
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import datasets
from bert_tf.preparation import json_lines
from bert_tf.preparation import lines as lines_module
from bert_tf.preparation import options as preparation_options
from bert_tf.preparation import prose
from bert_tf.preparation import sources as sources_module
from bert_tf.preparation import wiki40b
from bert_tf.preparation import wikipedia


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """A document; its paragraphs can be read once, before the next document."""

    language: str  # Its code.
    paragraphs: Iterable[str]  # Without line ends, single spaces.
    is_split: bool = False  # True: each paragraph is a sentence as it stands.


def read(
    source: sources_module.Source,
    options: preparation_options.PrepareCorpusOptions,
    counts: counts_module.ReadCounts,
    on_bytes: Callable[[int], None],
) -> Iterator[Document]:
    """Yields the documents of a source; some may have no paragraphs.

    Args:
        source: what to read.
        options: the names of the fields are looked up there.
        counts: what is left out is added to it.
        on_bytes: told how many more bytes of the file were read.

    Raises:
        ImportError: a library for the format is not installed.
        OSError: the source cannot be read.
        ValueError: it is damaged, or a line is not what it should be; the message
            names file and line.
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
                paragraphs = prose.paragraphs(lines, counts)
                yield Document(language=source.language, paragraphs=paragraphs)


def _split_documents(lines, language):
    lines = (" ".join(line.split()) for line in lines)
    for has_text, group in itertools.groupby(lines, key=bool):
        if has_text:
            yield Document(language=language, paragraphs=group, is_split=True)


def _from_fields(fields, place, source, options, counts):
    text = json_lines.text_of(fields, options.text_field, place)
    language = source.language
    if options.language_field:
        language = json_lines.text_of(fields, options.language_field, place)
    lines = wiki40b.running_text(text, counts).split("\n")
    paragraphs = filter(None, (" ".join(line.split()) for line in lines))
    return Document(language=language, paragraphs=paragraphs)
