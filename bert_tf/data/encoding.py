"""Encodes and decodes tf.train.Example messages; encodes whole arrays in NumPy.

Protobuf does not fix the order of a map's entries, and its own serialization differs
from run to run. Here features have the order of the schema, so that equal rows give
equal bytes. NumPy encodes thousands of rows in one pass.

Shape letters: B rows of an array.
"""

import functools
import itertools
from collections.abc import Mapping

import google_crc32c
import numpy as np

from bert_tf.data import schema as schema_module

HEADER_BYTES = 12  # Before a record: its length as uint64, and that length's checksum.
FOOTER_BYTES = 4  # After a record: its checksum.
_MASK_DELTA = 0xA282EAD8  # Checksums are stored rotated; tensorflow/core/lib/hash.
_FEATURES_TAG = 0x0A  # Example.features, and each entry of Features.feature
_KEY_TAG = 0x0A
_VALUE_TAG = 0x12
_FLOAT_LIST_TAG = 0x12
_INT64_LIST_TAG = 0x1A
_PACKED_TAG = 0x0A
# Varints of smaller numbers, such as the ids of usual vocabularies, come from a table.
_MAX_TABLE_BITS = 18
_TABLE_WIDTH = 4
_DECODED = {"float_list": np.float32, "int64_list": np.int64}


def framed_records(
    schema: schema_module.Schema, columns: Mapping[str, np.ndarray]
) -> tuple[bytes, np.ndarray]:
    """Returns rows as the bytes of a TFRecord file, and the sizes of its records.

    Args:
        schema: the columns and their order.
        columns: an array [B] or [B, length] for each column; no negative integers.

    Returns:
        The records one after another, and int64 [B], both with header and footer.

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
    headers = map(header, message.lengths.tolist())
    framed = zip(headers, records, map(_checksum, records), strict=True)
    data = b"".join(itertools.chain.from_iterable(framed))
    return data, message.lengths + (HEADER_BYTES + FOOTER_BYTES)


@functools.lru_cache(1 << 14)
def header(length: int) -> bytes:
    """Returns what precedes a record of `length` bytes in a TFRecord file."""
    data = length.to_bytes(8, "little")
    return data + _checksum(data)


def payload(framed: bytes) -> bytes | None:
    """Returns a record without header and footer; None if it is damaged."""
    length = len(framed) - HEADER_BYTES - FOOTER_BYTES
    if length < 0 or framed[:HEADER_BYTES] != header(length):
        return None
    record = framed[HEADER_BYTES:-FOOTER_BYTES]
    return record if framed[-FOOTER_BYTES:] == _checksum(record) else None


def _checksum(data: bytes) -> bytes:
    """Returns the masked CRC-32C of bytes, as a TFRecord file has it."""
    crc = google_crc32c.value(data)
    masked = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
    return masked.to_bytes(4, "little")


def decode(record: bytes) -> dict[str, np.ndarray]:
    """Returns the features of a serialized tf.train.Example: int64 or float32 [N].

    Raises:
        ValueError: the bytes are not such a message of integers or floats.
    """
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        features = tf.train.Example.FromString(record).features.feature
    except DecodeError:
        features = {}
    # Sorted, because protobuf's own order differs from run to run.
    kinds = {name: features[name].WhichOneof("kind") for name in sorted(features)}
    if not kinds or not _DECODED.keys() >= set(kinds.values()):
        raise ValueError("not a tf.train.Example of numbers")
    return {
        name: np.array(getattr(features[name], kind).value, _DECODED[kind])
        for name, kind in kinds.items()
    }


def _feature_entry(column, values):
    """Returns the rows of one entry of the Features map."""
    entry = _Rows(len(values))
    if column.dtype == "float32":
        entry.prepend(np.ascontiguousarray(values, "<f4").view(np.uint8))
        list_tag = _FLOAT_LIST_TAG
    else:
        entry.prepend(*_varints(values))
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
        self.parts += other.parts
        self.lengths += other.lengths

    def prepend(self, part, lengths=None):
        """Prepends a part; bytes objects need their lengths."""
        self.parts.insert(0, part)
        self.lengths += part.shape[1] if lengths is None else lengths

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
