"""Reads Wikipedia dumps as articles of running text, with one page in memory at a time.

Many processes read a dump of 20 GB in parts. A part consists of the pages whose opening
tag begins in it. Dumps compressed as many bz2 streams (`-multistream` dumps, or files
by pbzip2) are read the same way: a part consists of the streams that begin in it.
"""

import bz2
import re
from collections.abc import Callable
from collections.abc import Iterator
from xml.etree import ElementTree

from bert_tf import files
from bert_tf.preparation import archives
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import input_units
from bert_tf.preparation import wikitext

_BLOCK_BYTES = 1 << 18
_BZ2_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_BZ2_START_BYTES = 10
_PAGE, _PAGE_END = b"<page>", b"</page>"
_LONGEST_PAGE = 1 << 28  # Bytes; with one revision, a page has a few MB at most.


def articles(
    source: input_units.Source,
    counts: counts_module.ReadCounts,
    on_bytes: Callable[[int], None],
) -> Iterator[list[str]]:
    """Yields the paragraphs of each article in a dump or in a part of a dump.

    Redirects and pages outside the article namespace are left out and counted.

    Args:
        source: the dump.
        counts: receives the counts of omitted text.
        on_bytes: called with the number of bytes that were read since the last call.

    Raises:
        ImportError: mwparserfromhell is not installed.
        OSError: the dump cannot be read.
        ValueError: the file is damaged or not a dump.
    """
    for page in _pages(_chunks(source, on_bytes), source.name):
        text = _article_text(page, source.name)
        if text is None:
            counts.skipped_pages += 1
        else:
            yield wikitext.paragraphs(text, counts)


def _article_text(page, name):
    """Returns the wikitext of a page, or None if it is not an article."""
    try:
        root = ElementTree.fromstring(page)
    except ElementTree.ParseError as error:
        start = page[:200].decode("utf-8", "ignore")
        raise ValueError(
            f"{name}: a page is not valid XML ({error}); it begins with {start!r}."
        ) from None
    if root.findtext("ns", "0").strip() != "0" or root.find("redirect") is not None:
        return None
    revision = root.findall("revision")[-1:]  # The latest in the dump.
    if not revision or revision[0].findtext("model", "wikitext") != "wikitext":
        return None
    return revision[0].findtext("text", "")


def _pages(chunks, name) -> Iterator[bytes]:
    """Yields the pages (`<page>...</page>`) that begin in the source's own part.

    Args:
        chunks: pairs of (bytes, whether they belong to the source's part).
    """
    held, num_owned = b"", 0  # The first `num_owned` bytes of `held` are in the part.
    for data, is_owned in chunks:
        held += data
        num_owned += len(data) * is_owned
        place = 0
        while True:
            start = held.find(_PAGE, place)
            if start < 0:
                # The end of `held` may be the beginning of a tag.
                place = max(place, len(held) - len(_PAGE) + 1)
                break
            if start >= num_owned:
                return
            end = held.find(_PAGE_END, start)
            if end < 0:
                place = start
                break
            place = end + len(_PAGE_END)
            yield held[start:place]
        held, num_owned = held[place:], num_owned - place
        if num_owned <= 0 and not is_owned:
            return
        num_owned = max(num_owned, 0)
        if len(held) > _LONGEST_PAGE:
            raise ValueError(
                f"{name}: a page is larger than {_LONGEST_PAGE >> 20} MB; expected a "
                "dump with one revision per page (-pages-articles)."
            )
    if held.startswith(_PAGE) and num_owned:
        raise ValueError(f"{name}: the dump ends within a page; download it again.")


def _chunks(source, on_bytes):
    """Yields pairs of (bytes of XML, whether they belong to the source's part)."""
    if archives.packing(source.path) == "bz2":
        yield from _bz2_chunks(source, on_bytes)
        return
    with archives.open_stream(
        source.path, member=source.member, start=source.start, on_bytes=on_bytes
    ) as stream:
        left = None if source.end is None else source.end - source.start
        while left is None or left > 0:
            data = stream.read(
                _BLOCK_BYTES if left is None else min(left, _BLOCK_BYTES)
            )
            if not data:
                return
            left = None if left is None else left - len(data)
            yield data, True
        while data := stream.read(_BLOCK_BYTES):
            yield data, False


def _bz2_chunks(source, on_bytes):
    end = files.size(source.path) if source.end is None else source.end
    with (
        archives.clear_damage(source.path),
        files.open_file(source.path, "rb") as file,
    ):
        position = _next_stream(file, source.start, end, on_bytes)
        if position is None:
            return
        file.seek(position)
        packed = file.read(_BLOCK_BYTES)
        # Like bz2.open, this ignores whatever follows the last stream.
        while packed.startswith(b"BZh"):
            is_owned = position < end
            unpacker = bz2.BZ2Decompressor()
            while not unpacker.eof:
                packed = packed or file.read(_BLOCK_BYTES)
                if not packed:
                    raise EOFError
                position += len(packed)
                on_bytes(len(packed) * is_owned)
                yield unpacker.decompress(packed), is_owned
                packed = b""
            position -= len(unpacker.unused_data)
            packed = unpacker.unused_data
            if len(packed) < _BZ2_START_BYTES:
                packed += file.read(_BLOCK_BYTES)


def _next_stream(file, start, end, on_bytes):
    """Returns the offset of the first stream that begins in a part, or None."""
    file.seek(start)
    position, held = start, b""
    while position < end:
        data = file.read(_BLOCK_BYTES)
        if not data:
            return None
        held += data
        match = _BZ2_STREAM.search(held)
        if match:
            found = position + match.start()
            return found if found < end else None
        keep = min(len(held), _BZ2_START_BYTES - 1)
        on_bytes(len(held) - keep)
        position += len(held) - keep
        held = held[len(held) - keep :]
    return None
