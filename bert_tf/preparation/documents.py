"""Reads sources of every format as documents of paragraphs of sentences."""

import collections
import itertools
import json
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from bert_tf.data import named_datasets
from bert_tf.data import sentences
from bert_tf.preparation import inputs
from bert_tf.preparation import prose
from bert_tf.preparation import reading
from bert_tf.preparation import wikitext
from bert_tf.preparation.options import PrepareCorpusOptions

# In wiki40b, an article is one string with the lines _START_ARTICLE_, _START_SECTION_
# and _START_PARAGRAPH_, each followed by a title or by text (Guo et al. 2020).
_WIKI40B_MARK = re.compile(r"_START_(ARTICLE|SECTION|PARAGRAPH)_")
_WIKI40B_LINE_END = "_NEWLINE_"


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
    if source.format == "tfds":
        yield from _split(_dataset(source, options, counts), options)
        return
    if source.format == "wikipedia":
        yield from _split(_wikipedia(source.path, counts, on_bytes), options)
        return
    lines = reading.lines(source.path, counts, on_bytes)
    if source.format == "sentences":
        yield from _sentences(lines)
    elif source.format == "json":
        documents = _json_lines(lines, source.path, options.text_field, counts)
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


def _json_lines(
    lines: Iterable[str], path: str, field: str, counts: collections.Counter[str]
) -> Iterator[Iterable[str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{place}: invalid JSON ({error}); expected one object per line."
            ) from None
        if not isinstance(fields, dict):
            raise ValueError(
                f"{place}: expected one JSON object per line, got {_kind(fields)}."
            )
        yield _paragraphs(_field_text(fields, field, place), counts)


def _dataset(
    source: inputs.Source,
    options: PrepareCorpusOptions,
    counts: collections.Counter[str],
) -> Iterator[Iterable[str]]:
    data = named_datasets.open_data_set(source.path, None)
    start, end = source.examples
    examples = data.records(f"{options.tfds_split}[{start}:{end}]")
    for number, features in enumerate(examples, start=start):
        place = f"{source.path}, {options.tfds_split}: example {number}"
        yield _paragraphs(_field_text(features, options.text_field, place), counts)


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


def _paragraphs(text: str, counts: collections.Counter[str]) -> Iterator[str]:
    """Yields the lines of a text, or the lines of a wiki40b article's paragraphs."""
    before, *marked = _WIKI40B_MARK.split(text)
    if marked:
        contents = [before]
        for kind, content in zip(marked[::2], marked[1::2], strict=True):
            if kind == "PARAGRAPH":
                contents.append(content)
            else:
                counts["headings"] += bool(content.strip())
        text = "\n".join(contents).replace(_WIKI40B_LINE_END, "\n")
    return filter(None, (" ".join(line.split()) for line in text.split("\n")))


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
