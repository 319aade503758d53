"""Opens plain and compressed files (gz, bz2, zst), and reads their lines.

The first bytes of a file say how it is compressed, not its name.
"""

import bz2
import io
import logging
import zlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

from bert_tf import files
from bert_tf.preparation.inputs import ReadCounts

_LOG = logging.getLogger(__name__)
_BLOCK_BYTES = 1 << 18
_MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "zst": b"\x28\xb5\x2f\xfd"}
_ZIP = b"PK\x03\x04"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def open_binary(path: str, on_bytes: Callable[[int], None]) -> io.BufferedIOBase:
    """Opens a file whose bytes are unpacked while they are read.

    Args:
        path: the file. Concatenated gz, bz2 or zst streams are read as one.
        on_bytes: called with the number of bytes read from disk since the last call.

    Raises:
        ImportError: the file is zst, and zstandard is not installed.
        OSError: the file cannot be read.
        ValueError: the file is damaged, UTF-16, a zip archive, or not text. Reading may
            raise it, too.
    """
    file = io.BufferedReader(_UnpackedFile(path, on_bytes), _BLOCK_BYTES)
    start = file.peek()
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
    return file


def lines(
    path: str, counts: ReadCounts, on_bytes: Callable[[int], None]
) -> Iterator[str]:
    """Yields the lines of a file as text, without their line ends.

    Invalid UTF-8 is dropped, as `bytes.decode("utf-8", "ignore")` does. The dropped
    bytes are counted, and a warning names the first of them.

    Args, raises: as `open_binary`; `counts` receives the number of dropped bytes.
    """
    has_warned = False
    with open_binary(path, on_bytes) as file:
        for number, data in enumerate(file, start=1):
            try:
                line = data.decode("utf-8")
            except UnicodeDecodeError as error:
                line = data.decode("utf-8", "ignore")
                counts.invalid_bytes += len(data) - len(line.encode("utf-8"))
                if not has_warned:
                    _LOG.warning(
                        "%s:%d: not UTF-8 (byte 0x%02x); invalid bytes are dropped, "
                        "here and in the rest of the file.",
                        path,
                        number,
                        data[error.start],
                    )
                has_warned = True
            if number == 1:
                line = line.removeprefix("\ufeff")
            yield line.removesuffix("\n").removesuffix("\r")


class _UnpackedFile(io.RawIOBase):
    """The unpacked bytes of a file. Detects truncation in all formats."""

    def __init__(self, path: str, on_bytes: Callable[[int], None]):
        self._path = path
        self._on_bytes = on_bytes
        self._file = files.open_file(path, "rb")
        self._packed = self._file.read(_BLOCK_BYTES)
        on_bytes(len(self._packed))
        kinds = (k for k, magic in _MAGIC.items() if self._packed.startswith(magic))
        self._kind = next(kinds, "")
        self._stream = _decompressor(self._kind, path)
        self._data = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._data:
            if not self._packed:
                self._packed = self._file.read(_BLOCK_BYTES)
                self._on_bytes(len(self._packed))
            if self._stream is None or self._stream.eof:
                # Bytes after the last stream are ignored, as gzip does.
                if not self._packed.startswith(_MAGIC.get(self._kind, b"")):
                    return 0
                self._stream = _decompressor(self._kind, self._path)
            self._data = self._unpack()
            if not self._data and self._stream is None:
                return 0
        size = min(len(buffer), len(self._data))
        buffer[:size] = self._data[:size]
        self._data = self._data[size:]
        return size

    def _unpack(self) -> bytes:
        packed, self._packed = self._packed, b""
        if self._stream is None:
            return packed
        if not packed:
            raise ValueError(f"{self._path}: damaged or truncated; download it again.")
        try:
            data = self._stream.decompress(packed)
        except Exception as error:  # Each library has its own classes.
            raise ValueError(
                f"{self._path}: damaged ({error}); download it again."
            ) from None
        self._packed = self._stream.unused_data
        return data


def _decompressor(kind: str, path: str) -> Any:
    """Returns an object that unpacks one stream; None for uncompressed files."""
    if kind == "gz":
        return zlib.decompressobj(wbits=31)
    if kind == "bz2":
        return bz2.BZ2Decompressor()
    if kind == "":
        return None
    try:
        import zstandard
    except ModuleNotFoundError:
        raise ImportError(
            f"{path}: reading .zst files needs zstandard, which is not installed; "
            "pip install 'bert_tf[corpus]'."
        ) from None
    return zstandard.ZstdDecompressor().decompressobj()
