"""The checksum of TFRecord files (CRC-32C), for many records at once.

google-crc32c computes it. If that package is missing or has no C extension, NumPy does,
ten times slower. A CRC is linear: the CRC of a record is the XOR of the contributions
of its bytes, each of which depends on the byte's distance from the end. With a table
[distance, byte value], NumPy looks up and XORs thousands of records at once.
"""

import functools
import warnings
from collections.abc import Sequence

import numpy as np

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed.
_MASK_DELTA = 0xA282EAD8  # TFRecord stores rotated sums; tensorflow/core/lib/hash.
_BLOCK = 2048  # Bytes per lookup; longer records are processed block by block.
# Bytes looked up at once, so that intermediate results stay in the processor's cache.
_BYTES_AT_A_TIME = 1 << 18


def masked_crc32c(
    data: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Returns the masked CRC-32C of R pieces of a buffer.

    Args:
        data: uint8 [N].
        starts: int64 [R], first byte of each piece.
        lengths: int64 [R], number of bytes of each piece.

    Returns:
        uint32 [R].
    """
    if _compiled() is not None:
        everything, ends = data.tobytes(), (starts + lengths).tolist()
        pieces = zip(starts.tolist(), ends, strict=True)
        return masked_crc32c_of([everything[start:end] for start, end in pieces])
    crc = np.empty(len(starts), np.uint32)
    for begin, end in _groups(lengths):
        group = slice(begin, end)
        crc[group] = _crc32c(data, starts[group], lengths[group])
    return _masked(crc)


def masked_crc32c_of(pieces: Sequence[bytes]) -> np.ndarray:
    """Returns the masked CRC-32C of R pieces: uint32 [R]."""
    value = _compiled()
    if value is not None:
        return _masked(np.fromiter(map(value, pieces), np.uint32, len(pieces)))
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    data = np.frombuffer(b"".join(pieces), np.uint8)
    return masked_crc32c(data, np.cumsum(lengths) - lengths, lengths)


def _masked(crc):
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)


@functools.cache
def _compiled():
    """Returns google-crc32c's function of bytes, or None if it is not compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # About the missing extension.
        try:
            import google_crc32c
        except ImportError:
            return None
    return google_crc32c.value if google_crc32c.implementation == "c" else None


def _groups(lengths):
    """Yields ranges of pieces with about _BYTES_AT_A_TIME together."""
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(ends):
        done = ends[begin - 1] if begin else 0
        end = int(np.searchsorted(ends, done + _BYTES_AT_A_TIME, side="right"))
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def _crc32c(data, starts, lengths):
    state = np.full(len(starts), 0xFFFFFFFF, np.uint32)
    done = np.zeros(len(starts), np.int64)
    while True:
        block = np.minimum(lengths - done, _BLOCK)
        active = np.flatnonzero(block > 0)
        if not active.size:
            return ~state
        state[active] = _advance(
            state[active], data, (starts + done)[active], block[active]
        )
        done += np.maximum(block, 0)


def _advance(state, data, starts, lengths):
    """Returns the checksums after `lengths` (1 to _BLOCK) more bytes each."""
    table = _contributions()
    # Align the pieces at their ends, with zeros before them: zeros contribute nothing.
    width = int(lengths.max())
    place = np.arange(width)  # [W]
    ends = (starts + lengths)[:, np.newaxis]
    values = data.take(ends - width + place, mode="clip")  # [R, W]
    values *= place >= width - lengths[:, np.newaxis]
    rows = (width - 1 - place) * 256
    result = np.bitwise_xor.reduce(table.ravel().take(rows + values), axis=1)
    # The checksum so far acts like four bytes XORed onto the next four.
    for byte in range(4):
        inside = lengths > byte
        value = (state >> np.uint32(8 * byte)) & np.uint32(0xFF)
        row = np.where(inside, lengths - 1 - byte, 0)
        result ^= np.where(inside, table[row, value], np.uint32(0))
    # With fewer than four bytes, the rest of the checksum moves down.
    short = lengths < 4
    shift = np.where(short, 8 * lengths, 0).astype(np.uint32)
    return result ^ np.where(short, state >> shift, np.uint32(0))


@functools.cache
def _contributions():
    """Returns uint32 [_BLOCK, 256]: a byte's contribution by distance from the end."""
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        odd = (first & np.uint32(1)).astype(bool)
        first = (first >> np.uint32(1)) ^ np.where(odd, np.uint32(_POLYNOMIAL), 0)
        first = first.astype(np.uint32)
    table = np.empty((_BLOCK, 256), np.uint32)
    table[0] = first
    for row in range(1, _BLOCK):
        table[row] = (table[row - 1] >> np.uint32(8)) ^ first[table[row - 1] & 0xFF]
    return table
