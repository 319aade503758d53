"""Warm-up requests: what a server reads, and that every signature answers them."""

import os

import pytest
import tensorflow as tf

from bert_tf.serving import warm_up
from tests import ring

KINDS = ("single", "pair", "choice", "squad", "tags", "masks")

prediction_log_pb2 = pytest.importorskip(
    "tensorflow_serving.apis.prediction_log_pb2",
    reason="needs tensorflow-serving-api",
)


@pytest.mark.parametrize("kind", ring.quick("single", of=KINDS))
def test_every_signature_answers_its_warm_up_requests(exports, signatures, kind):
    functions, asked = signatures[kind], {}
    path = os.path.join(exports[kind][1], *warm_up.PATH)
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        request = log.predict_log.request
        name = request.model_spec.signature_name
        inputs = {
            key: tf.constant(tf.make_ndarray(value))
            for key, value in request.inputs.items()
        }
        answer = functions[name](**inputs)
        rows = {int(values.shape[0]) for values in (*inputs.values(), *answer.values())}
        assert len(rows) == 1
        asked.setdefault(name, []).extend(rows)
        texts = inputs.get("text", inputs.get("context"))
        if texts is not None and len(texts) > 1:
            assert len({len(text) for text in texts.numpy()}) > 2
            assert any(not text.isascii() for text in texts.numpy())
    assert asked == {name: [1, 4, 32] for name in functions}
