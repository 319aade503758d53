"""A student learns from a teacher's logits, on any replicas, killed or not."""

import dataclasses

import keras
import numpy as np
import pytest

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.modeling import classifier
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import predictions as classification_predictions
from tests import runs
from tests.modeling import small_config


@pytest.fixture(scope="module")
def noisy(tmp_path_factory, task_data):
    """The training table with 9 of its 24 labels wrong."""
    path = task_data("classification") / "train.tsv"
    lines = path.read_text().splitlines()
    other = {"rain": "sun", "sun": "rain"}
    for number in range(1, 25):
        text, label = lines[number].split("\t")
        if number % 8 in (1, 4, 6):
            lines[number] = f"{text}\t{other[label]}"
    path = tmp_path_factory.mktemp("noisy") / "train.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def student_options(weather_options, noisy):
    """Returns options of a student that gets noisy labels."""

    def create(output_dir, **values):
        defaults = {"train_file": str(noisy), "learning_rate": 3e-3}
        return weather_options(output_dir, **defaults | values)

    return create


@pytest.mark.slow
def test_a_student_is_better_with_a_teacher_than_without(
    tmp_path, student_options, weather_run, monkeypatch
):
    # The labels are too noisy to learn from, so only the teacher counts.
    defaults = classifier.DistilledClassifier.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "weight", 1.0)
    accuracy = {}
    for name, flags in {"alone": {}, "taught": {"teacher": str(weather_run)}}.items():
        options = student_options(tmp_path / name, do_eval=True, **flags)
        fine_tuning_run.run(options)
        accuracy[name] = runs.scores(tmp_path / name)["eval_accuracy"]
    assert accuracy["taught"] == 1.0
    assert accuracy["alone"] <= 0.75


SMALL = small_config.create()


def test_the_loss_is_the_formula():
    model = classifier.DistilledClassifier(
        SMALL, num_labels=2, temperature=2.0, weight=0.25
    )
    student = np.array([[1.0, 0.0], [0.0, 0.0]], np.float32)
    teacher = np.array([[2.0, 0.0], [0.0, 0.0]], np.float32)
    features = {
        "input_ids": np.ones((2, 4), np.int32),
        "label_ids": np.array([0, 1], np.int32),
        "teacher_logits": teacher,
    }
    sums = model.loss_sums(features, {"logits": keras.ops.convert_to_tensor(student)})

    def softmax(logits):
        return np.exp(logits) / np.exp(logits).sum()

    p, q = softmax(teacher[0] / 2), softmax(student[0] / 2)
    divergence = np.sum(p * np.log(p / q))  # The second row agrees: 0.
    np.testing.assert_allclose(
        sums["distillation_loss"], 0.25 * 4 * divergence, rtol=1e-5
    )
    cross_entropy = -np.log(softmax(student[0])[0]) - np.log(0.5)
    np.testing.assert_allclose(
        sums["classification_loss"], 0.75 * cross_entropy, rtol=1e-5
    )
    weights = model.loss_weights(features)
    assert {name: float(value) for name, value in weights.items()} == {
        "classification_loss": 2.0,
        "distillation_loss": 2.0,
    }


@pytest.mark.slow
def test_a_killed_student_ends_with_the_same_weights(
    tmp_path, student_options, weather_run, dropout_config
):
    flags = {"teacher": str(weather_run), "num_train_epochs": 2.0}
    flags["bert_config_file"] = dropout_config
    flags["save_checkpoints_steps"] = 3
    fine_tuning_run.Run(student_options(tmp_path / "whole", **flags)).train()

    part = fine_tuning_run.Run(student_options(tmp_path / "part", **flags))
    save = part.trainer._save

    def save_and_stop():
        save()
        raise KeyboardInterrupt

    part.trainer._save = save_and_stop
    with pytest.raises(KeyboardInterrupt):
        part.train()

    resumed = fine_tuning_run.Run(student_options(tmp_path / "part", **flags))
    assert resumed.trainer.step == 3
    resumed.train()
    runs.assert_same_tensors(tmp_path / "part", tmp_path / "whole")


