import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import packing
from bert_tf.serving import export
from bert_tf.serving import predictors

TEXTS = ["the rain in spain", "Crème brûlée", "中文", "", "word, rain! " * 40]
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
import tensorflow as tf
# `import tensorflow_text` imports Keras; a server loads the libraries of its ops.
folder = importlib.util.find_spec("tensorflow_text").submodule_search_locations[0]
for path in glob.glob(folder + "/python/ops/_*.so"):
    tf.load_op_library(path)

def as_list(values):
    if values.dtype == tf.string:
        return [as_text(value) for value in values.numpy().tolist()]
    return values.numpy().tolist()

def as_text(value):
    return value.decode() if isinstance(value, bytes) else [as_text(v) for v in value]

answers = []
for export_dir, name, inputs in json.loads(sys.argv[1]):
    signature = tf.saved_model.load(export_dir).signatures[name]
    specs = signature.structured_input_signature[1]
    inputs = {key: tf.constant(rows, specs[key].dtype) for key, rows in inputs.items()}
    answers.append({k: as_list(values) for k, values in signature(**inputs).items()})
assert not [name for name in sys.modules if name.split(".")[0] in ("bert_tf", "keras")]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(exports):
    """What the model, and its export, say to TEXTS, and to their ids, by kind."""
    requests, expected = [], {}
    for kind, (run_dir, export_dir) in exports.items():
        trained = predictors.load(run_dir)
        features = ids_of(trained, kind)
        ids = {name: column.tolist() for name, column in features.items()}
        texts, answers = questions(trained, kind)
        requests += [
            (export_dir, "serving_default", texts),
            (export_dir, "ids", ids),
        ]
        if kind == "masks":
            of_ids = answers
        elif kind == "choice":
            of_ids = {"scores": trained.model.score_endings(features)}
        else:
            of_ids = trained.model(features)
        expected[kind] = (answers, of_ids)
    found = ask_bare_process(requests)
    return {
        kind: (*expected[kind], *found[2 * index : 2 * index + 2])
        for index, kind in enumerate(exports)
    }


def ids_of(trained, kind):
    if kind == "masks":
        return packing.pack(trained.tokenizer, MASKED, max_seq_length=16)
    pairs = TEXTS[::-1] if kind in ("pair", "squad", "choice") else None
    return packing.pack(trained.tokenizer, TEXTS, texts_b=pairs, max_seq_length=16)


def questions(trained, kind):
    """Returns the inputs of serving_default, and the run's own answers to them."""
    if kind == "pair":
        pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
        return {"text": TEXTS, "text_b": TEXTS[::-1]}, trained.predict(pairs)
    if kind == "masks":
        return {"text": MASKED}, trained.predict(MASKED)
    if kind == "squad":
        asked = [("Where in spain?", text) for text in TEXTS if text]
        columns = {"question": [q for q, _ in asked], "context": [c for _, c in asked]}
        return columns, trained.predict(asked)
    if kind == "choice":
        starts = [text for text in TEXTS if text]
        asked = [(start, starts[:-1]) for start in starts]
        columns = {"text": starts, "endings": [starts[:-1]] * len(starts)}
        return columns, trained.predict(asked)
    return {"text": TEXTS}, trained.predict(TEXTS)


