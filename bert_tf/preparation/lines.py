"""Reads streams of bytes as lines of text."""

import functools
import logging
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf.preparation import archives
from bert_tf.preparation import counts as counts_module

_LOG = logging.getLogger(__name__)
_BLOCK_BYTES = 1 << 20
_LONGEST_LINE = 1 << 28  # Bytes; a file with longer lines is not text.
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_lines(
    stream: archives.ByteStream, name: str, counts: counts_module.ReadCounts
) -> Iterator[str]:
    """Yields the lines of a stream as text, without their line endings.

    Invalid UTF-8 is dropped, as `bytes.decode("utf-8", "ignore")` does. The dropped
    bytes are counted, and a warning names the first of them.

    Args:
        stream: the stream that `archives.open_stream` yields.
        name: the name of the file, for messages.
        counts: receives the number of dropped bytes.

    Raises:
        ValueError: the file is UTF-16 or not text, or a line exceeds 256 MB.
    """
    number, decoder = 1, Decoder(name, counts)
    for block in blocks_of_lines(stream, name):
        text = decoder.decode(block, functools.partial(int, number))
        # A byte order mark at the start of a file is not part of its text.
        text = text.removeprefix("\ufeff") if number == 1 else text
        number += block.count(b"\n")
        for line in text.removesuffix("\n").split("\n"):
            yield line.removesuffix("\r")


class Decoder:
    """Decodes UTF-8; invalid bytes are dropped and counted.

    Args:
        name: the name of the file, for the warning about the first invalid byte.
        counts: receives the number of dropped bytes.
    """

    def __init__(self, name: str, counts: counts_module.ReadCounts):
        self._name = name
        self._counts = counts
        self._has_warned = False

    def decode(self, data: bytes, first_line: Callable[[], int]) -> str:
        """Returns bytes as text; `first_line()` is the number of their first line."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            text = data.decode("utf-8", "ignore")
            self._counts.invalid_bytes += len(data) - len(text.encode("utf-8"))
            if not self._has_warned:
                _LOG.warning(
                    "%s:%d: not UTF-8 (byte 0x%02x); invalid bytes are dropped, here "
                    "and in the rest of the file.",
                    self._name,
                    first_line() + data.count(b"\n", 0, error.start),
                    data[error.start],
                )
                self._has_warned = True
            return text


def blocks_of_lines(stream: archives.ByteStream, name: str) -> Iterator[bytes]:
    """Yields a stream in blocks of whole lines; only the last may be incomplete.

    Raises:
        ValueError: see `read_lines`.
    """
    held: list[bytes] = []
    num_held, is_first = 0, True
    while data := stream.read(_BLOCK_BYTES):
        if is_first:
            _check_is_text(data, name)
            is_first = False
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*held, data[:cut]])
            held, num_held = [], 0
        held.append(data[cut:])
        num_held += len(data) - cut
        if num_held > _LONGEST_LINE:
            raise ValueError(
                f"{name}: a line is longer than {_LONGEST_LINE >> 20} MB; expected "
                "text with line breaks."
            )
    if num_held:
        yield b"".join(held)


def _check_is_text(data, name):
    if data.startswith(_UTF_16_MARKS):
        raise ValueError(
            f"{name}: the text is UTF-16, expected UTF-8; convert it, for example "
            "with iconv -f UTF-16 -t UTF-8."
        )
    if b"\0" in data:
        raise ValueError(
            f"{name}: contains NUL bytes; expected UTF-8 text, plain or compressed as "
            "gz, bz2, zst or zip."
        )
