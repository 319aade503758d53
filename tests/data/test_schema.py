import numpy as np
import pytest

from bert_tf.data import schema as schema_module


def test_pretraining_schema_has_the_columns_of_the_release():
    columns = schema_module.pretraining(128, 20).columns
    assert [(c.name, c.length, c.dtype) for c in columns] == [
        ("input_ids", 128, "int32"),
        ("input_mask", 128, "int32"),
        ("segment_ids", 128, "int32"),
        ("masked_lm_positions", 20, "int32"),
        ("masked_lm_ids", 20, "int32"),
        ("masked_lm_weights", 20, "float32"),
        ("next_sentence_labels", 1, "int32"),
    ]
    assert "next_sentence_labels" not in schema_module.pretraining(128, 20, False)


def test_rows_says_which_column_has_another_shape():
    columns = schema_module.Schema(
        columns=(schema_module.Column(name="ids", length=3, dtype="int32"),)
    )
    assert columns.rows({"ids": np.zeros((5, 3))}) == 5
    with pytest.raises(ValueError, match=r"Column ids: expected .*\(5, 3\), got"):
        columns.rows({"ids": np.zeros((5, 4))})
    with pytest.raises(ValueError, match="Expected the columns ids, got other"):
        columns.rows({"other": np.zeros((5, 3))})
