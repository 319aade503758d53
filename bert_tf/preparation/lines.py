"""Streams of bytes -> lines of text."""

import logging
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf.preparation import counts as counts_module

_LOG = logging.getLogger(__name__)
_BLOCK_BYTES = 1 << 20
_LONGEST_LINE = 1 << 28  # Bytes; more is no text with lines.
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_lines(stream, name: str, counts: counts_module.ReadCounts) -> Iterator[str]:
    """Yields the lines of a stream as text, without their ends.

    Bytes that are no UTF-8 are dropped, as `bytes.decode("utf-8", "ignore")` does;
    they are counted, and a warning names the first of them.

    Args:
        stream: what `archives.open_stream` yields.
        name: of the file, for messages.
        counts: dropped bytes are added to it.

    Raises:
        ValueError: the file is UTF-16 or no text, or a line has over 256 MB.
    """
    number, decoder = 1, Decoder(name, counts)
    for block in blocks_of_lines(stream, name):
        text = decoder.decode(block, lambda number=number: number)
        # A byte order mark at the start of a file is none of its text.
        text = text.removeprefix("\ufeff") if number == 1 else text
        number += block.count(b"\n")
        for line in text.removesuffix("\n").split("\n"):
            yield line.removesuffix("\r")


class Decoder:
    """Turns bytes into text; those that are no UTF-8 are dropped and counted.

    Args:
        name: of the file, for the warning that names the first of them.
        counts: dropped bytes are added to it.
    """

    def __init__(self, name: str, counts: counts_module.ReadCounts):
        self._name = name
        self._counts = counts
        self._was_told = False

    def decode(self, data: bytes, first_line: Callable[[], int]) -> str:
        """Returns bytes as text; `first_line` tells the number of their first line."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            text = data.decode("utf-8", "ignore")
            self._counts.invalid_bytes += len(data) - len(text.encode("utf-8"))
            if not self._was_told:
                _LOG.warning(
                    "%s:%d: not UTF-8 (byte 0x%02x); such bytes are dropped here and "
                    "further on.",
                    self._name,
                    first_line() + data.count(b"\n", 0, error.start),
                    data[error.start],
                )
                self._was_told = True
            return text


def blocks_of_lines(stream, name: str) -> Iterator[bytes]:
    """Yields a stream in blocks that end with a line, the last one perhaps not.

    Raises:
        ValueError: as `read_lines`.
    """
    held, num_held, is_first = [], 0, True
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
                f"{name}: a line of more than {_LONGEST_LINE >> 20} MB; expected text "
                "in lines."
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
            f"{name}: holds NUL bytes; expected text in UTF-8, plain or packed as gz, "
            "bz2, zst or zip."
        )