@pytest.mark.slow
def test_columns_follow_the_students_classes(tmp_path, student_options, weather_run):
    student = fine_tuning_run.Run(student_options(tmp_path / "a"))
    task, examples = student.task.record, student.task.examples["train"]
    options = student.options
    logits = classification_predictions.Teacher(str(weather_run), task).logits(
        examples, options
    )
    turned = dataclasses.replace(task, labels=task.labels[::-1])
    other = classification_predictions.Teacher(str(weather_run), turned).logits(
        examples, options
    )
    np.testing.assert_array_equal(other, logits[:, ::-1])


@pytest.mark.slow
def test_a_teacher_of_other_classes_or_texts_is_refused(
    tmp_path, student_options, weather_run
):
    table = tmp_path / "other.tsv"
    table.write_text("text\tlabel\ta\nwet\tfog\tb\ndry\tsun\tc\n")
    options = student_options(
        tmp_path / "a",
        train_file=str(table),
        teacher=str(weather_run),
        train_batch_size=2,
    )
    with pytest.raises(ValueError, match="has the classes rain, sun, but the data"):
        fine_tuning_run.run(options)
    table.write_text("text\tlabel\ta\nwet\train\tb\ndry\tsun\tc\n")
    options = dataclasses.replace(options, text_b_column="a")
    with pytest.raises(ValueError, match="was trained on single texts, but the data"):
        fine_tuning_run.run(options)
    options = dataclasses.replace(options, teacher=str(tmp_path))
    with pytest.raises((ValueError, OSError), match=r"task\.json"):
        fine_tuning_run.run(options)


ONE = classification_predictions.Record(
    labels=("rain", "sun"), max_seq_length=8, do_lower_case=True
)
SEVERAL = classification_predictions.Record(
    labels=("rain", "wind"),
    max_seq_length=8,
    do_lower_case=True,
    label_kind="multi_label",
    label_separator=",",
)


def rows(*labels):
    return [examples_module.InputExample(guid="x", text_a="a", label=x) for x in labels]


@pytest.mark.parametrize(
    "of, given, labels, weights",
    [
        (ONE, (), ("rain", "sun"), None),
        (ONE, ("rain=3",), ("rain", "sun"), {"rain": 3.0, "sun": 1.0}),
        # 4 / (2 · 1) and 4 / (2 · 3): both classes count 2 in all.
        (
            ONE,
            ("balanced",),
            ("rain", "sun", "sun", "sun"),
            {"rain": 2.0, "sun": 2 / 3},
        ),
        # Having the class counts as much as not having it: 3 / 1 and 2 / 2.
        (
            SEVERAL,
            ("balanced",),
            ("rain,wind", "wind", "", ""),
            {"rain": 3.0, "wind": 1.0},
        ),
    ],
)
def test_classes_have_their_weights(of, given, labels, weights):
    assert features_module.class_weights(given, of, rows(*labels)) == weights


@pytest.mark.parametrize(
    "given, message",
    [
        (("rain",), "expected 'balanced', or NAME=WEIGHT with a positive"),
        (("rain=0",), "positive weight, got 'rain=0'"),
        (("snow=2",), "unknown class 'snow'; the classes are rain, sun"),
        (("balanced",), "no training example has the class 'sun'"),
    ],
)
def test_weights_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        features_module.class_weights(given, ONE, rows("rain", "rain"))


def test_a_weight_counts_like_as_many_examples():
    one = classifier.BertClassifier(SMALL, num_labels=2)
    logits = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    columns = features_module.label_columns(
        rows("rain", "sun"), ONE, {"rain": 3.0, "sun": 1.0}
    )
    weighted = {"input_ids": np.ones((2, 4), np.int32), **columns}
    repeated = {
        "input_ids": np.ones((4, 4), np.int32),
        "label_ids": np.array([0, 0, 0, 1]),
    }
    np.testing.assert_allclose(
        one.total_loss(weighted, {"logits": logits}),
        one.total_loss(repeated, {"logits": logits[[0, 0, 0, 1]]}),
        rtol=1e-6,
    )


def test_in_several_classes_the_weight_is_of_having_the_class():
    columns = features_module.label_columns(
        rows("rain", "wind", ""), SEVERAL, {"rain": 3.0, "wind": 2.0}
    )
    assert columns["label_indicators"].tolist() == [[1, 0], [0, 1], [0, 0]]
    assert columns["label_weights"].tolist() == [[3, 1], [1, 2], [1, 1]]
