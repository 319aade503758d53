"""The heads of fine-tuned checkpoints of other libraries are exported without a run."""

import pytest

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from tests import runs

TEXTS = ["a rain", "the Bread of 中文 " * 3]
QUESTION = {"question": ["where?"] * 2, "context": TEXTS}
ENDINGS = [["rain", "bread"], ["a", "the"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "head, flags, asked",
    [
        ("classification", {}, {"text": TEXTS}),
        (
            "classification",
            {"text_pairs": True},
            {"text": TEXTS, "text_b": TEXTS[::-1]},
        ),
        ("question_answering", {}, QUESTION),
        ("token_classification", {}, {"text": TEXTS}),
        ("multiple_choice", {}, {"text": TEXTS, "endings": ENDINGS}),
    ],
)
def test_a_head_of_a_checkpoint_answers_as_in_python(
    project_root, tmp_path, head, flags, asked
):
    path = str(project_root / "tests/checkpoints/foreign/hugging_face" / head)
    options = serving_options.ExportSavedModelOptions(
        init_checkpoint=path, head=head, export_dir=str(tmp_path / "1"), **flags
    )
    export.run(options)
    items = list(zip(*asked.values(), strict=True)) if len(asked) > 1 else TEXTS
    expected = predictors.load(path, head=head).predict(items)
    answers = client.open_saved_model(options.export_dir).ask(**asked)
    runs.assert_close(answers, expected, absolute=1e-4)
