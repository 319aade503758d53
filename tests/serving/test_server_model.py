import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.serving import server_model
from bert_tf.serving import warm_up_file


@pytest.fixture(scope="module")
def model(single_export):
    return server_model.LoadedModel(single_export)


def text_request(*texts):
    return {"signature": "serving_default", "inputs": {"text": np.array(texts, object)}}


def ids_request(ids):
    ids = np.array([ids], np.int32)
    inputs = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
    }
    return {"signature": "ids", "inputs": inputs}


def test_requests_are_computed_together_and_answered_apart(model):
    requests = [
        text_request("rain", "the a"),
        ids_request([2, 9, 3]),
        text_request("été"),
        text_request(),
        ids_request([2, 9, 9, 3]),  # Another length, so another call.
        ids_request([2, 8, 3]),
    ]
    answers = model.answers(requests, 32)
    assert [answer["rows"] for answer in answers] == [3, 2, 3, 3, 1, 2]
    for request, answer in zip(requests, answers, strict=True):
        [alone] = model.answers([request], 1)
        for name, value in alone["outputs"].items():
            found = answer["outputs"][name]
            assert found.shape == value.shape
            if value.dtype == object:
                assert found.tolist() == value.tolist()
            else:
                np.testing.assert_allclose(found, value, atol=1e-5)


def test_rows_of_several_requests_are_limited(model):
    requests = [text_request(*"abc"), text_request(*"ab"), text_request(*"abcdef")]
    rows = [answer["rows"] for answer in model.answers(requests, 4)]
    assert rows == [3, 2, 6]
    rows = [answer["rows"] for answer in model.answers(requests, 5)]
    assert rows == [5, 5, 6]


def test_a_long_text_does_not_widen_the_answers_to_others(exports, monkeypatch):
    monkeypatch.setattr(server_model, "_MAX_PADDED_BYTES", 40)
    tagger = server_model.LoadedModel(exports["tags"][1])
    requests = [text_request(text) for text in ("the rain", "rain " * 9, "a", "été")]
    answers = tagger.answers(requests, 32)
    assert [answer["rows"] for answer in answers] == [1, 1, 2, 2]
    assert [answer["outputs"]["words"].shape[1] for answer in answers] == [2, 9, 1, 1]


def test_a_bad_request_fails_alone(model):
    good, bad = ids_request([2, 9, 3]), ids_request([2, 10**6, 3])
    answers = model.answers([good, bad, good], 32)
    assert [sorted(answer)[0] for answer in answers] == ["outputs", "error", "outputs"]
    assert answers[1]["is_invalid"]
    assert "input_ids must be at least 0" in answers[1]["error"]


def test_warm_up_requests_are_replayed_while_the_model_is_loaded(
    single_export, monkeypatch, tmp_path
):
    asked = []
    answers = server_model.LoadedModel.answers

    def recorded(self, requests, max_rows):
        asked.extend(request["signature"] for request in requests)
        return answers(self, requests, max_rows)

    monkeypatch.setattr(server_model.LoadedModel, "answers", recorded)
    server_model.LoadedModel(single_export)
    assert sorted(asked) == ["ids"] * 3 + ["labels"] * 3 + ["serving_default"] * 3
    folder = shutil.copytree(single_export, tmp_path / "1")
    path = folder.joinpath(*warm_up_file.PATH)
    with tf.io.TFRecordWriter(str(path)) as writer:
        ids = ids_request([2, 10**6, 3])
        writer.write(warm_up_file.prediction_log("ids", ids["inputs"]))
    with pytest.raises(OSError, match="failed a warm-up request to its signature ids"):
        server_model.LoadedModel(str(folder))
    path.unlink()  # As in an export of an earlier version.
    asked.clear()
    server_model.LoadedModel(str(folder))
    assert sorted(asked) == ["labels", "serving_default"]
