"""Cross-encoders of sentence-transformers, applied by run_classifier."""

import pytest

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.tasks.classification import options as classification_options
from tests import ring
from tests import runs
from tests.checkpoints.foreign import sentence_transformers_folders as folders


@pytest.fixture
def options(tmp_path):
    """Returns the options that apply a ranker to the recorded pairs."""

    def create(name, **values):
        rows = ["text\tpassage", *map("\t".join, folders.texts()["pairs"])]
        table = tmp_path / "pairs.tsv"
        table.write_text("".join(f"{row}\n" for row in rows))
        return classification_options.RunClassifierOptions(
            **{
                "init_checkpoint": folders.create(tmp_path / name, name),
                "predict_file": str(table),
                "text_b_column": "passage",
                "regression": True,
                "do_predict": True,
                "output_dir": str(tmp_path / "run"),
                **values,
            }
        )

    return create


@pytest.mark.parametrize(
    "name, length",
    [
        ("ranker_sigmoid", 24),
        # In `make test`, `tests/tasks/retrieval/test_predictor.py` cuts pairs.
        ring.slow("ranker_short", 12),
        ring.slow("ranker_shorter", 11),
    ],
)
def test_the_values_are_the_scores_of_the_library(options, tmp_path, name, length):
    fine_tuning_run.run(options(name, max_seq_length=length))
    lines = runs.json_lines(tmp_path / "run" / "predictions.jsonl")
    values = [line["value"] for line in lines]
    assert values == pytest.approx(folders.expected(name), rel=1e-5, abs=1e-6)


def test_another_maximum_length_is_refused(options):
    with pytest.raises(ValueError, match=r"up to 12 word pieces .*; pass --max_seq"):
        fine_tuning_run.run(options("ranker_short", max_seq_length=20))
