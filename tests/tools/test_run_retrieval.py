"""run_retrieval, called with flags as a user calls it."""

import json

import pytest

PAIRS = [
    {"id": "a", "query": "the bee", "passage": "honey and wax"},
    {"id": "b", "query": "the lamp", "passage": "light at midnight"},
]


@pytest.fixture
def arguments(golden, tmp_path):
    """The flags of a minimal run; tests replace some of them."""
    lines = "".join(json.dumps(pair) + "\n" for pair in PAIRS)
    (tmp_path / "pairs.jsonl").write_text(lines)
    (tmp_path / "corpus.txt").write_text("honey and wax\nlight at midnight\nbread\n")
    return {
        "do_train": "true",
        "train_file": tmp_path / "pairs.jsonl",
        "bert_config_file": golden / "model" / "bert_config.json",
        "vocab_file": golden / "vocab.txt",
        "output_dir": tmp_path / "run",
        "max_query_length": 8,
        "max_seq_length": 16,
        "train_batch_size": 2,
        "num_train_epochs": 2,
    }


@pytest.fixture
def retrieve(run_tool, arguments):
    def run(**changes):
        flags = {**arguments, **changes}
        return run_tool(
            "run_retrieval", *(f"--{k}={v}" for k, v in flags.items() if v is not None)
        )

    return run


def test_a_run_reports_scores_and_writes_rankings(retrieve, tmp_path):
    path = tmp_path / "pairs.jsonl"
    result = retrieve(
        eval_file=path,
        predict_file=path,
        corpus_file=tmp_path / "corpus.txt",
        do_eval="true",
        do_predict="true",
        recall_at="1,2",
        top_k=2,
    )
    assert result.exit_code == 0, result.stderr
    assert "Trained to step 2" in result.stdout
    assert "eval_recall_at_2 = " in result.stdout
    assert "The evaluation uses the training data" in result.stderr
    lines = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["id"] for record in records] == ["a", "b"]
    assert [len(record["passages"]) for record in records] == [2, 2]
    card = (tmp_path / "run" / "README.md").read_text()
    for name in ("queries", "passages"):
        text = f"Of the training {name}, 0.0% are longer than --max_"
        assert text in result.stderr
        assert text in card
    assert "Traceback" not in result.stderr


def refusal(result):
    """Returns the one line of the error message."""
    [line] = result.stderr.strip().splitlines()[-1:]
    assert line.startswith("run_retrieval: ")
    assert "Traceback" not in result.stderr
    return line


@pytest.mark.parametrize(
    "changes, exit_code, message",
    [
        ({"train_file": "none.jsonl"}, 1, "No such file: none.jsonl"),
        ({"do_eval": "true"}, 2, "needs --eval_file"),
        ({"do_predict": "true", "predict_file": "q"}, 2, "needs --corpus_file"),
        (
            {"model": "cross_encoder", "do_predict": "true", "predict_file": "q"}
            | {"corpus_file": "c"},
            2,
            "with a cross_encoder needs --retrieve_with",
        ),
        ({"retrieve_with": "x"}, 2, "--retrieve_with cannot be used with --model=bi_"),
        (
            {"model": "cross_encoder", "temperature": 1},
            2,
            "--temperature cannot be used with",
        ),
        (
            {"gradient_accumulation_steps": 2},
            2,
            "--gradient_accumulation_steps=2 cannot be used with --model=bi_encoder",
        ),
        ({"frozen_layers": "all"}, 2, "leaves nothing to train"),
        ({"recall_at": ""}, 2, "--recall_at: expected at least one number"),
    ],
)
def test_a_user_mistake_ends_in_one_line(retrieve, changes, exit_code, message):
    result = retrieve(**changes)
    assert result.exit_code == exit_code
    assert message in refusal(result)
