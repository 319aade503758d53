import numpy as np
import pytest

from bert_tf.serving import loaded_model


@pytest.fixture(scope="module")
def signatures(single_export):
    return loaded_model.LoadedModel(loaded_model.load(single_export)).signatures


def test_inputs_become_arrays(signatures, exports):
    assert sorted(signatures) == ["ids", "labels", "serving_default"]
    choice = loaded_model.LoadedModel(loaded_model.load(exports["choice"][1]))
    arrays = choice.signatures["serving_default"].arrays(
        {"text": ["She"], "endings": [["sat", "é"]]}
    )
    assert arrays["endings"].tolist() == [[b"sat", "é".encode()]]


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"text_b": ["a"]}, "takes text, got text_b"),
        ({"text": "a"}, "text: expected a list of Unicode texts, got 'a'"),
        ({"text": [1]}, r"text\[0\]: expected Unicode text, got 1\."),
        ({"text": ["a", ["b"]]}, r"text\[1\]: expected Unicode text, got \['b'\]"),
        (["é", "\ud800"], r"text\[1\]: expected Unicode text, got '\\ud800'"),
    ],
)
def test_inputs_that_are_no_texts_are_refused(signatures, inputs, message):
    with pytest.raises(ValueError, match=message):
        signatures["serving_default"].arrays(inputs)


@pytest.mark.parametrize(
    "ids, message",
    [
        ([[1, 2], [3, 4], [3]], r"input_ids\[2\]: .* all of one length, got \[3\]\."),
        ([[1], [True]], r"input_ids\[1\]\[0\]: .* whole number \(int32\), got True\."),
        ([[1], [2], [2**40]], r"input_ids\[2\]\[0\]: .* whole number .* got 1099"),
        ([[2**70]], r"input_ids\[0\]\[0\]: expected whole number \(int32\), got"),
        ([1], r"input_ids\[0\]: expected .* non-empty lists of .* got 1\."),
        ([[], []], r"input_ids\[0\]: .* list of non-empty lists .* got \[\]"),
        ([[1], []], r"input_ids\[1\]: expected a list of non-empty lists"),
        ([[1, 1, 1]] * 2, r"must have the same length, got .*2 of input_ids"),
    ],
)
def test_inputs_that_are_no_ids_are_refused(signatures, ids, message):
    rest = {name: [[1, 1, 1]] for name in signatures["ids"].inputs}
    with pytest.raises(ValueError, match=message):
        signatures["ids"].arrays(rest | {"input_ids": ids})


def test_no_rows_are_rows(signatures):
    names = signatures["ids"].inputs
    arrays = signatures["ids"].arrays({name: [] for name in names})
    assert {array.shape for array in arrays.values()} == {(0, 0)}
    assert arrays["input_ids"].dtype == np.int32
