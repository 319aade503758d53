import json

import pytest

from tests import runs

LINES = ("wet\train", "dry\tsun", "very wet\train", "very dry\tsun")
TRAIN = "\n".join(["text\tlabel", *LINES]) + "\n"


@pytest.fixture
def arguments(golden, quick_config, tmp_path):
    """The flags of a minimal run; tests replace some of them."""
    (tmp_path / "train.tsv").write_text(TRAIN)
    return {
        "do_train": "true",
        "train_file": tmp_path / "train.tsv",
        "bert_config_file": quick_config,
        "vocab_file": golden / "vocab.txt",
        "output_dir": tmp_path / "run",
        "max_seq_length": 16,
        "train_batch_size": 2,
        "num_train_epochs": 1,
    }


@pytest.fixture
def classify(run_tool, arguments):
    return lambda **changes: run_tool("run_classifier", **arguments | changes)


def test_csv_in_scores_and_predictions_out(classify, tmp_path):
    (tmp_path / "all.csv").write_text('id,text,label\na,"wet, wet",rain\nb,dry,sun\n')
    (tmp_path / "new.csv").write_text('id,text\nc,"wet, wet"\nd,dry\n')
    result = classify(
        train_file=tmp_path / "all.csv",
        eval_file=tmp_path / "all.csv",
        predict_file=tmp_path / "new.csv",
        do_eval="true",
        do_predict="true",
    )
    assert "eval_accuracy = " in result.stdout
    assert "The evaluation uses the training data" in result.stderr
    (tmp_path / "copy.csv").write_text((tmp_path / "all.csv").read_text())
    (tmp_path / "other.csv").write_text("text,label\nwet,rain\ndry,sun\n")
    again = {"do_train": None, "bert_config_file": None, "vocab_file": None}
    for name, is_seen in (("copy.csv", True), ("other.csv", False)):
        result = classify(
            **again, train_file=None, do_eval="true", eval_file=tmp_path / name
        )
        assert ("The evaluation uses the training data" in result.stderr) == is_seen
    lines = runs.json_lines(tmp_path / "run" / "predictions.jsonl")
    assert [line["id"] for line in lines] == ["c", "d"]
    table = (tmp_path / "run" / "predictions.csv").read_text(encoding="utf-8-sig")
    assert table.startswith('id,text,predicted_label,probability\nc,"wet, wet",')
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_one_table_is_divided_into_training_and_evaluation(classify, tmp_path):
    # Reviews, a third of them negative, some of them twice.
    rows = [f"review {n % 54},{'good' if n % 3 else 'bad'}" for n in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    split = {"train_file": tmp_path / "a.csv", "validation_split": 0.25}
    result = classify(do_eval="true", random_seed=7, eval_every_steps=10, **split)
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["validation_split"] == 0.25
    assert "The evaluation uses the training data" not in result.stderr
    classes = (tmp_path / "run" / "eval_classes.txt").read_text()
    assert classes in result.stdout
    rows = [line.split() for line in classes.splitlines()[1:4]]
    num_bad, num_good, num_held_out = (int(row[-1]) for row in rows)
    assert num_bad + num_good == num_held_out == 15
    assert "Num examples = 45" in result.stderr
    assert num_bad in (5, 6)  # A third, as in the table, up to texts that occur twice.
    again = {"do_train": None, "bert_config_file": None, "vocab_file": None}
    evaluated = classify(do_eval="true", **again, **split)
    assert classes in evaluated.stdout
    split["validation_split"] = 0.5
    refused = classify(do_eval="true", **again, **split, exit_code=1)
    assert "was trained with --validation_split=0.25" in refused.refusal


@pytest.mark.parametrize(
    "changes, exit_code, message",
    [
        ({"train_file": "none.tsv"}, 1, "No such file: none.tsv"),
        ({"train_file": __file__}, 1, "unknown file extension; expected one of .tsv"),
        ({"output_dir": "/dev/null/run"}, 1, "/dev/null"),
        ({"do_train": None}, 2, "Nothing to do"),
        ({"train_file": None}, 2, "needs --train_file"),
        ({"task_name": "snli"}, 2, "expected one of cola, mrpc, sst-2"),
        ({"text_colum": "x"}, 2, "did you mean --text_column?"),
    ],
)
def test_a_user_mistake_ends_in_one_line(classify, changes, exit_code, message):
    result = classify(**changes, exit_code=exit_code)
    assert message in result.refusal
