"""What only multiple choice does; see `tests/tasks/test_contract.py` for the rest."""

import numpy as np
import pytest

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.tasks.multiple_choice import task
from tests import runs


@pytest.mark.parametrize(
    "names, content",
    [
        (("train.tsv", "dev.tsv", "test.tsv"), "c\tHe\ta\tb\tc\td\t3\n"),  # CODAH
        (
            ("train.csv", "val.csv", "test.csv"),  # SWAG
            "startphrase,ending0,ending1,ending2,ending3,label\nHe,a,b,c,d,3\n",
        ),
    ],
)
def test_a_folder_as_published_is_read(tmp_path, choice_options, names, content):
    for name in names:
        (tmp_path / name).write_text(content)
    own = dict.fromkeys(("train_file", "eval_file", "predict_file"))
    data = {**own, "data_dir": str(tmp_path), "do_eval": True, "do_predict": True}
    options = choice_options(tmp_path / "run", train_batch_size=1, **data)
    examples = fine_tuning_run.prepare(options).examples
    assert len(examples) == 3
    [example] = examples["train"]
    assert (example.start, example.label) == ("He", 3)
    assert example.endings == ("a", "b", "c", "d")


def test_the_first_of_equally_probable_endings_is_the_answer():
    answer = task._answer(np.array([0.25, 0.75, 0.75], "float32"), ("a", "b", "c"))
    assert (answer["label"], answer["ending"]) == ("1", "b")


def test_both_files_of_predictions_have_the_same_probabilities(trained):
    run = trained("multiple_choice")
    rows = np.loadtxt(run / "test_results.tsv", delimiter="\t")
    answers = runs.json_lines(run / "predictions.jsonl")
    by_number = [[one["probabilities"][str(i)] for i in range(3)] for one in answers]
    np.testing.assert_allclose(rows, by_number, rtol=1e-6)
    assert [one["label"] for one in answers] == [str(row.argmax()) for row in rows]
