"""Classes, numbers and scores from a SavedModel are those of Python."""

import pytest

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import predictors
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.retrieval import features
from tests import ring
from tests import runs

TEXTS = ["", "the rain", "crème brûlée", "rain in spain " * 5, "the bread " * 40]
LABELS = ("rain", "snow", "été")

SIZES = {"max_seq_length": 16, "do_lower_case": True}


def record(labels, label_kind="single_label", *, text_b_column=None):
    return classification_predictions.Record(
        labels=labels, label_kind=label_kind, text_b_column=text_b_column, **SIZES
    )


PAIRED = {"text_b_column": "text_b"}
ONE = {"text": TEXTS}
PAIRS = {"text": [a for a in TEXTS for _ in TEXTS], "text_b": TEXTS * len(TEXTS)}


# The client's tests ask models with one label per text.
@pytest.mark.parametrize(
    "task, inputs",
    [
        ring.slow(record(LABELS), ONE, id="texts"),
        ring.slow(record(LABELS, **PAIRED), PAIRS, id="pairs"),
        ring.slow(record(LABELS, "multi_label"), ONE, id="several labels of texts"),
        pytest.param(record((), "regression", **PAIRED), PAIRS, id="numbers of pairs"),
        ring.slow(
            record(LABELS, "multi_label", **PAIRED), PAIRS, id="several labels of pairs"
        ),
        ring.slow(
            record(("joy", "anger"), "regression"), ONE, id="two numbers of texts"
        ),
        ring.slow(
            features.Record(model="cross_encoder", max_query_length=8, **SIZES),
            PAIRS,
            id="a cross-encoder's scores",
        ),
    ],
)
def test_a_saved_model_answers_as_python(write_model, tmp_path, task, inputs):
    run_dir = write_model(str(tmp_path / "run"), task.create_model, task)
    items = list(zip(*inputs.values(), strict=True)) if len(inputs) > 1 else TEXTS
    expected = predictors.load(run_dir).predict(items)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    answers = client.open_saved_model(folder).ask(**inputs)
    runs.assert_close(answers, expected, absolute=1e-5)
