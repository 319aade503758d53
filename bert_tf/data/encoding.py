"""Encodes and decodes tf.train.Example messages; encodes whole arrays in NumPy.

Protobuf does not fix the order of a map's entries, and its own serialization differs
from run to run. Here features have the order of the schema, so that equal rows give
equal bytes. NumPy encodes thousands of rows in one pass.

Shape letters: B rows of an array, R records.
"""

import functools
import itertools
from collections.abc import Mapping

import numpy as np

from bert_tf.data import crc32c
from bert_tf.data import schema as schema_module

HEADER_BYTES = 12  # Before a record: its length as uint64, and that length's checksum.
FOOTER_BYTES = 4  # After a record: its checksum.
_FEATURES_TAG = 0x0A  # Example.features, and each entry of Features.feature
_KEY_TAG = 0x0A
_VALUE_TAG = 0x12
_FLOAT_LIST_TAG = 0x12
_INT64_LIST_TAG = 0x1A
_PACKED_TAG = 0x0A
_MAX_VARINT_BYTES = 10  # For 64 bits.
# Varints of smaller numbers, such as the ids of usual vocabularies, come from a table.
_MAX_TABLE_BITS = 18
_TABLE_WIDTH = 4


def framed_records(
    schema: schema_module.Schema, columns: Mapping[str, np.ndarray]
) -> tuple[bytes, np.ndarray]:
    """Returns rows as the bytes of a TFRecord file.

    Args:
        schema: the columns and their order.
        columns: an array [B] or [B, length] for each column; no negative integers.

    Returns:
        The framed records one after another, and their sizes with header and footer,
        int64 [B].

    Raises:
        ValueError: an array does not match the schema, or has a negative integer.
    """
    num_rows = schema.rows(columns)
    if num_rows == 0:
        return b"", np.zeros(0, np.int64)
    message = _Rows(num_rows)
    for column in schema.columns:
        values = np.asarray(columns[column.name]).reshape(num_rows, -1)
        message.extend(_feature_entry(column, values))
    message.prepend_length(_FEATURES_TAG)
    records = message.joined()
    footers = crc32c.masked_crc32c_of(records).astype("<u4").view(np.uint8)
    framed = zip(
        _cut(_headers(message.lengths)),
        records,
        _cut(footers.reshape(num_rows, FOOTER_BYTES)),
        strict=True,
    )
    data = b"".join(itertools.chain.from_iterable(framed))
    return data, message.lengths + (HEADER_BYTES + FOOTER_BYTES)


