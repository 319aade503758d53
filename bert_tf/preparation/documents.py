"""Reads sources of every format as documents of paragraphs of sentences."""

import collections
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from bert_tf import json_values
from bert_tf.data import sentences
from bert_tf.data import tables
from bert_tf.preparation import inputs
from bert_tf.preparation import prose
from bert_tf.preparation import reading
from bert_tf.preparation import wikitext
from bert_tf.preparation.options import PrepareCorpusOptions


def read(
    source: inputs.Source,
    options: PrepareCorpusOptions,
    counts: collections.Counter[str],
    on_bytes: Callable[[int], None],
) -> Iterator[Iterable[list[str]]]:
    """Yields documents, each as its paragraphs, which are lists of sentences.

    A document may have no paragraphs. Read its paragraphs before the next document.

    Args:
        source: what to read.
        options: the language, and the name of the field with the text.
        counts: receives the counts of omitted text.
        on_bytes: called with the number of bytes that were read since the last call.

    Raises:
        ImportError: a library for the format is not installed.
        OSError: the source cannot be read.
        ValueError: the source is damaged or a record is malformed; the message names
            the file and the line.
    """
    if source.format == "wikipedia":
        yield from _split(_wikipedia(source.path, counts, on_bytes), options)
        return
    if source.format == "table":
        rows = tables.read_table(source.path, [options.text_field])
        texts = (row.cells[options.text_field] for row in rows)
        yield from _split(map(_paragraphs, texts), options)
        on_bytes(source.num_bytes)
        return
    lines = reading.lines(source.path, on_bytes)
    if source.format == "sentences":
        yield from _sentences(lines)
    elif source.format == "json":
        documents = _json_lines(lines, source.path, options.text_field)
        yield from _split(documents, options)
    else:
        yield from _split([prose.paragraphs(lines, counts)], options)


def _split(
    documents: Iterable[Iterable[str]], options: PrepareCorpusOptions
) -> Iterator[Iterable[list[str]]]:
    for paragraphs in documents:
        yield (sentences.split(text, options.language) for text in paragraphs)


def _sentences(lines: Iterable[str]) -> Iterator[Iterable[list[str]]]:
    lines = (" ".join(line.split()) for line in lines)
    for has_text, document in itertools.groupby(lines, key=bool):
        if has_text:
            yield ([line] for line in document)


def _json_lines(lines: Iterable[str], path: str, field: str) -> Iterator[Iterable[str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            fields = json_values.parse(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{place}: invalid JSON ({error}); expected one object per line."
            ) from None
        if not isinstance(fields, dict):
            raise ValueError(
                f"{place}: expected one JSON object per line, got {_kind(fields)}."
            )
        yield _paragraphs(_field_text(fields, field, place))


def _paragraphs(text: str) -> Iterator[str]:
    """Returns the lines of a text that are not blank, with single spaces."""
    return filter(None, (" ".join(line.split()) for line in text.split("\n")))


def _field_text(fields: dict, name: str, place: str) -> str:
    """Returns the text in a field; dots in the name lead into nested objects."""
    value: Any = fields
    for key in [name] if name in fields else name.split("."):
        if not isinstance(value, dict) or key not in value:
            known = ", ".join(map(str, fields)) or "none"
            raise ValueError(
                f"{place}: there is no field {name!r}; the fields are {known}."
            )
        value = value[key]
    if not isinstance(value, str):
        raise ValueError(
            f"{place}: expected text in the field {name!r}, got {_kind(value)}."
        )
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", type(None): "null"}
    return names.get(type(value), f"{value!r:.40}")


def _wikipedia(
    path: str, counts: collections.Counter[str], on_bytes: Callable[[int], None]
) -> Iterator[Iterable[str]]:
    """Yields articles. Redirects and pages that are not articles are only counted."""
    parser: Any = ElementTree.XMLPullParser(("start", "end"))
    dump: Any = None
    try:
        for block in reading.blocks(path, on_bytes):
            parser.feed(block)
            for event, page in parser.read_events():
                dump = page if dump is None else dump
                if event != "end" or page.tag.rpartition("}")[2] != "page":
                    continue
                text = _article(page)
                dump.clear()  # Only the pages of one block are held in memory.
                if text is None:
                    counts["skipped_pages"] += 1
                else:
                    yield wikitext.paragraphs(text, counts)
        parser.close()
    except ElementTree.ParseError as error:
        raise ValueError(
            f"{path}: not a complete Wikipedia dump ({error}); download it again."
        ) from None


def _article(page: ElementTree.Element) -> str | None:
    """Returns the wikitext of a page, or None if it is not an article."""
    is_article = page.findtext("{*}ns", "0").strip() == "0"
    revision = page.findall("{*}revision")[-1:]  # The latest in the dump.
    if not is_article or not revision or page.find("{*}redirect") is not None:
        return None
    if revision[0].findtext("{*}model", "wikitext") != "wikitext":
        return None
    return revision[0].findtext("{*}text", "")
