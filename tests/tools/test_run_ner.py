import json

import pytest

import bert_tf

TRAIN = "Anna B-PER\nis O\nin O\nLund B-LOC\n\nRod B-PER\nis O\nin O\nBay B-LOC\n"


@pytest.fixture
def arguments(golden, tmp_path):
    """The flags of a minimal run; tests replace some of them."""
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.txt").write_text(TRAIN)
    return {
        "do_train": "true",
        "data_dir": tmp_path,
        "bert_config_file": golden / "model" / "bert_config.json",
        "vocab_file": golden / "vocab.txt",
        "output_dir": tmp_path / "run",
        "max_seq_length": 16,
        "train_batch_size": 2,
        "num_train_epochs": 1,
    }


@pytest.fixture
def tag(run_tool, arguments):
    def run(**changes):
        flags = {**arguments, **changes}
        return run_tool(
            "run_ner", *(f"--{k}={v}" for k, v in flags.items() if v is not None)
        )

    return run


def test_a_folder_of_tagged_words_in_scores_and_predictions_out(tag, tmp_path):
    result = tag(do_eval="true", do_predict="true")
    assert "The evaluation uses the training data" in result.stderr
    assert result.exit_code == 0, result.stderr
    assert "eval_f1 = " in result.stdout
    assert "test_f1 = " in result.stdout
    lines = (tmp_path / "run" / "test_predictions.txt").read_text().splitlines()
    words = [line.split()[:1] for line in TRAIN.splitlines()]
    assert [line.split()[:1] for line in lines] == words
    assert "Traceback" not in result.stderr

    path = tmp_path / "run" / "eval_results.txt"
    scores = path.read_text()
    path.unlink()
    again = tag(do_train=None, do_eval="true", bert_config_file=None, vocab_file=None)
    assert again.exit_code == 0, again.stderr
    # The test file's scores are added by --do_predict.
    assert path.read_text() == scores[: scores.index("test_accuracy")]


def test_plain_text_is_tagged_line_by_line(tag, tmp_path):
    assert tag().exit_code == 0
    (tmp_path / "text.txt").write_text("Anna, in Lund.\n\nis Rod")
    result = tag(
        do_train=None,
        data_dir=None,
        do_predict="true",
        predict_file=tmp_path / "text.txt",
    )
    assert result.exit_code == 0, result.stderr
    lines = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["line"] for record in records] == [1, 2, 3]
    assert records[0]["words"] == ["Anna", ",", "in", "Lund", "."]
    assert records[0]["starts"] == [0, 4, 6, 9, 13]
    assert records[1]["words"] == records[1]["tags"] == []
    for record, text in zip(records, ["Anna, in Lund.", "", "is Rod"], strict=True):
        answer = bert_tf.load(str(tmp_path / "run")).predict([text])[0]
        assert record == {"line": record["line"]} | answer


@pytest.mark.parametrize(
    "changes, exit_code, message",
    [
        ({"vocab_file": "none.txt"}, 1, "none.txt"),
        ({"labels": "O,B-PER"}, 1, "train.txt:4: the tag 'B-LOC' is not one of"),
        ({"tag_scheme": "iob1"}, 1, "train.txt:1: 'B-PER' cannot start an entity"),
        ({"do_train": None}, 2, "Nothing to do"),
        ({"data_dir": None}, 2, "--data_dir is required"),
        ({"true_case": "true"}, 2, "use it with --do_lower_case=False"),
    ],
)
def test_a_user_mistake_ends_in_one_line(tag, tmp_path, changes, exit_code, message):
    result = tag(**changes)
    assert result.exit_code == exit_code
    [*_, line] = result.stderr.strip().splitlines()
    assert line.startswith("run_ner: ")
    assert message in line
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()
