"""The heads of fine-tuned checkpoints of other libraries are exported without a run."""

import numpy as np
import pytest

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors

pytestmark = pytest.mark.slow

TEXTS = ["a rain", "the Bread of 中文 " * 3]
QUESTION = {"question": ["where?"] * 2, "context": TEXTS}
ENDINGS = [["rain", "bread"], ["a", "the"]]


def exported(project_root, tmp_path, head, **flags):
    path = project_root / "tests/checkpoints/foreign/hugging_face" / head
    options = serving_options.ExportSavedModelOptions(
        init_checkpoint=str(path), head=head, export_dir=str(tmp_path / "1"), **flags
    )
    export.run(options)
    return str(path), client.open_saved_model(options.export_dir)


@pytest.mark.parametrize(
    "head, asked, items",
    [
        ("classification", {"text": TEXTS}, TEXTS),
        (
            "question_answering",
            QUESTION,
            list(zip(*QUESTION.values(), strict=True)),
        ),
        ("token_classification", {"text": TEXTS}, TEXTS),
        (
            "multiple_choice",
            {"text": TEXTS, "endings": ENDINGS},
            list(zip(TEXTS, ENDINGS, strict=True)),
        ),
    ],
)
def test_a_head_of_a_checkpoint_answers_as_in_python(
    project_root, tmp_path, head, asked, items
):
    path, model = exported(project_root, tmp_path, head)
    found = model.ask(**asked)
    expected = predictors.load(path, head=head).predict(items)
    for one, other in zip(found, expected, strict=True):
        assert_equal(one, other)


def test_a_classifier_of_pairs_is_exported_as_one(project_root, tmp_path):
    path, model = exported(project_root, tmp_path, "classification", text_pairs=True)
    found = model.ask(text=TEXTS, text_b=TEXTS[::-1])
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    for one, other in zip(found, predictors.load(path).predict(pairs), strict=True):
        assert_equal(one, other)


def assert_equal(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        if isinstance(value, dict):
            assert list(found[name]) == list(value)
            np.testing.assert_allclose(
                list(found[name].values()), list(value.values()), atol=1e-5
            )
        elif isinstance(value, float):
            assert found[name] == pytest.approx(value, abs=1e-4)
        else:
            assert found[name] == value, name
