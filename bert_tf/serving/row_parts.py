"""Computes the rows of a batch in parts of similar length, in a graph.

A batch is as wide as its longest row, so one long text among short ones would make
every row expensive. Rows are therefore sorted by length and computed in parts, each
only as wide as its own longest row. A limit on the size of a part bounds the memory,
however many rows a request has.

Shape letters: B batch, R rows of a part, S sequence.
"""

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.modeling import input_features

Tensors = dict[str, tf.Tensor]
# What a part costs in addition to its tokens, expressed in tokens: calling a few
# hundred ops for a part takes about as long as computing this many more tokens.
TOKENS_PER_PART = 128


def apply(
    function: Any,
    features: Tensors,
    *,
    max_tokens: int,
    width: tf.Tensor | None = None,
    trims: bool = True,
    costs: tf.Tensor | None = None,
    padding: Mapping[str, Any] | None = None,
) -> Tensors:
    """Returns the outputs of a function of rows; equal to those of a single call.

    Args:
        function: a `tf.function` with a signature, which takes `input_ids`,
            `input_mask`, `segment_ids`, int32 [R, S], and returns tensors [R, ...].
            Only their second axis may vary in size.
        features: the same columns, int32 [B, S]; B may be 0.
        max_tokens: positions of a part at most, padding included. A longer row is a
            part of its own.
        width: size of the second axis of outputs where it varies. None: S.
        trims: whether the padding at the end of all rows of a part is left out. Outputs
            at these positions are then those in `padding`.
        costs: int32 [B], positions that a row counts for. None: its length.
        padding: output name -> value at positions that are left out. Default: 0 or "".
    """
    num_rows, columns = tf.unstack(tf.shape(features["input_ids"]))
    lengths = (
        _lengths(features["input_mask"]) if trims else tf.fill([num_rows], columns)
    )
    costs = lengths if costs is None else tf.maximum(costs, lengths)
    order = tf.argsort(costs, stable=True)
    costs = tf.cast(tf.gather(costs, order), tf.int64)
    lengths = tf.gather(lengths, order)
    features = {
        name: tf.gather(features[name], order) for name in input_features.SEQUENCE
    }
    specs = function.get_concrete_function().structured_outputs
    padded = functools.partial(
        _padded, width=columns if width is None else width, padding=padding or {}
    )

    def compute_part(begin, computed):
        end = begin + _rows_of_part(costs[begin:], max_tokens)
        longest = tf.reduce_max(lengths[begin:end])
        part = {name: rows[begin:end, :longest] for name, rows in features.items()}
        outputs = {
            name: padded(name, value, specs[name].shape)
            for name, value in function(part).items()
        }
        return end, {
            name: tf.concat([rows, outputs[name]], axis=0)
            for name, rows in computed.items()
        }

    empty = {}
    for name, spec in specs.items():
        shape = [0, *(size or 0 for size in spec.shape[1:])]
        empty[name] = padded(name, tf.zeros(shape, spec.dtype), spec.shape)
    _, computed = tf.while_loop(
        lambda begin, computed: begin < num_rows,
        compute_part,
        (0, empty),
        shape_invariants=(
            tf.TensorShape([]),
            {name: spec.shape for name, spec in specs.items()},
        ),
        parallel_iterations=1,
    )
    restored = tf.math.invert_permutation(order)
    return {name: tf.gather(rows, restored) for name, rows in computed.items()}


def _lengths(input_mask):
    """Returns the positions up to the last real one; int32 [B]."""
    columns = tf.shape(input_mask)[1]
    numbers = tf.range(1, columns + 1)
    lengths = tf.reduce_max(tf.where(input_mask != 0, numbers, 0), axis=1)
    # A row without real positions attends to all of them.
    return tf.where(lengths > 0, lengths, columns)


def _rows_of_part(costs, max_tokens):
    """Returns how many rows the next part has; `costs` are those of all rows left.

    A part ends before the row that would exceed the limit, or that would add more
    padding to the part's rows than a part of its own costs.
    """
    count = tf.range(1, tf.size(costs, tf.int64) + 1)
    size = count * costs  # The rows are sorted: the last one is the longest.
    fits = (size <= max_tokens) & (size - tf.cumsum(costs) <= TOKENS_PER_PART)
    return tf.maximum(tf.reduce_sum(tf.cast(fits, tf.int32)), 1)


def _padded(name, value, shape, *, width, padding):
    """Pads the second axis, if its size varies."""
    if shape.rank < 2 or shape[1] is not None:
        return value
    missing = [[0, 0], [0, width - tf.shape(value)[1]]] + [[0, 0]] * (shape.rank - 2)
    default = "" if value.dtype == tf.string else 0
    fill = tf.cast(padding.get(name, default), value.dtype)
    return tf.pad(value, missing, constant_values=fill)
