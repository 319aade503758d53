import base64

import numpy as np
import pytest

from bert_tf.serving import saved_signatures
from bert_tf.serving import server_replies

OUTPUTS = {
    "probabilities": np.array([[0.25, 0.75], [0.5, 0.5]], np.float32),
    "label": np.array(["été".encode(), b"b"], object),
}
VECTORS = np.array([[0.5, 1.0]], np.float32)


def test_a_prediction_has_the_form_of_its_request():
    assert server_replies.prediction({"inputs": []}, OUTPUTS) == {
        "outputs": {
            "label": ["été", "b"],
            "probabilities": [[0.25, 0.75], [0.5, 0.5]],
        }
    }
    assert server_replies.prediction({"instances": []}, OUTPUTS) == {
        "predictions": [
            {"label": "été", "probabilities": [0.25, 0.75]},
            {"label": "b", "probabilities": [0.5, 0.5]},
        ]
    }


def test_the_only_output_has_no_name():
    only = {"embedding": VECTORS}
    assert server_replies.prediction({"inputs": []}, only) == {"outputs": [[0.5, 1.0]]}
    expected = {"predictions": [[0.5, 1.0]]}
    assert server_replies.prediction({"instances": []}, only) == expected


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": {"text": ["a", "b"]}},
        {"inputs": ["a", "b"]},
        {"instances": ["a", "b"]},
        {"instances": [{"text": "a"}, {"text": "b"}]},
    ],
)
def test_a_request_has_columns_or_rows(single_export, body):
    signature = saved_signatures.read(single_export)["serving_default"]
    columns = server_replies.columns_of(body, signature)
    assert columns["text"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "body, message",
    [
        ({}, "Expected either inputs or instances"),
        ({"inputs": ["a"], "instances": ["a"]}, "Expected either inputs or instances"),
        ({"instances": "a"}, "instances must be a list"),
        ({"instances": [{"text": "a"}, "b"]}, "must have the same names"),
    ],
)
def test_a_malformed_request_is_refused(single_export, body, message):
    signature = saved_signatures.read(single_export)["serving_default"]
    with pytest.raises(ValueError, match=message):
        server_replies.columns_of(body, signature)


def test_embeddings_have_openai_s_form():
    reply = server_replies.embeddings({}, VECTORS, "m")
    assert reply["data"] == [
        {"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}
    ]
    assert (reply["object"], reply["model"]) == ("list", "m")
    packed = server_replies.embeddings({"encoding_format": "base64"}, VECTORS, "m")
    content = base64.b64decode(packed["data"][0]["embedding"])
    assert np.frombuffer(content, "<f4").tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "body, error, message",
    [
        ({"input": []}, ValueError, "input must be a text or a list of texts"),
        ({"input": "a", "model": "n"}, LookupError, "'n' does not exist; it is m"),
        ({"input": "a", "encoding_format": "int8"}, ValueError, "float or base64"),
    ],
)
def test_a_request_for_embeddings_is_checked(body, error, message):
    with pytest.raises(error, match=message):
        server_replies.texts_to_embed(body, "m")


def test_null_is_the_default_of_embeddings():
    body = {"input": "a", "encoding_format": None, "dimensions": None}
    assert server_replies.texts_to_embed(body, "m") == ["a"]
    server_replies.check_dimensions(body, 2)
    reply = server_replies.embeddings(body, VECTORS, "m")
    assert reply["data"][0]["embedding"] == [0.5, 1.0]
