"""Warm-up requests: what a server reads, and that every signature answers them."""

import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from bert_tf.serving import export
from bert_tf.serving import warm_up


def read(data):
    """Returns the fields of a protocol buffer that has only length-delimited ones."""
    found, place = [], 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key, length = varint(), varint()
        assert key & 7 == 2
        found.append((key >> 3, data[place : place + length]))
        place += length
    return found


def request_of(record):
    """Returns signature and inputs of a `PredictionLog`."""
    [(number, log)] = read(record)
    assert number == 6
    [(number, request)] = read(log)
    assert number == 1
    [(first, spec), *entries] = read(request)
    assert first == 1
    [(number, signature)] = read(spec)
    assert number == 3
    inputs = {}
    for number, entry in entries:
        assert number == 2
        (_, name), (_, tensor) = read(entry)
        proto = tensor_pb2.TensorProto.FromString(tensor)
        inputs[name.decode()] = tf.constant(tf.make_ndarray(proto))
    return signature.decode(), inputs


@pytest.mark.parametrize("kind", ["single", "pair", "choice", "squad", "tags", "masks"])
def test_every_signature_answers_its_warm_up_requests(exports, kind):
    folder = exports[kind][1]
    signatures = tf.saved_model.load(folder).signatures
    path = f"{folder}/{export.EXTRA_FOLDER}/{warm_up.FILE}"
    asked = {}
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        name, inputs = request_of(record)
        answer = signatures[name](**inputs)
        rows = {int(values.shape[0]) for values in (*inputs.values(), *answer.values())}
        assert len(rows) == 1
        asked.setdefault(name, []).extend(rows)
        texts = inputs.get("text", inputs.get("context"))
        if texts is not None and len(texts) > 1:
            assert len({len(text) for text in texts.numpy()}) > 2
            assert any(not text.isascii() for text in texts.numpy())
    assert asked == {name: [1, 4, 32] for name in signatures}


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
