"""Dumps of Wikipedia -> articles as running text, a page in memory at a time.

A dump of 20 GB is read in parts by many processes: a part has the pages whose tag
begins in it. In a packed dump that has many bz2 streams one after another, as
`-multistream` dumps do, a part has the streams that begin in it.
"""

import bz2
import re
from collections.abc import Callable
from collections.abc import Iterator
from xml.etree import ElementTree

from bert_tf import files
from bert_tf.preparation import archives
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import sources as sources_module
from bert_tf.preparation import wikitext

_BLOCK_BYTES = 1 << 18
_BZ2_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_BZ2_START_BYTES = 10
_PAGE, _PAGE_END = b"<page>", b"</page>"
_LONGEST_PAGE = 1 << 28  # Bytes; a dump of one revision a page has a few MB.


def articles(
    source: sources_module.Source,
    counts: counts_module.ReadCounts,
    on_bytes: Callable[[int], None],
) -> Iterator[list[str]]:
    """Yields the paragraphs of every article of a dump, or of a part of one.

    Redirects, and pages outside the name space of articles, are left out and counted.

    Args:
        source: the dump.
        counts: what is left out is added to it.
        on_bytes: told how many more bytes of the file were read.

    Raises:
        ImportError: mwparserfromhell is not installed.
        OSError: the dump cannot be read.
        ValueError: it is damaged, or no dump.
    """
    for page in _pages(_chunks(source, on_bytes), source.name):
        text = _article_text(page, source.name)
        if text is None:
            counts.skipped_pages += 1
        else:
            yield wikitext.paragraphs(text, counts)


def _article_text(page, name):
    """Returns a page's wiki text, or None for what is no article."""
    try:
        root = ElementTree.fromstring(page)
    except ElementTree.ParseError as error:
        start = page[:200].decode("utf-8", "ignore")
        raise ValueError(
            f"{name}: a page is no XML ({error}); it begins {start!r}."
        ) from None
    if root.findtext("ns", "0").strip() != "0" or root.find("redirect") is not None:
        return None
    revision = root.findall("revision")[-1:]  # The dump's last one.
    if not revision or revision[0].findtext("model", "wikitext") != "wikitext":
        return None
    return revision[0].findtext("text", "")


def _pages(chunks, name) -> Iterator[bytes]:
    """Yields `<page>...</page>`, those that begin in what is the source's own.

    Args:
        chunks: (bytes, whether they are the source's own).
    """
    held, num_owned = b"", 0  # The first bytes of `held` that are our own.
    for data, is_owned in chunks:
        held += data
        num_owned += len(data) * is_owned
        place = 0
        while True:
            start = held.find(_PAGE, place)
            if start < 0:
                # A tag may be cut in two here.
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
                f"{name}: a page of more than {_LONGEST_PAGE >> 20} MB; expected a "
                "dump with one revision a page (-pages-articles)."
            )
    if held.startswith(_PAGE) and num_owned:
        raise ValueError(f"{name}: the dump ends within a page; fetch it again.")


def _chunks(source, on_bytes):
    """Yields (bytes of XML, whether they are the source's own)."""
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
        # As with bz2.open, what follows the last stream is let be.
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
    """Returns the first byte of the first stream that begins in a part, or None."""
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
