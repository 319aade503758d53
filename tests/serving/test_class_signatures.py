"""Classes and numbers from a SavedModel are those of Python, also of long texts."""

import pytest

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import predictors
from bert_tf.tasks.classification import predictions as classification_predictions
from tests import ring
from tests import runs

TEXTS = ["", "the rain", "crème brûlée", "rain in spain " * 5, "the bread " * 40]
LABELS = ("rain", "snow", "été")

ONE = {"labels": LABELS}
SEVERAL = {"labels": LABELS, "label_kind": "multi_label"}
NUMBER = {"labels": (), "label_kind": "regression"}
NUMBERS = {"labels": ("joy", "anger"), "label_kind": "regression"}


# The client's tests ask models with one label per text.
@pytest.mark.parametrize(
    "task, is_pair",
    [
        ring.slow(ONE, False, id="texts"),
        ring.slow(ONE, True, id="pairs"),
        ring.slow(SEVERAL, False, id="several labels of texts"),
        pytest.param(NUMBER, True, id="numbers of pairs"),
        ring.slow(SEVERAL, True, id="several labels of pairs"),
        ring.slow(NUMBERS, False, id="two numbers of texts"),
    ],
)
def test_a_saved_model_classifies_as_python(write_model, tmp_path, task, is_pair):
    task = classification_predictions.Record(
        max_seq_length=16,
        do_lower_case=True,
        text_b_column="text_b" if is_pair else None,
        **task,
    )
    run_dir = write_model(
        str(tmp_path / "run"),
        task.create_model,
        task,
    )
    pairs = [(a, b) for a in TEXTS for b in TEXTS]
    inputs = {"text": TEXTS}
    if is_pair:
        inputs = {"text": [a for a, _ in pairs], "text_b": [b for _, b in pairs]}
    expected = predictors.load(run_dir).predict(pairs if is_pair else TEXTS)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    answers = client.open_saved_model(folder).ask(**inputs)
    runs.assert_close(answers, expected, absolute=1e-5)
