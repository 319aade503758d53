"""Reads sources of every format as documents of paragraphs of sentences.

No other module imports sentencex. Decision 16 compares it with other libraries.
"""

import codecs
import collections
import contextlib
import itertools
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree

from bert_tf import file_errors
from bert_tf import files
from bert_tf import machine
from bert_tf.data import tables
from bert_tf.preparation import inputs
from bert_tf.preparation import prose
from bert_tf.preparation import wikitext
from bert_tf.preparation.options import PrepareCorpusOptions

# How zip archives start, and files that zstd or xz compressed.
_ARCHIVE_STARTS = (b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# sentencex never splits text in quotation marks, so that ten spoken sentences would be
# one. `split_sentences` therefore applies it again inside the marks. A single mark may
# be an apostrophe: a closing one must follow punctuation.
_QUOTED = re.compile(
    r'"([^"]+)"|“([^“”]+)”|„([^„“]+)“|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』'
    r"|‘([^‘]+?[.,!?;:—-])’(?!\w)|(?<!\w)'(?=\w)(.+?[.,!?;:—-])'(?!\w)"
)
# An opening mark that sentencex has left at the end of the previous sentence.
_STRAY_MARK = re.compile(r"\s[\"“„«'‘]\s*$")


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
        texts = (row.cells[options.text_field].split("\n") for row in rows)
        # Each line that is not blank is a paragraph, with single spaces.
        spaced = ((" ".join(line.split()) for line in text) for text in texts)
        yield from _split((filter(None, one) for one in spaced), options)
        on_bytes(source.num_bytes)
        return
    with _opened(source.path, on_bytes) as stream:
        lines = file_errors.decoded_lines(stream, source.path)
        yield from _split([prose.paragraphs(lines, counts)], options)


@contextlib.contextmanager
def _opened(path: str, on_bytes: Callable[[int], None]) -> Iterator[IO[bytes]]:
    """Opens a text file, compressed or not, for reading."""
    with (
        files.open_file(path, "rb") as file,
        file_errors.unpacked(file, path, on_bytes) as stream,
    ):
        start = stream.peek()
        is_utf_16 = start.startswith(_UTF_16_MARKS)  # Which `decoded_lines` refuses.
        if start.startswith(_ARCHIVE_STARTS) or (b"\0" in start and not is_utf_16):
            raise ValueError(
                f"{path} is an archive or has NUL bytes; expected UTF-8 text, plain or "
                "compressed with gzip or bzip2. Unpack other formats first."
            )
        yield stream


def _split(
    documents: Iterable[Iterable[str]], options: PrepareCorpusOptions
) -> Iterator[Iterable[list[str]]]:
    for paragraphs in documents:
        yield (split_sentences(text, options.language) for text in paragraphs)


def _wikipedia(
    path: str, counts: collections.Counter[str], on_bytes: Callable[[int], None]
) -> Iterator[Iterable[str]]:
    """Yields articles. Redirects and pages that are not articles are only counted."""
    dump: ElementTree.Element | None = None
    with _opened(path, on_bytes) as stream:
        try:
            for event, page in ElementTree.iterparse(stream, ("start", "end")):
                dump = page if dump is None else dump
                if event != "end" or page.tag.rpartition("}")[2] != "page":
                    continue
                text = _article(page)
                dump.clear()  # Only the pages of one block are held in memory.
                if text is None:
                    counts["skipped_pages"] += 1
                else:
                    yield wikitext.paragraphs(text, counts)
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


def split_sentences(text: str, language: str) -> list[str]:
    """Returns the sentences of a paragraph without line ends, in order, none empty.

    A language has a code such as "en", "zh" or "pt-BR". An unknown code gets the rules
    of the nearest known one.

    Raises:
        ImportError: sentencex is not installed.

    >>> split_sentences('"Yes. I am here. Why?" she said. Oh.', "en")
    ['"Yes.', 'I am here.', 'Why?" she said.', 'Oh.']
    """
    library = machine.package(
        "sentencex", extra="corpus", needed_for="Splitting sentences"
    )
    segment = library.segment
    cuts = _boundaries(segment(language, text))
    for match in _QUOTED.finditer(text):
        start, end = match.span(match.lastindex or 0)
        inner = _boundaries(segment(language, text[start:end]))
        cuts += [start + cut for cut in inner if start + cut < end]
    if len(cuts) > 1:
        cuts = sorted({_before_stray_mark(text, cut) for cut in cuts})
    parts = (text[a:b].strip() for a, b in itertools.pairwise([0, *cuts, len(text)]))
    return [part for part in parts if part]


def _boundaries(pieces):
    """Returns the offset of the end of each piece."""
    return list(itertools.accumulate(map(len, pieces)))


def _before_stray_mark(text, cut):
    if cut < len(text) and (stray := _STRAY_MARK.search(text[max(0, cut - 3) : cut])):
        return cut - (min(3, cut) - stray.start())
    return cut
