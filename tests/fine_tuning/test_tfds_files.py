"""Data sets by name in every task, from what TFDS's own builders prepared.

tests/data/foreign/make_tfds.py wrote the data sets.
"""

import json
import pathlib
import shutil

import pytest

from bert_tf import options as options_module
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import tasks

TESTS = pathlib.Path(__file__).resolve().parents[1]
# It has 20 positions.
ENCODER = str(TESTS / "checkpoints" / "foreign" / "hugging_face" / "encoder")


@pytest.fixture
def options_of(tmp_path):
    """Returns options of a task for a data set by name; keywords replace or add."""
    pytest.importorskip("tensorflow_datasets")
    folder = tmp_path / "tensorflow_datasets"
    shutil.copytree(TESTS / "data" / "foreign" / "tfds", folder)

    def create(task, name, **values):
        defaults = {
            "tfds_name": name,
            "data_dir": str(folder),
            "init_checkpoint": ENCODER,
            "output_dir": str(tmp_path / "run"),
            "do_train": True,
            "do_eval": True,
            "max_seq_length": 20,
        }
        if task == "question_answering":
            defaults |= {"max_query_length": 10, "doc_stride": 5}
        return tasks.options_class(task)(**defaults | values)

    return create


def test_squad_by_name_is_squad(options_of, tmp_path):
    task = fine_tuning_run.prepare(options_of("question_answering", "squad/v1.1"))
    questions = {one.qas_id: one for one in task.examples["train"]}
    assert sorted(questions) == ["q1", "q2", "q3"]
    assert questions["q2"].question_text == "Who built the mill?"
    assert questions["q2"].answers[0].text == "Hob Hayward"
    assert questions["q2"].context is questions["q1"].context
    # The file is SQuAD's: evaluate_squad and the official script read it, too.
    [path] = task.identities["dev"].paths
    assert path.endswith("squad/v1.1/3.0.0/bert_tf/v1/squad-v1.1-3.0.0-validation.json")
    assert json.loads(pathlib.Path(path).read_text())["data"][0]["title"] == "Mill"


def test_squad_2_by_name_has_questions_without_an_answer(options_of):
    task = fine_tuning_run.prepare(
        options_of("question_answering", "squad/v2.0", version_2_with_negative=True)
    )
    impossible = [one.qas_id for one in task.examples["train"] if one.is_impossible]
    assert impossible == ["q3"]
    assert task.squad_file.is_version_2


def test_conll_by_name_is_tagged_with_entities(options_of):
    options = options_of("token_classification", "conll2003", do_predict=True)
    task = fine_tuning_run.prepare(options)
    tags = {one.words: one.tags for one in task.examples["train"]}
    assert tags == {
        ("Hob", "lives"): ("B-PER", "O"),
        ("Bree", "sleeps"): ("B-LOC", "O"),
        ("Rain", "falls"): ("O", "O"),
    }
    # The data set calls its development set dev.
    assert len(task.examples["dev"]) == 3
    parts_of_speech = fine_tuning_run.prepare(
        options_of("token_classification", "conll2003", tag_column=1)
    )
    assert "NNP" in parts_of_speech.record.labels


def test_hellaswag_by_name_has_four_endings(options_of):
    options = options_of("multiple_choice", "hellaswag", do_predict=True)
    setup = fine_tuning_run.prepare(options)
    labels = {one.start: one.label for one in setup.examples["train"]}
    assert labels == {f"Hob takes sack {number}": number for number in range(4)}
    first = setup.examples["test"][0]
    assert first.label is None
    assert first.endings[1] == "to the mill."


@pytest.mark.parametrize(
    "task, name, values, message",
    [
        (
            "question_answering",
            "conll2003",
            {},
            "has no column id; the columns are tok",
        ),
        ("question_answering", "no_such", {}, "no_such: the data set does not exist"),
        ("multiple_choice", "squad/v1.1", {"do_predict": True}, "squad/v1.1 has no"),
        ("token_classification", "squad/v1.1", {}, "and a sequence of classes"),
        ("multiple_choice", "squad/v1.1", {}, "startphrase"),
        ("classification", "xnli", {}, "expected one column of text, got none"),
    ],
)
def test_what_a_task_cannot_use_is_one_clear_line(
    options_of, task, name, values, message
):
    with pytest.raises(ValueError, match=message):
        fine_tuning_run.prepare(options_of(task, name, **values))


@pytest.mark.parametrize(
    "task, values, message",
    [
        ("question_answering", {"train_file": "a"}, "--train_file cannot be combined"),
        (
            "question_answering",
            {"tfds_name": None, "predict_file": "a", "train_file": "b"},
            "--data_dir requires --tfds_name",
        ),
        ("multiple_choice", {"eval_file": "a"}, "--eval_file cannot be combined"),
    ],
)
def test_options_of_data_sets_belong_together(options_of, task, values, message):
    with pytest.raises(options_module.OptionError, match=message):
        options_of(task, "squad/v1.1", **values)
