"""The order of rows in training, with literal expected orders."""

import numpy as np
import pytest

from bert_tf.data import ordering


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
    # 5,000 positions are in at most 9 parts.
    assert len(sizes) <= 9
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
