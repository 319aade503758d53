import json

import pytest


@pytest.fixture
def files(tmp_path):
    """Writes a data file of version 2.0 with its predictions and odds."""
    paragraph = {
        "context": "Anna Holt built it.",
        "qas": [
            {
                "id": "a",
                "question": "Who?",
                "answers": [{"text": "Anna Holt", "answer_start": 0}],
                "is_impossible": False,
            },
            {"id": "b", "question": "When?", "answers": [], "is_impossible": True},
        ],
    }
    contents = {
        "data": {"data": [{"paragraphs": [paragraph]}]},
        "predictions": {"a": "Anna", "b": "1905"},
        "odds": {"a": -4.0, "b": 1.5},
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


@pytest.fixture
def evaluate(run_tool, files):
    flags = {
        "data_file": files / "data.json",
        "predictions_file": files / "predictions.json",
        "null_odds_file": files / "odds.json",
    }
    return lambda *more, **changes: run_tool("evaluate_squad", *more, **flags | changes)


def test_scores_are_printed_as_json(evaluate):
    results = json.loads(evaluate().stdout)
    assert results["exact"] == 0.0
    assert results["f1"] == pytest.approx(100 / 3)
    assert (results["HasAns_total"], results["NoAns_f1"]) == (1, 0.0)
    # No answer to the second question, whose odds are above those of the first.
    assert results["best_f1"] == pytest.approx(250 / 3)
    assert results["best_f1_thresh"] == -4.0


@pytest.mark.parametrize(
    "flags, f1",
    [
        ([], 100 / 3),  # No threshold, whereas the official script has 1.
        (["--na_prob_thresh=1"], 250 / 3),
        (["--na_prob_thresh=2"], 100 / 3),
        (["--na_prob_thresh=-5"], 50.0),
    ],
)
def test_answers_above_the_threshold_count_as_none(evaluate, flags, f1):
    result = evaluate(*flags)
    assert json.loads(result.stdout)["f1"] == pytest.approx(f1)
    assert ("1 answers have scores above 1" in result.stderr) == (not flags)


def test_both_files_may_be_given_as_to_the_official_script(run_tool, files):
    paths = (files / "data.json", files / "predictions.json")
    result = run_tool("evaluate_squad", *paths)
    assert json.loads(result.stdout)["f1"] == pytest.approx(100 / 3)
    result = run_tool("evaluate_squad", *paths, "x", exit_code=2)
    assert "Unexpected 'x'" in result.refusal


@pytest.mark.parametrize(
    "changes, exit_code, message",
    [
        ({"data_file": "{files}/odds.json"}, 1, "odds.json: data is missing"),
        ({"na_prob_thresh": "1", "null_odds_file": None}, 2, "--na_prob_thresh needs"),
    ],
)
def test_what_cannot_be_scored_ends_in_one_line(
    evaluate, files, changes, exit_code, message
):
    changes = {k: v and v.format(files=files) for k, v in changes.items()}
    result = evaluate(**changes, exit_code=exit_code)
    assert message in result.refusal


def test_empty_answers_are_reported_because_thresholds_need_all(evaluate, files):
    (files / "predictions.json").write_text(json.dumps({"a": "", "b": ""}))
    result = evaluate()
    assert json.loads(result.stdout)["best_exact"] == 50.0
    assert "2 answers in" in result.stderr


def test_odds_of_other_predictions_are_refused(evaluate, files):
    (files / "odds.json").write_text(json.dumps({"a": 1.0}))
    result = evaluate(exit_code=1)
    assert "null odds lack 1 of 2 answered questions, for example b" in result.stderr
