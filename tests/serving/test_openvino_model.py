"""Exports answer alike with OpenVINO, which computes the model alone.

Most tests replace OpenVINO with TensorFlow, so that they also run without it.
"""

import sys

import numpy as np
import pytest

from bert_tf.fine_tuning import backends
from bert_tf.serving import export
from bert_tf.serving import export_layout
from bert_tf.serving import openvino_model
from bert_tf.serving import server_model
from tests import runs

pytestmark = pytest.mark.slow

TEXTS = ["the rain", "", "中文 été " * 20]
INPUTS = {
    "single": {"text": TEXTS},
    "pair": {"text": TEXTS, "text_b": TEXTS[::-1]},
    "choice": {"text": TEXTS, "endings": [["snow", "the rain"]] * 3},
    "squad": {"question": ["who ?"] * 3, "context": ["the rain", "a " * 90, "été"]},
    "tags": {"text": TEXTS},
}


@pytest.fixture
def calls(monkeypatch):
    """Shapes of the features that the stand-in for OpenVINO received, and policies."""
    calls = []

    def compiled(function, *, backend, policy):
        assert backend == "openvino"

        def compute(features):
            calls.append((features["input_ids"].shape, policy))
            return {name: value.numpy() for name, value in function(features).items()}

        return compute

    monkeypatch.setattr(backends, "import_package", lambda name: None)
    monkeypatch.setattr(backends, "compiled", compiled)
    return calls


def answer_to(model, inputs, signature="serving_default"):
    arrays = {
        name: np.array(values, object if signature != "ids" else np.int32)
        for name, values in inputs.items()
    }
    return model.compute(signature, arrays)


def assert_same_answers(export_dir, kind):
    models = [
        server_model.ServedModel(export_dir, backend)
        for backend in ("openvino", "tensorflow")
    ]
    for inputs in (INPUTS[kind], {name: [] for name in INPUTS[kind]}):
        if kind == "choice" and not inputs["text"]:
            continue
        answer, expected = (
            {key: rows.tolist() for key, rows in sorted(answer_to(one, inputs).items())}
            for one in models
        )
        runs.assert_close(answer, expected, absolute=1e-4)


@pytest.mark.parametrize("kind", INPUTS)
def test_the_model_is_replaced_and_the_answers_stay(exports, calls, kind):
    assert_same_answers(exports[kind][1], kind)
    assert len(calls) >= len(export_layout.BATCH_SIZES)
    assert {policy for _, policy in calls} == {"float32"}


@pytest.mark.parametrize("kind", ["single", "squad"])
def test_openvino_answers_as_tensorflow(exports, kind):
    pytest.importorskip("openvino", reason="needs the extra openvino")
    assert_same_answers(exports[kind][1], kind)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_export_in_another_dtype_is_refused(exports, monkeypatch, tmp_path, dtype):
    monkeypatch.setattr(backends, "import_package", lambda name: None)
    folder = export.export_saved_model(
        exports["single"][0], str(tmp_path / "1"), dtype=dtype
    )
    with pytest.raises(ValueError, match=f"--dtype={dtype}, but OpenVINO needs"):
        server_model.ServedModel(folder, "openvino")


@pytest.mark.parametrize(
    "ids, message",
    [
        ([2, 10**6, 3], "input_ids must be at least 0"),
        ([2] + [9] * 100 + [3], "A row has 102 positions"),
    ],
)
def test_ids_that_the_model_lacks_are_refused(exports, calls, ids, message):
    model = server_model.ServedModel(exports["single"][1], "openvino")
    inputs = {
        "input_ids": [ids],
        "input_mask": [[1] * len(ids)],
        "segment_ids": [[0] * len(ids)],
    }
    with pytest.raises(ValueError, match=message) as refused:
        answer_to(model, inputs, "ids")
    assert "Traceback" not in str(refused.value)


def test_masked_words_are_left_to_tensorflow(exports, calls):
    with pytest.raises(ValueError, match="fills masked words, which OpenVINO cannot"):
        openvino_model.load(exports["masks"][1])


def test_a_missing_package_is_named(exports, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ImportError, match=r"pip install 'bert_tf\[openvino\]'"):
        openvino_model.load(exports["single"][1])
