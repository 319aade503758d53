"""run_swag, called as a user calls it."""

import csv
import json

import pytest

TABLE = "id\tstartphrase\tending0\tending1\tlabel\n"


@pytest.fixture
def arguments(golden, tmp_path):
    """The flags of a minimal run; tests replace some of them."""
    rows = "a\tthe bee\tis warm\tball ball\t0\nb\tthe lamp\tball ball\tis slow\t1\n"
    (tmp_path / "train.tsv").write_text(TABLE + rows)
    return {
        "do_train": "true",
        "train_file": tmp_path / "train.tsv",
        "bert_config_file": golden / "model" / "bert_config.json",
        "vocab_file": golden / "vocab.txt",
        "output_dir": tmp_path / "run",
        "max_seq_length": 16,
        "train_batch_size": 2,
        "num_train_epochs": 2,
    }


@pytest.fixture
def choose(run_tool, arguments):
    def run(**changes):
        flags = {**arguments, **changes}
        return run_tool(
            "run_swag", *(f"--{k}={v}" for k, v in flags.items() if v is not None)
        )

    return run


def test_a_table_in_scores_and_predictions_out(choose, tmp_path):
    new = tmp_path / "new.tsv"
    new.write_text(TABLE.replace("\tlabel", "") + "c\tthe bee\tis warm\tball ball\n")
    result = choose(
        eval_file=tmp_path / "train.tsv",
        predict_file=new,
        do_eval="true",
        do_predict="true",
    )
    assert result.exit_code == 0, result.stderr
    assert "Trained to step 2" in result.stdout
    assert "The evaluation uses the training data" in result.stderr
    assert "eval_accuracy = " in result.stdout
    lines = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    [answer] = [json.loads(line) for line in lines]
    assert answer["id"] == "c"
    with (tmp_path / "run" / "predictions.csv").open(encoding="utf-8-sig") as file:
        [row] = csv.DictReader(file)
    assert (row["startphrase"], row["ending1"]) == ("the bee", "ball ball")
    assert row["predicted_label"] == answer["label"]
    assert row["predicted_ending"] == answer["ending"]
    card = (tmp_path / "run" / "README.md").read_text()
    for text in (
        "Correct endings of the training examples: 0 50.0% (1), 1 50.0% (1).",
        "Of the training examples, 0.0% are longer than --max_seq_length=16",
    ):
        assert text in result.stderr
        assert text in card
    assert "Traceback" not in result.stderr


def refusal(result):
    """The one line of the error message."""
    [line] = result.stderr.strip().splitlines()[-1:]
    assert line.startswith("run_swag: ")
    assert "Traceback" not in result.stderr
    return line


@pytest.mark.parametrize(
    "changes, exit_code, message",
    [
        ({"train_file": "none.tsv"}, 1, "No such file: none.tsv"),
        ({"train_file": None}, 2, "needs --train_file"),
        ({"data_dir": "x"}, 2, "--train_file is for your own files"),
        ({"ending_columns": "a,b,a"}, 2, "--ending_columns=a,b,a: expected diff"),
    ],
)
def test_what_does_not_fit_ends_in_one_line(choose, changes, exit_code, message):
    result = choose(**changes)
    assert result.exit_code == exit_code
    assert message in refusal(result)
