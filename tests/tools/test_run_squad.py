import json

import pytest

QUESTION = {
    "id": "a",
    "question": "Who?",
    "answers": [{"text": "Anna", "answer_start": 0}],
}
ARTICLE = {"paragraphs": [{"context": "Anna Holt built it.", "qas": [QUESTION]}]}


@pytest.fixture
def arguments(golden, tmp_path):
    """The flags of a minimal run; tests replace some of them."""
    (tmp_path / "quiz.json").write_text(json.dumps({"data": [ARTICLE]}))
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
    "changes, exit_code, message",
    [
        ({"train_file": __file__}, 1, "test_run_squad.py is not JSON"),
        ({"train_file": None}, 2, "Training needs --train_file"),
        ({"do_eval": "true"}, 2, "Evaluating needs --predict_file"),
        ({"max_query_length": 29}, 2, "--max_seq_length=32 is too short for a questi"),
        ({"ensemble": "a,b"}, 2, "--do_train cannot be combined with --ensemble"),
    ],
)
def test_a_user_mistake_ends_in_one_line(answer, tmp_path, changes, exit_code, message):
    result = answer(**changes)
    assert result.exit_code == exit_code
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("run_squad: ")
    assert message in line
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()
