"""Long inputs are applied in parts, each only as long as its longest text."""

import types

import numpy as np

from bert_tf.fine_tuning import predictor as fine_tuning_predictor


def test_rows_come_back_in_order_and_no_part_has_needless_padding(monkeypatch):
    monkeypatch.setattr(fine_tuning_predictor, "ROW_LENGTH", 3)
    mask = np.array(
        [
            [1, 1, 0, 0],
            [1, 0, 0, 0],
            [1, 1, 1, 0],
            [1, 0, 0, 0],
            [1, 0, 0, 0],
        ]
    )
    features = {"input_ids": np.arange(20).reshape(5, 4), "input_mask": mask}
    shapes = []

    def first_ids(part):
        assert part["input_mask"].shape == part["input_ids"].shape
        shapes.append(part["input_ids"].shape)
        return part["input_ids"][:, 0]

    two_rows = types.SimpleNamespace(batch_size=2)
    found = fine_tuning_predictor.Predictor._applied(two_rows, first_ids, features)
    assert found.tolist() == [0, 4, 8, 12, 16]
    assert shapes == [(2, 3), (3, 1)]


def test_batches_of_rows_have_about_as_many_pieces():
    assert fine_tuning_predictor.row_batches([64, 256, 64, 128, 64], 2) == [
        [1],
        [3, 0],
        [2, 4],
    ]
    assert fine_tuning_predictor.row_batches([512], 1) == [[0]]  # At least one row.
    assert fine_tuning_predictor.row_batches([], 2) == []
