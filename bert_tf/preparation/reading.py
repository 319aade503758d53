"""Reads plain and compressed files (gz, bz2, zst) block by block or line by line.

The first bytes of a file say how it is compressed, not its name.
"""

import bz2
import zlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

from bert_tf import file_errors
from bert_tf import files

_BLOCK_BYTES = 1 << 18
_MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "zst": b"\x28\xb5\x2f\xfd"}
_LONGEST_MAGIC = 4
_ZIP = b"PK\x03\x04"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def blocks(path: str, on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    """Yields the contents of a text file, unpacked while they are read.

    Args:
        path: the file. Concatenated gz, bz2 or zst streams are read as one.
        on_bytes: called with the number of bytes read from disk since the last call.

    Raises:
        ImportError: the file is zst, and zstandard is not installed.
        OSError: the file cannot be read.
        ValueError: the file is damaged, UTF-16, a zip archive, or not text.
    """
    is_checked = False
    for block in filter(None, _unpacked(path, on_bytes)):
        if not is_checked:
            _check_is_text(path, block)
            is_checked = True
        yield block


def lines(path: str, on_bytes: Callable[[int], None]) -> Iterator[str]:
    """Yields the lines of a file as text, without their line ends.

    Args, raises: as `blocks`; ValueError also if a line is not UTF-8.
    """
    return file_errors.decoded_lines(_byte_lines(blocks(path, on_bytes)), path)


def _byte_lines(data: Iterator[bytes]) -> Iterator[bytes]:
    parts: list[bytes] = []  # Of the line that has not ended.
    for block in data:
        first, *others = block.split(b"\n")
        parts.append(first)
        if others:
            yield b"".join(parts)
            *whole, rest = others
            yield from whole
            parts = [rest]
    if any(parts):
        yield b"".join(parts)


def _check_is_text(path: str, start: bytes) -> None:
    if start.startswith(_ZIP):
        raise ValueError(f"{path} is a zip archive; unpack it first.")
    if start.startswith(_UTF_16_MARKS):
        raise ValueError(
            f"{path}: the text is UTF-16, expected UTF-8; convert it, for example "
            "with iconv -f UTF-16 -t UTF-8."
        )
    if b"\0" in start:
        raise ValueError(
            f"{path}: contains NUL bytes; expected UTF-8 text, plain or compressed as "
            "gz, bz2 or zst."
        )


def _unpacked(path: str, on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    def read() -> bytes:
        data = file.read(_BLOCK_BYTES)
        on_bytes(len(data))
        return data

    with files.open_file(path, "rb") as file:
        packed = read()
        kinds = (kind for kind, magic in _MAGIC.items() if packed.startswith(magic))
        kind = next(kinds, None)
        if kind is None:
            while packed:
                yield packed
                packed = read()
            return
        stream = _decompressor(kind, path)
        while not stream.eof or packed.startswith(_MAGIC[kind]):
            if stream.eof:
                stream = _decompressor(kind, path)
            if not packed:
                raise ValueError(f"{path}: damaged or truncated; download it again.")
            try:
                yield stream.decompress(packed)
            except Exception as error:  # Each library has its own classes.
                raise ValueError(
                    f"{path}: damaged ({error}); download it again."
                ) from None
            # Bytes after the last stream are ignored, as gzip does.
            packed = stream.unused_data
            if len(packed) < _LONGEST_MAGIC:
                packed += read()


def _decompressor(kind: str, path: str) -> Any:
    """Returns an object that unpacks one stream."""
    if kind == "gz":
        return zlib.decompressobj(wbits=31)
    if kind == "bz2":
        return bz2.BZ2Decompressor()
    try:
        import zstandard
    except ModuleNotFoundError:
        raise ImportError(
            f"{path}: reading .zst files needs zstandard, which is not installed; "
            "pip install 'bert_tf[corpus]'."
        ) from None
    return zstandard.ZstdDecompressor().decompressobj()
