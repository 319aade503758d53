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


def test_the_tags_may_be_in_a_file(tag, tmp_path):
    (tmp_path / "tags.txt").write_text("O\nB-LOC\nB-PER\nB-ORG\n\n")
    assert tag(label_list=tmp_path / "tags.txt").exit_code == 0
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["labels"] == ["O", "B-LOC", "B-PER", "B-ORG"]
    (tmp_path / "tags.txt").write_text("O\nO\n")
    result = tag(label_list=tmp_path / "tags.txt", output_dir=tmp_path / "other")
    assert result.exit_code == 1
    assert "expected at least two different tags, one per line, got O, O" in refusal(
        result
    )


def refusal(result):
    """The one line of the error message."""
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("run_ner: ")
    assert "Traceback" not in result.stderr
    return line


@pytest.mark.parametrize(
    "content, message",
    [
        ("a B-X\nb O\n\nc I-X\n", "train.txt:4: 'I-X' does not continue an entity"),
        ("a B-X\nb\n", "train.txt:2: expected 2 columns as in line 1, got 1"),
        (b"a B-X\n\xff O\n", "train.txt:2: not UTF-8"),
        ("", "train.txt has no words"),
        ("a\nb\n", "has 1 column"),
        (None, "train.txt"),
    ],
)
def test_bad_data_end_in_one_line_and_exit_code_1(tag, tmp_path, content, message):
    path = tmp_path / "train.txt"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = tag()
    assert result.exit_code == 1
    assert message in refusal(result)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"vocab_file": "none.txt"}, "none.txt"),
        ({"init_checkpoint": "none.ckpt"}, "none.ckpt"),
        ({"labels": "O,B-PER"}, "train.txt:4: the tag 'B-LOC' is not one of"),
        ({"tag_scheme": "iob1"}, "train.txt:1: 'B-PER' does not follow"),
        ({"document_context": "true"}, "has no line that starts with -DOCSTART-"),
        ({"do_train": None, "do_eval": "true"}, "train first"),
        ({"train_batch_size": 5}, "2 rows × 1 epochs do not fill one batch of 5"),
    ],
)
def test_what_does_not_fit_ends_in_one_line_and_exit_code_1(tag, changes, message):
    result = tag(**changes)
    assert result.exit_code == 1
    assert message in refusal(result)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"do_train": None}, "Nothing to do"),
        ({"data_dir": None}, "--data_dir is required"),
        ({"labels": "O,B", "label_list": "x"}, "one of --labels and --label_list"),
        ({"feature_based": "middle"}, "--feature_based"),
        ({"true_case": "true"}, "use it with --do_lower_case=False"),
        ({"use_tpu": "true"}, "use --device=tpu"),
    ],
)
def test_wrong_flags_end_in_one_line_and_exit_code_2(tag, changes, message):
    result = tag(**changes)
    assert result.exit_code == 2
    assert message in refusal(result)
