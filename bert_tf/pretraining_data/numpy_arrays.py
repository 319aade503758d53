"""The functions on NumPy's arrays that `pairs` and `rows` take as `arrays`.

`graph_arrays` has the same functions for TensorFlow.
"""

import functools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data import ordering

TWO_TO_THE_MINUS_53 = 2.0**-53
# Passes that advance together; bounds the memory for many tiny documents.
_MAX_PASSES_AT_A_TIME = 1 << 17


amax = np.amax
amin = np.amin
arange = np.arange
argmax = np.argmax
argsort = np.argsort
clip = np.clip
concatenate = np.concatenate
copy = np.copy
count_nonzero = np.count_nonzero
cumprod = np.cumprod
cumsum = np.cumsum
full_like = np.full_like
maximum = np.maximum
minimum = np.minimum
nonzero = np.nonzero
pad = np.pad
repeat = np.repeat
reshape = np.reshape
rint = np.rint
searchsorted = np.searchsorted
sort = np.sort
stack = np.stack
take = np.take
where = np.where
zeros_like = np.zeros_like
constant = np.asarray
size = len
take_along = functools.partial(np.take_along_axis, axis=1)
mix = ordering.mix


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    """Returns the values in another type."""
    return values.astype(dtype, copy=False)


def as_flags(values: np.ndarray) -> np.ndarray:
    """Returns booleans as integers, the smallest that records are written from."""
    return values.view(np.uint8)


def as_uniform(words: np.ndarray) -> np.ndarray:
    """Returns random words, uint64, as numbers in [0, 1), float64."""
    return (words >> np.uint64(11)) * TWO_TO_THE_MINUS_53


def halves(words: np.ndarray) -> np.ndarray:
    """Returns words, uint64 [B, N], as uint32 [B, 2 N]."""
    return words.view(np.uint32)


def count(values: np.ndarray, limit: int) -> np.ndarray:
    """Returns how often each number below `limit` occurs: int64 [limit]."""
    return np.bincount(values, minlength=limit)


def put(values: np.ndarray, indices: np.ndarray, new: Any) -> np.ndarray:
    """Returns values with others at indices of the flat array; may change them."""
    np.put(values, indices, new)
    return values


def put_along(order: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns [B, S]: values in the order before they were sorted by `order`."""
    result = np.empty_like(values)
    np.put_along_axis(result, order, values, axis=1)
    return result


def scan(
    step: Callable[..., Any], state: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Calls step(state, column) -> (state, flags) for the columns of [B, S].

    Returns:
        bool [B, S], the flags. They must be False where the state is 0.
    """
    flags = np.zeros(columns.shape, bool)
    for number in range(columns.shape[1]):
        state, flags[:, number] = step(state, columns[:, number])
        if not state.any():
            break
    return flags


def attempts(
    step: Callable[..., Any], state: Sequence[np.ndarray], draws: Any, most: int
) -> Sequence[np.ndarray]:
    """Repeats state = step(draws, *state) until its last array is 0."""
    for _ in range(most):
        if not state[-1].any():
            break
        state = step(draws, *state)
    return state


def passes(document_starts: np.ndarray, dupe_factor: int) -> Iterator[np.ndarray]:
    """Yields arrays of document indices, each `dupe_factor` times in total."""
    documents = np.arange(len(document_starts) - 1)
    at_a_time = max(1, _MAX_PASSES_AT_A_TIME // len(documents))
    for done in range(0, dupe_factor, at_a_time):
        yield np.tile(documents, min(at_a_time, dupe_factor - done))


def loop(
    step: Callable[..., Any], state: Sequence[np.ndarray], kinds: Sequence[type]
) -> list[np.ndarray]:
    """Calls step(index, *state) -> (outputs, state) until the state is empty.

    Args:
        step: the function.
        state: arrays of the same length.
        kinds: int or bool for each output.

    Returns:
        Each of the outputs, concatenated over the calls.
    """
    steps: list[Sequence[np.ndarray]] = []
    while len(state[0]):
        outputs, state = step(len(steps), *state)
        steps.append(outputs)
    return [np.concatenate(column) for column in zip(*steps, strict=True)]


def replaced(
    is_replaced: np.ndarray,
    columns: Sequence[np.ndarray],
    compute: Callable[[Any], Sequence[np.ndarray]],
) -> list[np.ndarray]:
    """Returns columns in which compute(rows) replaces the values of some rows."""
    rows = np.flatnonzero(is_replaced)
    result = [column.copy() for column in columns]
    for column, values in zip(result, compute(rows), strict=True):
        column[rows] = values
    return result
