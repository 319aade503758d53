"""Reads the documents of text files, and cuts a large corpus into shards.

A corpus is the text of its files one after another, with one sentence per line and a
blank line between documents. As in the release, the end of a file does not end a
document.
"""

import dataclasses
import io
import itertools
import logging
import re
from collections.abc import Iterator
from collections.abc import Sequence

from bert_tf import files

_LOG = logging.getLogger(__name__)
_MEGABYTE = 1_000_000
_BLOCK_BYTES = 1 << 22  # Read at a time.
# A shard may end before its maximum size once it has this many documents to draw from.
_ENOUGH_DOCUMENTS = 16
# A small corpus is cut into 16, 8, 4 or 2 shards, so that all cores have work, as long
# as each shard has at least 1.5 MB. Shards larger than 8 MB would only need more
# memory.
_SHARDS_OF_A_SMALL_CORPUS = 16
_MIN_SHARD_MB = 1.5
_MAX_SHARD_MB = 8.0
_CUT = (
    "%s:%d: this document is larger than half a shard. It is cut here and at later "
    "lines, and its parts count as documents. Raise shard_mb, or separate documents by "
    "blank lines."
)
# Lines that str.strip() leaves empty, including white space beyond ASCII. They are
# matched after the end of a line, which is found much faster than the start of one.
_BLANK_LINES = re.compile(
    rb"\n(?:(?:[\t\v\f\r\x1c-\x1f ]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8"
    rb"\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80)*\n)+"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Span:
    """A run of whole lines of one file."""

    path: str
    start: int  # First byte.
    end: int  # Byte after the last one.
    first_line: int  # Number of the first line, from 1.
    # False: it continues the document of the span before.
    starts_document: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard:
    """A part of the corpus that is sampled independently."""

    spans: tuple[Span, ...]

    @property
    def num_bytes(self) -> int:
        """Number of bytes of text."""
        return sum(span.end - span.start for span in self.spans)


def read_documents(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yields the documents of files, in order, as lists of sentences, none empty.

    Raises:
        OSError: a file cannot be read.
        ValueError: a line is not UTF-8; the message has file and line.
    """
    spans = (Span(path=p, start=0, end=files.size(p), first_line=1) for p in paths)
    yield from read_shard(Shard(spans=tuple(spans)))


def check_utf8(paths: Sequence[str]) -> None:
    """Raises the errors of `read_documents`."""
    for path in paths:
        first_line = 1
        for _, block in _blocks(path):
            _decode(path, first_line, block)
            first_line += block.count(b"\n")


def read_shard(shard: Shard) -> Iterator[list[str]]:
    """Yields the documents of a shard, as `read_documents` does."""
    document: list[str] = []
    for span in shard.spans:
        if span.starts_document and document:
            yield document
            document = []
        for line in _lines(span):
            sentence = line.strip()
            if sentence:
                document.append(sentence)
            elif document:
                yield document
                document = []
    if document:
        yield document


def shards(
    paths: Sequence[str], shard_mb: float, *, target_mb: float | None = None
) -> list[Shard]:
    """Returns the shards of a corpus.

    A shard has at most `shard_mb` MB and is cut between documents. Every shard has at
    least two documents, so that a random next sentence can come from another one. To
    ensure this, a document larger than half a shard is cut between sentences, with a
    warning, and its parts count as documents; and a last shard of a single document is
    merged into the one before.

    Args:
        paths: the files, in order.
        shard_mb: maximum MB (10^6 bytes) of text in a shard.
        target_mb: size in MB at which a shard ends if it has at least 16 documents.
            None: shard_mb.

    Raises:
        OSError: a file cannot be read.
    """
    limit = int(shard_mb * _MEGABYTE)
    target = limit if target_mb is None else int(target_mb * _MEGABYTE)
    result: list[Shard] = []
    spans: list[Span] = []
    num_bytes = num_documents = 0
    for document in _document_spans(paths, limit // 2):
        size = sum(span.end - span.start for span in document)
        is_enough = num_documents >= _ENOUGH_DOCUMENTS and num_bytes + size > target
        if spans and (is_enough or num_bytes + size > limit):
            result.append(_shard(spans))
            spans, num_bytes, num_documents = [], 0, 0
        spans += document
        num_bytes += size
        num_documents += 1
    if result and num_documents == 1:
        spans = [*result.pop().spans, *spans]
    return [*result, _shard(spans)] if spans else []


def balanced_shards(paths: Sequence[str], shard_mb: float = 64.0) -> list[Shard]:
    """Returns `shards` of at most 8 MB; at least 16 of a corpus of more than 24 MB.

    Their number depends only on the text and on `shard_mb`, so that records do not
    depend on the number of workers.
    """
    megabytes = sum(files.size(path) for path in paths) / _MEGABYTE
    num_shards = _SHARDS_OF_A_SMALL_CORPUS
    while num_shards > 1 and megabytes / num_shards < _MIN_SHARD_MB:
        num_shards //= 2
    # 2 % more, so that a small remainder does not become a separate shard.
    target_mb = min(shard_mb, _MAX_SHARD_MB, 1.02 * megabytes / num_shards)
    return shards(paths, shard_mb, target_mb=target_mb)


def _shard(spans):
    """Returns a shard; adjacent spans of one file become one."""
    merged: list[Span] = []
    for span in spans:
        if merged and not span.starts_document:
            last = merged[-1]
            if (last.path, last.end) == (span.path, span.start):
                span = dataclasses.replace(merged.pop(), end=span.end)
        merged.append(span)
    return Shard(spans=tuple(merged))


def _document_spans(paths, most_bytes):
    """Yields a list of spans for each document, or for each part of a large one."""
    spans, num_bytes, has_text, has_warned = [], 0, False, False
    for piece, is_blank in _pieces(paths):
        if is_blank:
            # Blank lines belong to the preceding document, so that every byte is
            # assigned.
            spans.append(piece)
            if has_text:
                yield spans
                spans, num_bytes, has_text, has_warned = [], 0, False, False
            continue
        for part in _cut(piece, most_bytes - num_bytes, most_bytes):
            if part.starts_document and has_text:
                if not has_warned:
                    _LOG.warning(_CUT, part.path, part.first_line)
                yield spans
                spans, num_bytes, has_warned = [], 0, True
            spans.append(part)
            num_bytes += part.end - part.start
            has_text = True
    if has_text:
        yield spans


def _pieces(paths):
    """Yields (span, is_blank): text without blank lines, and runs of blank lines.

    The first blank line after text is a span of its own: it ends the document.
    """
    for path in paths:
        line = 1
        for start, block in _blocks(path):
            cuts = [0]
            for match in _BLANK_LINES.finditer(b"\n" + block):
                first, end = match.start(), match.end() - 1
                cuts += [first, block.index(b"\n", first) + 1, end]
            ends = [*cuts[1:], len(block)]
            # Text, its first blank line, the blank lines after that; and so on.
            kinds = itertools.cycle((False, True, True))
            for first, end, is_blank in zip(cuts, ends, kinds, strict=False):
                if first < end:
                    span = Span(
                        path=path,
                        start=start + first,
                        end=start + end,
                        first_line=line,
                    )
                    yield span, is_blank
                    line += block.count(b"\n", first, end)


def _cut(span, room, most_bytes):
    """Yields the span in parts of whole lines; the first one fits `room` if it can."""
    if span.end - span.start <= room:
        yield span
        return
    first, start, first_line = span.start, span.start, span.first_line
    line, used, starts_document = span.first_line, 0, False
    blocks = _blocks(span.path, span.start, span.end)
    for size in (len(line) for _, block in blocks for line in io.BytesIO(block)):
        if used + size > room and (used or room < most_bytes):
            if used:
                yield dataclasses.replace(
                    span,
                    start=first,
                    end=start,
                    first_line=first_line,
                    starts_document=starts_document,
                )
            first, first_line, used, starts_document = start, line, 0, True
            room = most_bytes
        start, line, used = start + size, line + 1, used + size
    yield dataclasses.replace(
        span,
        start=first,
        first_line=first_line,
        starts_document=starts_document,
    )


def _lines(span):
    """Yields a span's lines as text, without line ends."""
    first_line = span.first_line
    for _, block in _blocks(span.path, span.start, span.end):
        text = _decode(span.path, first_line, block)
        # Not splitlines(): it also splits at form feeds and U+2028.
        lines = text.removesuffix("\n").split("\n")
        yield from lines
        first_line += len(lines)


def _decode(path, first_line, block):
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        column = error.start - block.rfind(b"\n", 0, error.start)
        raise ValueError(
            f"{path}:{line}: not UTF-8 (byte {column} of the line is "
            f"0x{block[error.start]:02x}); convert the file to UTF-8."
        ) from None


def _blocks(path, start=0, end=None):
    """Yields (first byte, bytes): blocks of whole lines."""
    with files.open_file(path, "rb") as file:
        file.seek(start)
        position, rest = start, b""
        while True:
            wanted = _BLOCK_BYTES if end is None else end - position - len(rest)
            data = file.read(max(0, min(wanted, _BLOCK_BYTES)))
            if not data and not rest:
                return
            block = rest + data
            cut = block.rfind(b"\n") + 1 if data else len(block)
            block, rest = block[:cut], block[cut:]
            if block:
                yield position, block
            position += len(block)
            if not data:
                return
