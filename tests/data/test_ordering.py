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
