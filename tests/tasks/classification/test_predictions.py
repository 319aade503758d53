import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.tasks.classification import predictions as classification_predictions

ANSWERS = [
    {"label": "sun", "probabilities": {"rain": 0.25, "sun": 0.75}},
    {"label": "rain", "probabilities": {"rain": 0.5, "sun": 0.5}},
]


@pytest.mark.parametrize(
    "answers, lines",
    [
        (ANSWERS, ["0.25\t0.75\n", "0.5\t0.5\n"]),
        ([{"value": 1.5}, {"value": -2.0}], ["1.5\n", "-2.0\n"]),
    ],
)
def test_the_release_file_has_one_line_per_example(answers, lines):
    assert [*classification_predictions.release_lines(answers)] == lines


LOGITS = np.array([[0.0, 0.0], [-2.0, 3.0]], np.float32)
SEVERAL = {"label_kind": "multi_label", "label_separator": ","}


def a_task(**values):
    defaults = {"labels": ("rain", "sun"), "max_seq_length": 8, "do_lower_case": True}
    return classification_predictions.Record(**defaults | values)


def test_the_class_is_the_first_of_the_most_probable_ones():
    first, second = classification_predictions.answers_of(LOGITS, a_task())
    assert (first, second["label"]) == (ANSWERS[1], "sun")


def test_several_classes_are_those_with_a_probability_of_at_least_one_half():
    answers = classification_predictions.answers_of(LOGITS, a_task(**SEVERAL))
    assert [answer["labels"] for answer in answers] == [["rain", "sun"], ["sun"]]
    assert answers[0]["probabilities"] == {"rain": 0.5, "sun": 0.5}


def test_a_number_is_the_logit():
    answers = classification_predictions.answers_of(
        LOGITS[:, 1:], a_task(labels=(), label_kind="regression")
    )
    assert answers == [{"value": 0.0}, {"value": 3.0}]
    record = a_task(labels=("a", "b"), label_kind="regression")
    answers = classification_predictions.answers_of(LOGITS, record)
    assert answers == [{"value": row} for row in LOGITS.tolist()]


def test_two_classes_of_one_name_are_refused(project_root, tmp_path):
    foreign = project_root / "tests/checkpoints/foreign/hugging_face/classification"
    folder = shutil.copytree(foreign, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = dict.fromkeys(config["id2label"], "rain")
    config.pop("label2id", None)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="has two classes of one name: rain, rain"):
        bert_tf.load(str(folder))
