"""Texts in the forms that a user passes."""

import numpy as np
import pytest

from bert_tf.fine_tuning import given_data

TEXTS = ["wet, cold", "dry"]
EXPECTED = "a list of texts"


def test_texts_may_be_in_any_iterable():
    assert given_data.read(iter(TEXTS), EXPECTED) == TEXTS
    assert given_data.read(np.array(TEXTS), EXPECTED) == TEXTS


def test_texts_may_be_in_a_column_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"body": TEXTS, "id": [1, 2]})
    assert given_data.read(frame["body"], EXPECTED) == TEXTS


@pytest.mark.parametrize(
    "inputs, message",
    [
        ("wet", "Expected a list of texts, got one string"),
        (7, "Expected a list of texts, got a value of type int"),
        (["wet", ("é", "a\ud800")], "Input 1 has half of a surrogate pair"),
        ({"body": ["wet"]}, r"got a dict, .* pass a column, such as table\['text'\]"),
    ],
)
def test_other_inputs_are_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        given_data.read(inputs, EXPECTED)