def ask_bare_process(requests):
    done = subprocess.run(
        [sys.executable, "-c", BARE_PROCESS, json.dumps(requests)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["single", "pair", "choice"])
def test_classes_are_the_models_where_only_tensorflow_is(kind, answers):
    expected, _, found, _ = answers[kind]
    assert found["label"] == [one["label"] for one in expected]
    np.testing.assert_allclose(
        found["probabilities"],
        [list(one["probabilities"].values()) for one in expected],
        atol=1e-5,
    )


def test_answers_are_the_models_where_only_tensorflow_is(answers):
    expected, _, found, _ = answers["squad"]
    for name in ("answer", "start", "end"):
        assert found[name] == [one[name] for one in expected], name
    for name in ("score", "no_answer_score"):
        np.testing.assert_allclose(
            found[name], [one[name] for one in expected], atol=1e-5
        )


def test_tags_are_the_models_where_only_tensorflow_is(answers):
    expected, _, found, _ = answers["tags"]
    for number, one in enumerate(expected):
        count = len(one["words"])
        for name, fill in (("words", ""), ("tags", ""), ("starts", -1), ("ends", -1)):
            row = found[name][number]
            assert row[:count] == one[name], name
            assert set(row[count:]) <= {fill}, name


def test_masks_are_filled_where_only_tensorflow_is(answers):
    expected, _, of_texts, of_ids = answers["masks"]
    assert of_texts.pop("status") == ["ok"] * 3
    # [CLS] is at position 0; [MASK] splits a word.
    assert of_ids.pop("positions") == [[2, 4], [2, -1], [1, -1]]
    for found in (of_texts, of_ids):
        assert set(found) == {"tokens", "probabilities", "num_masks"}
        assert found["num_masks"] == [2, 1, 1]
        for number, answer in enumerate(expected):
            for mask in range(2):
                own = answer["masks"][mask : mask + 1]
                candidates = own[0] if own else [{"token": "", "probability": 0}] * 5
                tokens = found["tokens"][number][mask]
                assert tokens == [one["token"] for one in candidates]
                np.testing.assert_allclose(
                    found["probabilities"][number][mask],
                    [one["probability"] for one in candidates],
                    atol=1e-5,
                )


@pytest.mark.parametrize(
    "kind, names",
    [
        ("single", {"logits", "probabilities"}),
        ("pair", {"logits", "probabilities"}),
        ("choice", {"scores"}),
        ("squad", {"start_logits", "end_logits"}),
        ("tags", {"logits"}),
    ],
)
def test_ids_give_what_the_model_gives(kind, names, answers):
    _, expected, _, found = answers[kind]
    assert set(found) == names
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


@pytest.mark.parametrize("kind", ["single", "pair", "choice", "squad", "tags", "masks"])
def test_a_graph_session_answers_as_python_does(kind, exports, answers):
    # A model server runs the initializers of the graph in a session, too.
    run_dir, folder = exports[kind]
    texts, _ = questions(predictors.load(run_dir), kind)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        definition = loaded.signature_def["serving_default"]
        outputs = {name: info.name for name, info in definition.outputs.items()}
        inputs = {definition.inputs[name].name: rows for name, rows in texts.items()}
        found = session.run(outputs, inputs)
    expected = answers[kind][2]
    for name in found.keys() & expected.keys():
        if found[name].dtype == object:
            decoded = np.vectorize(bytes.decode, otypes=[object])(found[name])
            assert decoded.tolist() == expected[name]
        else:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


@pytest.mark.parametrize("kind", ["single", "pair", "choice", "squad", "tags", "masks"])
def test_the_export_uses_no_op_that_servers_lack(kind, exports):
    # Of TensorFlow Text's only two, which its release 2.12 in older servers has.
    text_ops = {"FastBertNormalize", "FastWordpieceTokenizeWithOffsets"}
    model = tf.saved_model.load(exports[kind][1])
    graph = model.signatures["serving_default"].graph.as_graph_def()
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
        "versions.json",
        "vocab.txt",
    ]
    labels = (extra / "labels.txt").read_text(encoding="utf-8")
    assert labels == "rain\nsnow\nété\n"
    versions = json.loads((extra / "versions.json").read_text())
    assert versions["tensorflow"] == tf.__version__
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
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"older")
    with pytest.raises(ValueError, match="is not empty"):
        export.export_saved_model(single_run, str(tmp_path / "1"))
    assert (tmp_path / "1" / "saved_model.pb").read_bytes() == b"older"


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


def test_a_run_of_an_unknown_task_is_refused(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "task.json").write_text(json.dumps({"task": "chess"}))
    with pytest.raises(ValueError, match="run is a run of the task 'chess'; expected"):
        export.export_saved_model(str(run), str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
