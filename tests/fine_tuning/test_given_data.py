"""Texts in the forms that a user passes."""

import numpy as np
import pytest

from bert_tf.fine_tuning import given_data

TEXTS = ["wet, cold", "dry"]


def forms(folder):
    """Yields the same texts in each form."""
    yield iter(TEXTS)
    yield np.array(TEXTS)
    yield {"text": TEXTS, "id": [1, 2]}
    table = folder / "t.csv"
    table.write_text('id,text\n1,"wet, cold"\n2,dry\n')
    yield table
    lines = folder / "t.jsonl"
    lines.write_text('{"text": "wet, cold"}\n{"text": "dry"}\n')
    yield str(lines)


def test_texts_may_be_in_a_list_or_a_table(tmp_path):
    for inputs in forms(tmp_path):
        assert given_data.texts_of(inputs, "text") == TEXTS


def test_texts_may_be_in_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"body": TEXTS, "id": [1, 2]})
    assert given_data.texts_of(frame, "body") == TEXTS


@pytest.mark.parametrize(
    "inputs, message",
    [
        ("wet", "Expected a list of texts, a table, or the path .*, got one string"),
        (7, "Expected a list of texts, a table, .*, got a value of type int"),
        (["wet", ("é", "a\ud800")], "Input 1 has half of a surrogate pair"),
        ({"body": ["wet"]}, "Row 1 has no column 'text'; its columns are 'body'"),
    ],
)
def test_other_inputs_are_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        given_data.texts_of(inputs, "text")


def test_a_file_needs_the_column(tmp_path):
    (tmp_path / "t.csv").write_text("body\nwet\n")
    with pytest.raises(ValueError, match="text"):
        given_data.texts_of(tmp_path / "t.csv", "text")
