"""The order of rows in training, with literal expected orders."""

import numpy as np
import pytest

from bert_tf.data import ordering


class ReversedOrder:
    """Ten rows, in reverse order; the keys reverse the order of batches too."""

    def epoch(self, number):
        return np.arange(9, -1, -1)

    def keys(self, epoch, count):
        return np.arange(count, 0, -1)


# Of rows 0 to 9.
LENGTHS = np.array([0, 4, 8, 7, 9, 3, 5, 6, 2, 1])


@pytest.mark.parametrize(
    "batch_size, epoch, expected",
    [
        # One pool, sorted: 0 9 8 5 1 | 6 7 3 2 4. The keys reverse the batches.
        (5, 0, [6, 7, 3, 2, 4, 0, 9, 8, 5, 1]),
        # The last batch of epoch 0 has one row. 9 and 8 complete it; 1 and 0 are left.
        (3, 1, [9, 8, 3, 2, 4, 5, 6, 7, 1, 0]),
        # The last batch of epoch 1 has two rows, and 9 completes it.
        (3, 2, [9, 3, 2, 4, 1, 6, 7, 0, 8, 5]),
    ],
)
def test_rows_of_similar_length_share_a_batch(batch_size, epoch, expected):
    order = ordering.GroupedOrder(LENGTHS, order=ReversedOrder(), batch_size=batch_size)
    assert order.epoch(epoch).tolist() == expected


def test_a_pool_has_its_number_of_batches(monkeypatch):
    monkeypatch.setattr(ordering, "BATCHES_PER_POOL", 1)
    order = ordering.GroupedOrder(LENGTHS, order=ReversedOrder(), batch_size=5)
    # Each batch is sorted by itself: 9 8 7 6 5 becomes 9 8 5 6 7.
    assert order.epoch(0).tolist() == [0, 1, 3, 2, 4, 9, 8, 5, 6, 7]


@pytest.mark.parametrize("position", [0, 1, 9, 10, 13, 28])
def test_positions_continue_over_epochs(position):
    order = ordering.GroupedOrder(LENGTHS, order=ReversedOrder(), batch_size=3)
    epochs = np.concatenate([order.epoch(number) for number in range(5)])
    found = order.indices(position, 12)
    assert found.tolist() == epochs[position : position + 12].tolist()


def sorted_at_once(num_rows, *, seed, epoch, window):
    """Returns an epoch by its definition: windows by their hash, rows by theirs."""
    key = ordering.mix(ordering.mix(np.uint64(seed)) + np.uint64(epoch))
    rows = np.arange(num_rows, dtype=np.uint64)
    windows = ordering.mix(~key + rows // np.uint64(window or num_rows))
    return np.lexsort((ordering.mix(key + rows), windows))


@pytest.mark.parametrize(
    "window",
    [
        0,  # 16 parts of hashes.
        7,  # The last window has 6 of the 1,000 rows.
        1000,  # One window.
    ],
)
def test_an_epoch_in_parts_is_the_one_sorted_at_once(monkeypatch, window):
    monkeypatch.setattr(ordering, "_ROWS_PER_PART", 80)
    monkeypatch.setattr(ordering, "_ROWS_PER_BLOCK", 64)
    order = ordering.Order(1000, seed=3, window=window)
    expected = np.concatenate(
        [sorted_at_once(1000, seed=3, epoch=e, window=window) for e in range(3)]
    )
    for position, count in [(0, 3000), (990, 20), (1500, 1), (5, 0)]:
        found = order.indices(position, count)
        assert found.tolist() == expected[position : position + count].tolist()


def test_a_large_epoch_is_never_in_memory_as_a_whole(monkeypatch):
    monkeypatch.setattr(ordering, "_ROWS_PER_PART", 1000)
    monkeypatch.setattr(ordering, "_ROWS_PER_BLOCK", 512)
    sizes = []
    argsort = np.argsort
    monkeypatch.setattr(
        np, "argsort", lambda a, **k: sizes.append(len(a)) or argsort(a, **k)
    )
    order = ordering.Order(100_000, seed=0, window=0)
    assert len(set(order.indices(40_000, 5_000).tolist())) == 5_000
    # 5,000 positions are in at most 9 parts, and one more is sorted ahead.
    assert len(sizes) <= 10
    assert max(sizes) < 1200


def test_the_windows_of_a_pool_are_shuffled_together():
    order = ordering.Order(100, seed=5, window=10, windows_per_pool=4)
    pools = [order.indices(start, 40) for start in (0, 40)] + [order.indices(80, 20)]
    assert sorted(np.concatenate(pools).tolist()) == list(range(100))
    for start, pool in zip((0, 40, 80), pools, strict=True):
        windows = set((pool // 10).tolist())
        assert len(windows) == len(pool) // 10
        assert windows == {rows.start // 10 for rows in order.ranges(start, 1)}
        # The rows of a window do not follow each other.
        assert len(set((pool[:10] // 10).tolist())) > 1
