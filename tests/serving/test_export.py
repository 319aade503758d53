import json
import pathlib
import shutil
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import packing
from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from tests import ring
from tests import runs

TEXTS = ["the rain in spain", "Crème brûlée", "中文", "", "word, rain! " * 40]
KINDS = ("single", "pair", "choice", "squad", "tags", "masks")
MASKED = ["the [MASK] of [MASK]", "the[MASK]of 中文", "[MASK]"]

# As on a machine that has TensorFlow and its Text ops, but neither this package nor
# Keras: no finder finds them.
BARE_PROCESS = """
import glob, importlib.util, json, sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("bert_tf", "keras", "tf_keras"):
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
import numpy as np
import tensorflow as tf
# `import tensorflow_text` imports Keras; a server loads the libraries of its ops.
folder = importlib.util.find_spec("tensorflow_text").submodule_search_locations[0]
for path in glob.glob(folder + "/python/ops/_*.so"):
    tf.load_op_library(path)

def in_session(export_dir, name, inputs):
    # A model server runs the initializers of the graph in a session, too.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], export_dir)
        definition = loaded.signature_def[name]
        outputs = {key: info.name for key, info in definition.outputs.items()}
        feeds = {definition.inputs[key].name: rows for key, rows in inputs.items()}
        return session.run(outputs, feeds)

def loaded(export_dir, name, inputs):
    signature = tf.saved_model.load(export_dir).signatures[name]
    inputs = {key: tf.constant(rows) for key, rows in inputs.items()}
    return {key: values.numpy() for key, values in signature(**inputs).items()}

decode = np.vectorize(bytes.decode, otypes=[object])
answers = []
for export_dir, name, inputs in json.loads(sys.argv[1]):
    outputs = (loaded if name == "ids" else in_session)(export_dir, name, inputs)
    answers.append({
        key: (decode(values) if values.dtype == object else values).tolist()
        for key, values in outputs.items()
    })
assert not [name for name in sys.modules if name.split(".")[0] in ("bert_tf", "keras")]
print(json.dumps(answers))
"""


def in_a_bare_process(export_dir, requests):
    """Returns the outputs of requests, inputs by the name of their signature."""
    asked = [(export_dir, name, inputs) for name, inputs in requests.items()]
    done = subprocess.run(
        [sys.executable, "-c", BARE_PROCESS, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(requests, json.loads(done.stdout), strict=True))


def inputs_of(kind, tokenizer):
    """Returns the columns of texts, and the ids of the same texts."""
    texts = MASKED if kind == "masks" else TEXTS
    pairs = TEXTS[::-1] if kind in ("pair", "squad", "choice") else None
    ids = packing.pack(tokenizer, texts, texts_b=pairs, max_seq_length=16)
    columns = {"text": texts}
    if kind == "pair":
        columns["text_b"] = pairs
    elif kind == "squad":
        columns = {"question": texts, "context": pairs}
    elif kind == "choice":
        columns["endings"] = [["rain", "in spain"]] * len(TEXTS)
    ids = {name: column.tolist() for name, column in ids.items()}
    return {"serving_default": columns, "ids": ids}


@pytest.mark.parametrize("kind", ring.quick("single", of=KINDS))
def test_answers_are_the_same_where_only_tensorflow_is(kind, exports, signatures):
    run_dir, export_dir = exports[kind]
    predictor = predictors.load(run_dir)
    requests = inputs_of(kind, predictor.tokenizer)
    answers = in_a_bare_process(export_dir, requests)
    for name, inputs in requests.items():
        columns = {key: tf.constant(rows) for key, rows in inputs.items()}
        expected = signatures[kind][name](**columns)
        assert set(answers[name]) == set(expected)
        for key, values in expected.items():
            values = values.numpy()
            if values.dtype == object:
                values = np.vectorize(bytes.decode, otypes=[object])(values)
            runs.assert_close(answers[name][key], values.tolist())
    # The signature `ids` gives what the model gives.
    if kind == "masks":
        # [CLS] is at position 0; [MASK] splits a word.
        assert answers["ids"]["positions"] == [[2, 4], [2, -1], [1, -1]]
        assert answers["ids"]["num_masks"] == [2, 1, 1]
        return
    features = {key: np.array(rows, np.int32) for key, rows in requests["ids"].items()}
    if kind == "choice":
        outputs = {"scores": predictor.model.scores(features)}
    else:
        outputs = predictor.model(features)
    for key, values in answers["ids"].items():
        np.testing.assert_allclose(values, outputs[key], atol=1e-5)


@pytest.mark.parametrize("kind", ring.quick("single", of=KINDS))
def test_the_export_uses_no_op_that_servers_lack(kind, signatures):
    # Of TensorFlow Text's only two, which its release 2.12 in older servers has.
    text_ops = {"FastBertNormalize", "FastWordpieceTokenizeWithOffsets"}
    graph = signatures[kind]["serving_default"].graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    ops = {node.op for node in nodes}
    core_ops = {"Const", *dir(tf.raw_ops)} - {"EagerPyFunc", "PyFunc"}
    assert ops - core_ops == text_ops


def test_the_runs_settings_lie_beside_the_graph(single_export):
    extra = pathlib.Path(single_export) / "assets.extra"
    assert sorted(path.name for path in extra.iterdir()) == [
        "bert_config.json",
        "labels.txt",
        "task.json",
        "tf_serving_warmup_requests",
        "vocab.txt",
    ]
    labels = (extra / "labels.txt").read_text(encoding="utf-8")
    assert labels == "rain\nsnow\nété\n"
    task = json.loads((extra / "task.json").read_text(encoding="utf-8"))
    assert task["labels"] == ["rain", "snow", "été"]


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_a_failed_export_leaves_nothing(single_run, tmp_path, monkeypatch, failure):
    def fail(*unused, **also_unused):
        raise failure

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(failure):
        export.export_saved_model(single_run, str(tmp_path / "new" / "1"))
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_replaces_another_one(single_run, tmp_path):
    (tmp_path / "1").mkdir()
    older = tmp_path / "1" / "saved_model.pb"
    older.write_bytes(b"older")
    with pytest.raises(ValueError, match="is not empty"):
        export.export_saved_model(single_run, str(tmp_path / "1"))
    with pytest.raises(NotADirectoryError, match="is a file; expected a new folder"):
        export.export_saved_model(single_run, str(older))
    assert older.read_bytes() == b"older"


def test_each_export_is_the_next_version(single_run, single_export, tmp_path):
    model = tmp_path / "topics"
    shutil.copytree(single_export, model / "1")
    options = serving_options.ExportSavedModelOptions(
        output_dir=single_run, export_dir=str(model)
    )
    assert "/topics/2 (" in export.run(options)
    assert sorted(path.name for path in model.iterdir()) == ["1", "2"]
    latest = client.open_saved_model(str(model))
    assert len(latest.ask(text=["the rain"])[0]["probabilities"]) == 3


@pytest.mark.slow
def test_a_remote_folder_gets_its_model_file_last(single_run, monkeypatch):
    write = mock.Mock(side_effect=export.files.complete_or_absent)
    monkeypatch.setattr(export.files, "complete_or_absent", write)
    export.export_saved_model(single_run, "ram://exports/1")
    assert str(write.call_args.args[0]) == "ram://exports/1/saved_model.pb"
    assert tf.saved_model.load("ram://exports/1").signatures["ids"] is not None
