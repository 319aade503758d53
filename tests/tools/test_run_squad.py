import json

import pytest

CONTEXT = "Anna Holt built it."


def article(**changes):
    qa = {
        "id": "a",
        "question": "Who?",
        "answers": [{"text": "Anna", "answer_start": 0}],
    }
    return {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [qa | changes]}]}]}


@pytest.fixture
def arguments(golden, tmp_path):
    """The flags of a minimal run; tests replace some of them."""
    (tmp_path / "quiz.json").write_text(json.dumps(article()))
    return {
        "do_train": "true",
        "train_file": tmp_path / "quiz.json",
        "bert_config_file": golden / "model" / "bert_config.json",
        "vocab_file": golden / "vocab.txt",
        "output_dir": tmp_path / "run",
        "max_seq_length": 32,
        "max_query_length": 8,
        "train_batch_size": 1,
        "num_train_epochs": 1,
    }


@pytest.fixture
def answer(run_tool, arguments):
    def run(**changes):
        flags = {**arguments, **changes}
        return run_tool(
            "run_squad", *(f"--{k}={v}" for k, v in flags.items() if v is not None)
        )

    return run


def refusal(result):
    """The one line of the error message."""
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("run_squad: ")
    assert "Traceback" not in result.stderr
    return line


def test_questions_in_scores_and_answers_out(answer, tmp_path):
    result = answer(
        do_predict="true", do_eval="true", predict_file=tmp_path / "quiz.json"
    )
    assert result.exit_code == 0, result.stderr
    assert "The evaluation uses the training data" in result.stderr
    assert "eval_f1 = " in result.stdout
    assert "Num split examples = 1" in result.stderr
    assert list(json.loads((tmp_path / "run" / "predictions.json").read_text())) == [
        "a"
    ]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "quiz.json is not JSON"),
    ],
)
def test_bad_data_end_in_one_line_and_exit_code_1(answer, tmp_path, content, message):
    (tmp_path / "quiz.json").write_text(content)
    result = answer()
    assert result.exit_code == 1
    assert message in refusal(result)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"do_train": "false"}, "Nothing to do"),
        ({"train_file": None}, "Training needs --train_file"),
        ({"do_predict": "true"}, "Predicting needs --predict_file"),
        ({"do_eval": "true"}, "Evaluating needs --predict_file"),
        ({"max_query_length": 29}, "--max_seq_length=32 is too short for a question"),
        ({"doc_stride": 0}, "--doc_stride: expected at least 1, got 0"),
        ({"n_best_size": 0}, "--n_best_size: expected at least 1"),
        ({"ensemble": "a,b"}, "--do_train cannot be combined with --ensemble"),
        (
            {
                "do_train": None,
                "do_eval": "true",
                "predict_file": "x",
                "ensemble": "a,a",
            },
            "--ensemble=a,a names a folder twice",
        ),
        ({"output_dir": None}, "--output_dir is required"),
        ({"use_tpu": "true"}, "use --device=tpu"),
    ],
)
def test_wrong_flags_end_in_one_line_and_exit_code_2(answer, changes, message):
    result = answer(**changes)
    assert result.exit_code == 2
    assert message in refusal(result)
