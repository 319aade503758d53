"""Exports answer through TensorFlow's C API as they do in Python."""

import importlib.util
import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from bert_tf.serving import export
from bert_tf.tasks.retrieval import features

pytestmark = pytest.mark.slow

SCRIPT = str(pathlib.Path(__file__).with_name("c_api_session.py"))
TEXTS = ["the rain in spain", "Crème brûlée", "", "the [MASK] of 中文, " * 40]
INPUTS = {
    "text": TEXTS,
    "text_b": TEXTS[::-1],
    "question": ["where?"] * len(TEXTS),
    "context": TEXTS,
    "endings": [["rain", "été", ""]] * len(TEXTS),
    "input_ids": [[101, 7, 9, 102, 0], [101, 8, 102, 0, 0]],
    "input_mask": [[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]],
    "segment_ids": [[0, 0, 1, 1, 0], [0, 0, 0, 0, 0]],
}


@pytest.fixture(scope="module")
def all_exports(exports, write_model, tmp_path_factory):
    """Folders of exports by kind, those of retrieval included."""
    found = {kind: folder for kind, (_, folder) in exports.items()}
    for model, values in (
        ("bi_encoder", {"pooling": "mean", "temperature": 0.05}),
        ("cross_encoder", {}),
    ):
        task = features.Record(
            model=model,
            max_query_length=8,
            max_seq_length=16,
            do_lower_case=True,
            **values,
        )
        folder = tmp_path_factory.mktemp(model)
        run_dir = write_model(str(folder / "run"), task.create_model, task)
        found[model] = export.export_saved_model(run_dir, str(folder / "1"))
    return found


@pytest.mark.parametrize(
    "kind",
    [
        *("single", "pair", "choice", "squad", "tags", "masks"),
        *("bi_encoder", "cross_encoder"),
    ],
)
def test_a_session_of_the_c_api_answers_as_python_does(all_exports, tmp_path, kind):
    folder = all_exports[kind]
    calls, expected = [], []
    definitions = signature_definitions(folder)
    for name, function in tf.saved_model.load(folder).signatures.items():
        definition = definitions[name]
        inputs = {
            key: tf.constant(INPUTS[key], spec.dtype)
            for key, spec in function.structured_input_signature[1].items()
        }
        outputs = function(**inputs)
        expected += [(name, key, value.numpy()) for key, value in outputs.items()]
        calls.append(
            {
                "inputs": {
                    definition.inputs[key].name: as_json(value)
                    for key, value in inputs.items()
                },
                "outputs": [definition.outputs[key].name for key in outputs],
            }
        )
    found = run_session(tmp_path, folder, calls)
    for (name, key, values), flat in zip(
        expected, itertools.chain.from_iterable(found), strict=True
    ):
        if values.dtype == object:
            assert flat == [text.decode() for text in values.reshape(-1)], (name, key)
        else:
            np.testing.assert_allclose(flat, values.reshape(-1), atol=1e-5)


def signature_definitions(folder):
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((pathlib.Path(folder) / "saved_model.pb").read_bytes())
    return model.meta_graphs[0].signature_def


def as_json(tensor):
    values = tensor.numpy().reshape(-1).tolist()
    if tensor.dtype == tf.string:
        values = [text.decode() for text in values]
    return {
        "dtype": tensor.dtype.as_datatype_enum,
        "shape": tensor.shape.as_list(),
        "values": values,
    }


def run_session(tmp_path, folder, calls):
    """Returns the answers of a process without TensorFlow's Python.

    BERT_TF_SITE_PACKAGES is the site-packages folder of another environment whose
    TensorFlow is to be used; it needs tensorflow-text, too.
    """
    own = importlib.util.find_spec("tensorflow").submodule_search_locations[0]
    site_packages = os.environ.get("BERT_TF_SITE_PACKAGES", os.path.dirname(own))
    requests = tmp_path / "requests.json"
    requests.write_text(json.dumps({"export_dir": folder, "calls": calls}))
    done = subprocess.run(
        [sys.executable, "-S", SCRIPT, site_packages, str(requests)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
