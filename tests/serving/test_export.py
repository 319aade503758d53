import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import packing
from bert_tf.serving import export
from bert_tf.serving import runs

TEXTS = ["the rain in spain", "Crème brûlée", "中文", "", "word " * 40]

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
import tensorflow as tf
# `import tensorflow_text` imports Keras; a server loads the libraries of its ops.
folder = importlib.util.find_spec("tensorflow_text").submodule_search_locations[0]
for path in glob.glob(folder + "/python/ops/_*.so"):
    tf.load_op_library(path)

answers = []
for request in json.loads(sys.argv[1]):
    model = tf.saved_model.load(request["export_dir"])
    texts = {name: tf.constant(values) for name, values in request["texts"].items()}
    ids = {name: tf.constant(rows, tf.int32) for name, rows in request["ids"].items()}
    by_text = model.signatures["serving_default"](**texts)
    by_ids = model.signatures["ids"](**ids)
    answers.append({
        "label": [label.decode() for label in by_text["label"].numpy()],
        "probabilities": by_text["probabilities"].numpy().tolist(),
        "logits": by_ids["logits"].numpy().tolist(),
    })
assert not [name for name in sys.modules if name.split(".")[0] in ("bert_tf", "keras")]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(single_run, single_export, pair_run, pair_export):
    """What the model and its export say to TEXTS, by kind of run."""
    runs_of = {"single": (single_run, single_export), "pair": (pair_run, pair_export)}
    requests, expected = [], {}
    for kind, (run_dir, export_dir) in runs_of.items():
        classifier = runs.load(run_dir)
        texts = {"text": TEXTS}
        if classifier.task.is_pair:
            texts["text_b"] = TEXTS[::-1]
        features = packing.pack(
            classifier.tokenizer,
            TEXTS,
            texts_b=texts.get("text_b"),
            max_seq_length=16,
        )
        ids = {name: column.tolist() for name, column in features.items()}
        requests.append({"export_dir": export_dir, "texts": texts, "ids": ids})
        expected[kind] = (classifier.task.labels, classifier.model(features))
    found = ask_bare_process(requests)
    return {kind: (*expected[kind], found[i]) for i, kind in enumerate(runs_of)}


def ask_bare_process(requests):
    done = subprocess.run(
        [sys.executable, "-c", BARE_PROCESS, json.dumps(requests)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["single", "pair"])
def test_an_export_answers_as_the_model_where_only_tensorflow_is(kind, answers):
    labels, expected, found = answers[kind]
    np.testing.assert_allclose(found["logits"], expected["logits"], atol=1e-5)
    np.testing.assert_allclose(
        found["probabilities"], expected["probabilities"], atol=1e-5
    )
    best = np.argmax(expected["probabilities"], axis=1)
    assert found["label"] == [labels[index] for index in best]


def test_the_export_has_the_signatures_that_servers_call(pair_export):
    signatures = tf.saved_model.load(pair_export).signatures
    shapes = {
        name: {
            key: (spec.dtype.name, spec.shape.as_list())
            for key, spec in signatures[name].structured_input_signature[1].items()
        }
        for name in signatures
    }
    assert shapes == {
        "serving_default": {
            "text": ("string", [None]),
            "text_b": ("string", [None]),
        },
        "ids": {
            "input_ids": ("int32", [None, None]),
            "input_mask": ("int32", [None, None]),
            "segment_ids": ("int32", [None, None]),
        },
        "labels": {"text": ("string", [None])},
    }
    assert set(signatures["serving_default"].structured_outputs) == {
        "label",
        "probabilities",
    }


def test_the_export_uses_no_op_that_servers_lack(pair_export):
    # Of TensorFlow Text's only two, which its release 2.12 in older servers has.
    text_ops = {"FastBertNormalize", "FastWordpieceTokenizeWithOffsets"}
    model = tf.saved_model.load(pair_export)
    graph = model.signatures["serving_default"].graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    ops = {node.op for node in nodes}
    core_ops = {"Const", *dir(tf.raw_ops)} - {"EagerPyFunc", "PyFunc"}
    assert ops - core_ops == text_ops


def test_the_runs_settings_lie_beside_the_graph(single_export):
    extra = pathlib.Path(single_export) / "assets.extra"
    assert sorted(path.name for path in extra.iterdir()) == [
        "bert_config.json",
        "task.json",
        "vocab.txt",
    ]
    task = json.loads((extra / "task.json").read_text(encoding="utf-8"))
    assert task["labels"] == ["rain", "snow", "été"]


@pytest.mark.parametrize("place", ["save", "copy"])
def test_a_failed_export_leaves_nothing(single_run, tmp_path, monkeypatch, place):
    def fail(*unused, **also_unused):
        raise OSError("disk full")

    if place == "save":
        monkeypatch.setattr(tf.saved_model, "save", fail)
    else:
        monkeypatch.setattr(export, "RUN_FILES", ("task.json", "gone.txt"))
    with pytest.raises(OSError, match=r"disk full|gone\.txt"):
        export.export_saved_model(single_run, str(tmp_path / "new" / "1"))
    assert list((tmp_path / "new").iterdir()) == []


def test_an_interrupted_export_leaves_nothing(single_run, tmp_path, monkeypatch):
    def interrupt(*unused, **also_unused):
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model, "save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export.export_saved_model(single_run, str(tmp_path / "1"))
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_replaces_another_one(single_run, tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"older")
    with pytest.raises(ValueError, match="is not empty"):
        export.export_saved_model(single_run, str(tmp_path / "1"))
    assert (tmp_path / "1" / "saved_model.pb").read_bytes() == b"older"


def test_an_empty_folder_is_filled(single_run, tmp_path):
    export.export_saved_model(single_run, str(tmp_path / "1") + "/")
    assert (tmp_path / "1" / "saved_model.pb").exists()


def test_a_file_in_the_way_is_named(single_run, tmp_path):
    (tmp_path / "1").write_text("a file")
    with pytest.raises(NotADirectoryError, match="is a file; expected a new folder"):
        export.export_saved_model(single_run, str(tmp_path / "1"))


def test_a_remote_folder_gets_its_model_file_last(single_run, monkeypatch):
    written = []
    original = export.files.complete_or_absent

    def record(path, mode="w"):
        written.append(str(path))
        return original(path, mode)

    monkeypatch.setattr(export.files, "complete_or_absent", record)
    export.export_saved_model(single_run, "ram://exports/1")
    assert written[-1] == "ram://exports/1/saved_model.pb"
    assert tf.saved_model.load("ram://exports/1").signatures["ids"] is not None


def test_a_run_of_another_task_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "load", lambda run_dir: object())
    with pytest.raises(ValueError, match="run is no run of a classifier"):
        export.export_saved_model("run", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
