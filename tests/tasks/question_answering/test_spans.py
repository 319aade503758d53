import numpy as np
import pytest

from bert_tf.tasks.question_answering import spans


@pytest.mark.parametrize("count", [1, 3, 6, 20])
@pytest.mark.parametrize(
    "logits",
    [
        [0.5, -2.0, 3.0, 0.5, -1.0, 0.5],  # Equal ones keep their order.
        [-0.0, 0.0, -0.0, 1e-40, -1e-40, 0.0],  # Both zeros are equal.
        [-1e4, -1e4, -3.4e38, 3.4e38, -1e4, 7.0],  # Masked, and very large.
        [0.0, np.nan, 2.0, -np.nan, -1.0, 3.0],  # NaN comes last.
    ],
)
def test_best_places_are_those_of_a_stable_sort(logits, count):
    rows = np.array([logits, logits[::-1]], np.float32)
    expected = np.argsort(-rows, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(spans._best_places(rows, count), expected)
