"""Dropout whose masks are a function of (seed, step, example, place in the model).

A mask does not depend on a generator's state: a run that is killed and resumed draws
the same masks, and so does one that divides its batches over a different number of
devices. It is the same in eager code, in a graph, under XLA and in recomputation.

Each hash of 32 bits, of (key of an example, site, index of an element), decides about
two elements. The three functions that compute bits give the same ones.
"""

import math
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

# A power of 2, so that the index of a row and that of a column share no bit.
_INDEX_COLUMNS = 1024


class Dropout(NamedTuple):
    """The dropout at one place of a model, for the examples of a batch.

    It is a tuple so that a compiled function may take it as an argument.
    """

    # uint32 [B], from `keys_of_examples`. For [rows, H] with only some rows of the
    # examples: uint32 [rows, 3], from `keys_of_rows`.
    keys: Any
    site: int  # Number of the place in the model; every place has its own.
    rate: float  # The share to drop, rounded to a multiple of 1 / 65536.


def at(keys: Any, site: int, rate: float) -> Dropout | None:
    """Returns the dropout at a place; None without keys or with rate 0."""
    if keys is None or rate == 0:
        return None
    return Dropout(keys=keys, site=site, rate=float(rate))


def keys_of_examples(seed: Any, step: Any, example_index: Any) -> Any:
    """Returns one key per example, which determines all of its dropout masks.

    Args:
        seed: integer, the seed of the run.
        step: integer scalar or [B], the number of the optimizer step.
        example_index: integer [B], the example's index in the global batch.

    Returns:
        uint32 [B].
    """
    key = mix(ops.cast(seed, "uint32") ^ np.uint32(0x9E3779B9))
    key = mix(key ^ ops.cast(step, "uint32"))
    return mix(key ^ ops.cast(example_index, "uint32"))


def keys_of_parts(keys: Any, num_parts: int) -> Any:
    """Returns one key for each of several sequences that form an example.

    Args:
        keys: uint32 [B], from `keys_of_examples`.
        num_parts: sequences per example, such as the number of endings.

    Returns:
        uint32 [B * num_parts]; the keys of an example are adjacent.
    """
    parts = mix(ops.cast(ops.arange(num_parts), "uint32") + np.uint32(0xC2B2AE35))
    return ops.reshape(mix(keys[:, None] ^ parts[None, :]), (-1,))


def keys_of_rows(keys: Any, rows: Any, length: Any) -> Any:
    """Returns the keys of some rows of all examples, for `Dropout`.

    Args:
        keys: uint32 [B], from `keys_of_examples`.
        rows: int32 [rows], indices of the rows among B * S.
        length: S, integer.

    Returns:
        uint32 [rows, 3]: the example's key, the position within it, and S.
    """
    lengths = ops.ones_like(rows) * length
    parts = (ops.take(keys, rows // length, axis=0), rows % length, lengths)
    return ops.stack([ops.cast(part, "uint32") for part in parts], axis=1)


def applied(x: Any, dropout: Dropout | None, *, compute_bits: Any = None) -> Any:
    """Returns `dropped` in the dtype of x; x itself without dropout."""
    if dropout is None:
        return x
    return ops.cast(dropped(x, dropout, compute_bits=compute_bits), x.dtype)


def dropped(x: Any, dropout: Dropout, *, compute_bits: Any = None) -> Any:
    """Returns x after dropout, in at least float32.

    Args:
        x: see `plain.Plain.dropout`.
        dropout: where.
        compute_bits: `bits` (the default) or `bits_for_xla`, which are equal.
    """
    wide = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
    # An element is dropped if its 16 bits, as a number, are below rate * 65536. The
    # lower bits decide about the first half of an example's elements. They move to the
    # top, where the other bits do not affect the comparison.
    threshold = round(dropout.rate * 65536)
    keep_scale = 65536 / (65536 - threshold)
    site_key = mix(mix(ops.cast(dropout.site, "uint32") + np.uint32(0x85EBCA6B)))
    compute = compute_bits or bits
    if len(dropout.keys.shape) == 2:
        compute = bits_of_rows
    elements = compute(ops.shape(x), dropout.keys, site_key)
    return ops.where(elements >= np.uint32(threshold << 16), wide * keep_scale, 0.0)


def mix(x: Any) -> Any:
    """Returns uint32 hashes: every bit depends on every bit of the input.

    Source: lowbias32, https://nullprogram.com/blog/2018/07/31/.
    """
    x = x ^ ops.right_shift(x, np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ ops.right_shift(x, np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ ops.right_shift(x, np.uint32(16))


def bits(shape: Any, keys: Any, site_key: Any) -> Any:
    """Returns uint32 of a shape: random bits in the upper half of each element."""
    num_examples = ops.shape(keys)[0]
    num_elements = _divided(math.prod(shape), num_examples)
    num_words = (num_elements + 1) // 2
    words = mix(_indices(num_words) ^ site_key)
    hashes = _hash(words[None, :] ^ keys[:, None])
    pairs = ops.left_shift(hashes[:, None, :], np.array([[[16], [0]]], "uint32"))
    pairs = ops.reshape(pairs, (num_examples, 2 * num_words))[:, :num_elements]
    return ops.reshape(pairs, shape)


def bits_for_xla(shape: Any, keys: Any, site_key: Any) -> Any:
    """Returns the same bits, each hash computed twice and none of them reshaped.

    XLA fuses this with what uses the mask, and writes no bits to memory.
    """
    num_examples = ops.shape(keys)[0]
    rows, *sizes = shape
    rows_per_example = _divided(rows, num_examples)
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


def bits_of_rows(shape: Any, keys: Any, site_key: Any) -> Any:
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


def _divided(total, num_examples):
    # A replica may get no examples at the end of an epoch.
    is_static = isinstance(num_examples, int)
    return total // (
        max(num_examples, 1) if is_static else ops.maximum(num_examples, 1)
    )
