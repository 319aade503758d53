"""Folders of versions, and requests to warm up, as a server expects them."""

import os

import pytest
import tensorflow as tf

from bert_tf.serving import export_layout
from tests import ring

KINDS = ("single", "pair", "choice", "squad", "tags", "masks")


@pytest.fixture
def model(tmp_path):
    """Folder of a model with the versions 2 and 10, and a folder that is none."""
    for name in ("topics/2", "topics/10", "topics/11", "topics/server"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("topics/2", "topics/10"):
        (tmp_path / name / "saved_model.pb").write_text("")
    return str(tmp_path / "topics")


@pytest.mark.parametrize(
    "given, chosen",
    [
        ("new", "new/1"),
        ("new/", "new/1"),
        ("new/7", "new/7"),
        ("topics", "topics/11"),  # 11 was never finished.
        ("topics/12", "topics/12"),
        ("gpt-2", "gpt-2/1"),
    ],
)
def test_the_next_version_is_chosen(model, given, chosen):
    root = os.path.dirname(model)
    assert export_layout.next_folder(f"{root}/{given}") == f"{root}/{chosen}"


@pytest.mark.parametrize("name", ["v3", "1.0", "2026-11-22", "-1", "007", str(2**63)])
def test_a_name_that_is_almost_a_version_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="is not a version of TensorFlow Serving"):
        export_layout.next_folder(str(tmp_path / name))


def test_the_latest_version_is_found(model, tmp_path):
    assert export_layout.latest_folder(model) == f"{model}/10"
    assert export_layout.latest_folder(f"{model}/2") == f"{model}/2"
    with pytest.raises(FileNotFoundError, match="and no version of a model"):
        export_layout.latest_folder(str(tmp_path))


@pytest.mark.parametrize("kind", ring.quick("single", of=KINDS))
def test_every_signature_answers_its_warm_up_requests(exports, signatures, kind):
    prediction_log_pb2 = pytest.importorskip(
        "tensorflow_serving.apis.prediction_log_pb2",
        reason="needs tensorflow-serving-api",
    )
    functions, asked = signatures[kind], {}
    path = f"{exports[kind][1]}/assets.extra/tf_serving_warmup_requests"
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
