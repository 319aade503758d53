import json
import subprocess
import sys

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.release import bundle
from bert_tf.data import packing


def test_a_run_answers_texts_with_names_and_probabilities(single_run):
    classifier = bert_tf.load(single_run)
    texts = ["the rain", "été " * 30, ""]
    answers = classifier.predict(texts)
    features = packing.pack(classifier.tokenizer, texts, max_seq_length=16)
    expected = np.asarray(classifier.model(features)["probabilities"])
    assert [list(a["probabilities"]) for a in answers] == [["rain", "snow", "été"]] * 3
    found = [list(answer["probabilities"].values()) for answer in answers]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    for answer in answers:
        best = max(answer["probabilities"], key=answer["probabilities"].get)
        assert answer["label"] == best


def test_a_run_of_pairs_answers_pairs(pair_run):
    classifier = bert_tf.load(pair_run)
    one_way, other_way = classifier.predict([("the", "rain"), ["rain", "the"]])
    assert one_way["probabilities"] != other_way["probabilities"]


def test_more_texts_than_a_call_takes_are_all_answered_in_order(single_run):
    classifier = bert_tf.load(single_run)
    texts = [f"{i} rain" for i in range(70)]
    answers = classifier.predict(texts)
    assert len(answers) == 70
    alone = classifier.predict([texts[69]])[0]["probabilities"]
    assert answers[69]["probabilities"] == pytest.approx(alone, abs=1e-6)


def test_no_texts_give_no_answers(single_run):
    assert bert_tf.load(single_run).predict([]) == []


@pytest.mark.parametrize(
    "run, inputs, message",
    [
        ("single_run", "one text", "Expected a list of texts"),
        ("single_run", ["a", ("a", "b")], "Input 1 is .* single texts"),
        ("pair_run", ["a"], "Input 0 is 'a'.* trained on pairs"),
        ("pair_run", [("a", "b", "c")], "Input 0 is .* trained on pairs"),
        ("pair_run", [("a", None)], "Input 0 is .* trained on pairs"),
    ],
)
def test_inputs_of_the_wrong_kind_are_refused(run, inputs, message, request):
    classifier = bert_tf.load(request.getfixturevalue(run))
    with pytest.raises(ValueError, match=message):
        classifier.predict(inputs)


_CLASSES = {
    "task": "classification",
    "max_seq_length": 24,
    "do_lower_case": True,
    "labels": ["a", "b"],
}


@pytest.mark.parametrize(
    "files, message",
    [
        ({}, "contains no task.json"),
        ({"task.json": {"task": "pretraining"}}, "is a run of the task 'pretraining'"),
        (
            {"task.json": {"task": "classification"}},
            "lacks max_seq_length, do_lower_case, labels",
        ),
        (
            {"task.json": {**_CLASSES, "max_seq_length": "24"}},
            "max_seq_length is '24', expected int",
        ),
        ({"task.json": {**_CLASSES, "labels": "ab"}}, "labels is 'ab', expected tuple"),
        ({"task.json": {**_CLASSES, "labels": ["a", 1]}}, r"labels is \('a', 1\)"),
        ({"task.json": {**_CLASSES, "do_lower_case": 1}}, "is 1, expected bool"),
        ({"task.json": {**_CLASSES, "threshold": "0.5"}}, "threshold is '0.5', exp"),
        ({"task.json": []}, "contains a JSON list, expected an object"),
        ({"task.json": {"task": ["a"]}}, "does not name the run's task"),
    ],
)
def test_a_folder_without_a_run_is_refused(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        bert_tf.load(str(tmp_path))


def test_a_run_without_a_checkpoint_is_refused(single_run, tmp_path):
    copy_settings(single_run, tmp_path)
    with pytest.raises(ValueError, match="contains no checkpoint; train there first"):
        bert_tf.load(str(tmp_path))


def test_a_checkpoint_without_the_class_head_is_refused(single_run, tmp_path, golden):
    copy_settings(single_run, tmp_path)
    prefix = str(golden / "model" / "bert_model.ckpt")
    names = bundle.read_names_and_shapes(prefix)
    bundle.save(str(tmp_path / "model.ckpt-1"), bundle.read(prefix, list(names)))
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\n')
    with pytest.raises(ValueError, match="lacks 2 of the model's weights"):
        bert_tf.load(str(tmp_path))


# Python looks at meta_path first; there, the task of retrieval does not exist.
_WITHOUT_RETRIEVAL = """
import sys

class NoRetrieval:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("bert_tf.tasks.retrieval"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoRetrieval())
import bert_tf
from bert_tf.serving import export

[answer] = bert_tf.load(sys.argv[1]).predict(["the rain"])
assert answer["label"] in ("rain", "snow", "\u00e9t\u00e9")
export.export_saved_model(sys.argv[1], sys.argv[2])
try:
    import bert_tf.tasks.retrieval
except ModuleNotFoundError:
    print("retrieval is blocked")
"""


def test_a_classifier_is_served_where_another_task_cannot_be_imported(
    single_run, tmp_path, project_root
):
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_RETRIEVAL, single_run, str(tmp_path / "1")],
        capture_output=True,
        text=True,
        check=False,
        cwd=project_root,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "retrieval is blocked\n"
    assert (tmp_path / "1" / "saved_model.pb").exists()


def copy_settings(run_dir, target):
    for name in ("task.json", "vocab.txt", "bert_config.json"):
        with open(f"{run_dir}/{name}", encoding="utf-8") as file:
            (target / name).write_text(file.read(), encoding="utf-8")