def frame_parts(data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the payload lengths in R record headers, and whether these are intact.

    Args:
        data: uint8 [N].
        offsets: int64 [R], first byte of each header.

    Returns:
        Lengths uint64 [R], and bool [R]: whether the checksum of each length matches.
    """
    headers = data[offsets[:, None] + np.arange(HEADER_BYTES)]
    lengths = np.ascontiguousarray(headers[:, :8]).view("<u8").ravel()
    stored = np.ascontiguousarray(headers[:, 8:]).view("<u4").ravel()
    expected = crc32c.masked_crc32c(data, offsets, np.full(len(offsets), 8, np.int64))
    return lengths, stored == expected


def payloads_are_intact(
    data: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Returns bool [R]: whether the checksum after each payload matches it.

    Args:
        data: uint8 [N].
        starts: int64 [R], first byte of each payload.
        lengths: int64 [R], number of bytes of each payload.
    """
    footers = data[(starts + lengths)[:, None] + np.arange(FOOTER_BYTES)]
    stored = np.ascontiguousarray(footers).view("<u4").ravel()
    return stored == crc32c.masked_crc32c(data, starts, lengths)


def decode(record: bytes) -> dict[str, np.ndarray]:
    """Returns the features of one serialized tf.train.Example.

    Args:
        record: the message; lists of integers or floats, packed or not.

    Returns:
        int64 or float32 [N] by feature name.

    Raises:
        ValueError: the bytes are not such a message.
    """
    try:
        entries = [
            dict(_fields(entry))
            for _, features in _fields(record)
            for _, entry in _fields(features)
        ]
        return {entry[1].decode(): _decode_feature(entry[2]) for entry in entries}
    except (AttributeError, IndexError, KeyError, TypeError, UnicodeDecodeError):
        raise ValueError("not a tf.train.Example of numbers") from None


def _decode_feature(feature):
    kind, values = next(_fields(feature))
    if kind == _FLOAT_LIST_TAG >> 3:
        packed = b"".join(data for _, data in _fields(values))
        return np.frombuffer(packed, "<f4")
    if kind != _INT64_LIST_TAG >> 3:
        raise KeyError(kind)
    numbers: list[int] = []
    for _, item in _fields(values):
        numbers += [item] if isinstance(item, int) else _decode_varints(item)
    return np.array(numbers, np.uint64).astype(np.int64)


def _decode_varints(data):
    """Returns the numbers of a packed list. A byte holds 7 bits, the lowest first."""
    values = np.frombuffer(data, np.uint8).astype(np.uint64)
    if not len(values):
        return []
    if values[-1] >= 0x80:
        raise IndexError("the last number is cut off")
    ends = np.flatnonzero(values < 0x80)
    starts = np.concatenate([[0], ends + 1])[:-1]
    place = np.arange(len(values)) - np.repeat(starts, ends - starts + 1)
    if place.max() >= _MAX_VARINT_BYTES:
        raise IndexError("a number has too many bytes")
    bits = (values & np.uint64(0x7F)) << (np.uint64(7) * place.astype(np.uint64))
    return np.add.reduceat(bits, starts).tolist()


def _read_varint(data, place):
    number = shift = 0
    while True:
        byte = data[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number & 0xFFFFFFFFFFFFFFFF, place


def _fields(message):
    """Yields (number, int or bytes) for each field of a protobuf message."""
    place = 0
    while place < len(message):
        tag, place = _read_varint(message, place)
        wire_type = tag & 7
        if wire_type == 0:
            value, place = _read_varint(message, place)
        else:
            length = {1: 8, 5: 4}.get(wire_type)
            if wire_type == 2:
                length, place = _read_varint(message, place)
            if place + length > len(message):
                raise IndexError(place)
            value, place = message[place : place + length], place + length
        yield tag >> 3, value


def _headers(lengths):
    """Returns the headers of payloads: uint8 [B, HEADER_BYTES]."""
    # Rows have few distinct lengths: compute one checksum per length, not per row.
    different, row_of = np.unique(lengths, return_inverse=True)
    data = different.astype("<u8").view(np.uint8)
    starts = 8 * np.arange(len(different))
    crc = crc32c.masked_crc32c(data, starts, np.full(len(different), 8))
    crc = crc.astype("<u4").view(np.uint8).reshape(-1, 4)
    return np.concatenate([data.reshape(-1, 8), crc], axis=1)[row_of]


def _feature_entry(column, values):
    """Returns the rows of one entry of the Features map."""
    entry = _Rows(len(values))
    if column.dtype == "float32":
        entry.append(np.ascontiguousarray(values, "<f4").view(np.uint8))
        list_tag = _FLOAT_LIST_TAG
    else:
        entry.append(*_varints(values))
        list_tag = _INT64_LIST_TAG
    entry.prepend_length(_PACKED_TAG)
    entry.prepend_length(list_tag)
    entry.prepend_length(_VALUE_TAG)
    name = column.name.encode()
    if len(name) > 127:
        raise ValueError(f"Expected column names of at most 127 bytes, got {name}.")
    key = bytes([_KEY_TAG, len(name)]) + name
    entry.prepend(_repeated(key, len(values)))
    entry.prepend_length(_FEATURES_TAG)
    return entry


class _Rows:
    """Rows of bytes of different lengths, assembled from parts.

    A part is uint8 [B, W] if all rows have the same length, else B bytes objects.
    """

    def __init__(self, num_rows):
        self.num_rows = num_rows
        self.parts = []
        self.lengths = np.zeros(num_rows, np.int64)

    def extend(self, other):
        """Appends all parts of another object."""
        self.parts += other.parts
        self.lengths += other.lengths

    def append(self, part, lengths=None):
        """Appends a part; bytes objects need their lengths."""
        self._insert(len(self.parts), part, lengths)

    def prepend(self, part, lengths=None):
        """Prepends a part; bytes objects need their lengths."""
        self._insert(0, part, lengths)

    def prepend_length(self, tag):
        """Prepends a tag and the length of everything so far."""
        self.prepend(*_varints(self.lengths[:, None]))
        self.prepend(_repeated(bytes([tag]), self.num_rows))

    def joined(self):
        """Returns the rows as bytes objects."""
        columns: list[list[bytes]] = []
        for is_list, parts in itertools.groupby(
            self.parts, lambda part: isinstance(part, list)
        ):
            if is_list:
                columns += parts
            else:
                columns.append(_cut(np.concatenate(list(parts), axis=1)))
        return list(map(b"".join, zip(*columns, strict=True)))

    def _insert(self, place, part, lengths):
        self.parts.insert(place, part)
        self.lengths += part.shape[1] if lengths is None else lengths


def _repeated(data, num_rows):
    row = np.frombuffer(data, np.uint8)
    return np.broadcast_to(row, (num_rows, len(row)))


def _cut(matrix):
    """Returns the rows of uint8 [B, W] as bytes objects."""
    data, width = matrix.tobytes(), matrix.shape[1]
    return [data[start : start + width] for start in range(0, len(data), width)]


def _varints(values):
    """Returns ints [B, L] as a part of `_Rows`, and the lengths of its rows, int [B].

    The lengths are None if all are equal.
    """
    if values.size and values.min() < 0:
        raise ValueError(f"Expected no negative integers, got {values.min()}.")
    most = int(values.max()) if values.size else 0
    if most < 128:
        return values.astype(np.uint8), None
    bits = most.bit_length()
    if bits > _MAX_TABLE_BITS:
        matrix, width = _varints_computed(values)
    else:
        matrix, width = _varint_table(bits).take(values).view(np.uint8), _TABLE_WIDTH
    # Only the first byte of a varint can be 0; later zeros are unused bytes.
    used = matrix != 0
    used[:, ::width] = True
    if (used == used[0]).all():
        return matrix[:, used[0]], None
    lengths = used.sum(axis=1, dtype=np.min_scalar_type(used.shape[1]))
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    # Faster than indexing with the mask.
    data = matrix.ravel().take(np.flatnonzero(used)).tobytes()
    return [data[i:j] for i, j in itertools.pairwise([0, *ends])], lengths


def _varints_computed(values):
    """Returns the varints of ints [B, L] as uint8 [B, L * width], and the width."""
    width = -(-int(values.max()).bit_length() // 7)
    rest = values.astype(np.uint64)[..., np.newaxis]
    rest = rest >> (np.uint64(7) * np.arange(width, dtype=np.uint64))
    goes_on = rest > 127
    matrix = (rest & np.uint64(127)).astype(np.uint8) | (goes_on * np.uint8(128))
    return matrix.reshape(len(values), -1), width


@functools.cache
def _varint_table(bits):
    """Returns the varints of all numbers with at most `bits` bits, each as uint32."""
    matrix, width = _varints_computed(np.arange(1 << bits)[:, np.newaxis])
    return np.pad(matrix, ((0, 0), (0, _TABLE_WIDTH - width))).view(np.uint32).ravel()
