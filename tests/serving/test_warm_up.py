"""Warm-up requests: what a server reads, and that every signature answers them."""

import os
import pathlib

import pytest
import tensorflow as tf

from bert_tf.serving import warm_up


@pytest.mark.parametrize("kind", ["single", "pair", "choice", "squad", "tags", "masks"])
def test_every_signature_answers_its_warm_up_requests(exports, signatures, kind):
    functions, asked = signatures[kind], {}
    for name, arrays in warm_up.read(os.path.join(exports[kind][1], *warm_up.PATH)):
        inputs = {key: tf.constant(array) for key, array in arrays.items()}
        answer = functions[name](**inputs)
        rows = {int(values.shape[0]) for values in (*inputs.values(), *answer.values())}
        assert len(rows) == 1
        asked.setdefault(name, []).extend(rows)
        texts = inputs.get("text", inputs.get("context"))
        if texts is not None and len(texts) > 1:
            assert len({len(text) for text in texts.numpy()}) > 2
            assert any(not text.isascii() for text in texts.numpy())
    assert asked == {name: [1, 4, 32] for name in functions}


def test_the_serving_library_reads_a_warm_up_request():
    prediction_log_pb2 = pytest.importorskip(
        "tensorflow_serving.apis.prediction_log_pb2",
        reason="needs tensorflow-serving-api",
    )
    texts = tf.constant(["été " * 100, ""])  # Longer than 127 bytes.
    record = warm_up.prediction_log("query", {"text": texts})
    request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
    assert request.model_spec.signature_name == "query"
    assert list(request.inputs) == ["text"]
    found = tf.make_ndarray(request.inputs["text"]).tolist()
    assert found == texts.numpy().tolist()


def test_a_damaged_file_is_refused(exports, tmp_path):
    content = pathlib.Path(exports["single"][1], *warm_up.PATH).read_bytes()
    path = tmp_path / "requests"
    for damaged in (content[:-5], content[:20] + b"x" + content[21:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged; export the model again"):
            warm_up.read(str(path))
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"\x32\x7f\x0a")
    with pytest.raises(ValueError, match="is damaged; export the model again"):
        warm_up.read(str(path))
