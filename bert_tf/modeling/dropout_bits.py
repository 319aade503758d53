"""The random bits of dropout: hashes of (key of an example, site, index of an element).

`numerics.dropout` compares them with its rate. Each hash of 32 bits decides about two
elements of an example. The three forms below give the same bits.
"""

from typing import Any

import numpy as np
from keras import ops

# A power of 2, so that the index of a row and that of a column share no bit.
_INDEX_COLUMNS = 1024


def mix(x: Any) -> Any:
    """Returns uint32 hashes: every bit depends on every bit of the input.

    Source: lowbias32, https://nullprogram.com/blog/2018/07/31/.
    """
    x = x ^ ops.right_shift(x, np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ ops.right_shift(x, np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ ops.right_shift(x, np.uint32(16))


def plain(shape: Any, keys: Any, site_key: Any) -> Any:
    """Returns uint32 of a shape: random bits in the upper half of each element."""
    num_examples = ops.shape(keys)[0]
    num_elements = _elements_per_example(shape, num_examples)
    num_words = (num_elements + 1) // 2
    words = mix(_indices(num_words) ^ site_key)
    bits = _hash(words[None, :] ^ keys[:, None])
    bits = ops.left_shift(bits[:, None, :], np.array([[[16], [0]]], "uint32"))
    bits = ops.reshape(bits, (num_examples, 2 * num_words))[:, :num_elements]
    return ops.reshape(bits, shape)


def for_xla(shape: Any, keys: Any, site_key: Any) -> Any:
    """Returns the same bits, each hash computed twice and none of them reshaped.

    XLA fuses this with what uses the mask, and writes no bits to memory.
    """
    num_examples = ops.shape(keys)[0]
    rows, *sizes = shape
    rows_per_example = rows // num_examples
    # The index of each element within its example, from values along each axis.
    index, stride = np.uint32(0), 1
    for axis in reversed(range(len(sizes))):
        place = [1] * len(shape)
        place[axis + 1] = -1
        along_axis = ops.reshape(ops.cast(ops.arange(sizes[axis]), "uint32"), place)
        index = index + along_axis * ops.cast(stride, "uint32")
        stride = stride * sizes[axis]
    pairs = (num_examples, rows_per_example)
    column = (-1, *[1] * len(sizes))
    first = ops.cast(ops.arange(rows_per_example), "uint32") * ops.cast(
        stride, "uint32"
    )
    index = index + ops.reshape(ops.broadcast_to(first[None, :], pairs), column)
    keys = ops.reshape(ops.broadcast_to(keys[:, None], pairs), column)
    return _bits_at(index, stride * rows_per_example, keys, site_key)


def of_rows(shape: Any, keys: Any, site_key: Any) -> Any:
    """Returns the same bits for the rows that `keys`, uint32 [rows, 3], specifies."""
    width = ops.cast(shape[1], "uint32")
    example_keys, positions, lengths = keys[:, :1], keys[:, 1:2], keys[:, 2:]
    columns = ops.cast(ops.arange(shape[1]), "uint32")[None, :]
    return _bits_at(
        positions * width + columns, lengths * width, example_keys, site_key
    )


def _bits_at(index, num_elements, keys, site_key):
    """Returns the bits of the elements with an index within their example."""
    num_words = (ops.cast(num_elements, "uint32") + np.uint32(1)) // np.uint32(2)
    is_second = index >= num_words
    words = mix(ops.where(is_second, index - num_words, index) ^ site_key)
    shift = ops.where(is_second, np.uint32(0), np.uint32(16))
    return ops.left_shift(_hash(words ^ keys), shift)


def _hash(bits):
    bits = bits * np.uint32(0x7FEB352D)
    bits = bits ^ ops.right_shift(bits, np.uint32(15))
    bits = bits * np.uint32(0x846CA68B)
    return bits ^ ops.right_shift(bits, np.uint32(16))


def _indices(count):
    """Returns uint32 [count]: 0, 1, 2 and so on.

    On GPUs TensorFlow computes int32 ranges on the host and copies them to the device.
    Two short ranges replace the long one, which has megabytes at 512 positions.
    """
    columns = ops.cast(ops.arange(_INDEX_COLUMNS), "uint32")
    rows = ops.cast(ops.arange(-(-count // _INDEX_COLUMNS)), "uint32")
    table = (rows * np.uint32(_INDEX_COLUMNS))[:, None] ^ columns[None, :]
    return ops.reshape(table, (-1,))[:count]


def _elements_per_example(shape, num_examples):
    total = 1
    for size in shape:
        total = total * size
    return total // num_examples
