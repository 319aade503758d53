import dataclasses
import functools
import json
import shutil

import pytest

import bert_tf
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.training import plots
from tests import runs
from tests.tasks.question_answering import contract


def read_json(folder, name="predictions.json"):
    return json.loads((folder / name).read_text())


def pairs(path):
    """Returns (question, context) for each question of a SQuAD file."""
    with open(path) as file:
        articles = json.load(file)["data"]
    return [
        (qa["question"], paragraph["context"])
        for article in articles
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ]


@pytest.fixture(scope="module")
def quiz(tmp_path_factory):
    """File of 32 questions, all of them with an answer, as in SQuAD 1.1."""
    content = json.loads(contract.squad(contract.CONTEXTS))
    for paragraph in content["data"][0]["paragraphs"]:
        answerable = [qa for qa in paragraph["qas"] if not qa.pop("is_impossible")]
        paragraph["qas"] = answerable
    path = tmp_path_factory.mktemp("quiz") / "quiz.json"
    path.write_text(json.dumps(content))
    return str(path)


@pytest.fixture(scope="module")
def quiz_options(task_options, quiz):
    """Returns options of a short run on the quiz; keywords replace or add."""
    return functools.partial(
        task_options("question_answering"),
        train_file=quiz,
        predict_file=quiz,
        version_2_with_negative=False,
        num_train_epochs=1.0,
    )


@pytest.fixture(scope="module")
def quiz_run(tmp_path_factory, quiz_options):
    """Folder of a run that was evaluated on the quiz and answered it."""
    run_dir = tmp_path_factory.mktemp("runs") / "quiz"
    report = fine_tuning_run.run(quiz_options(run_dir, do_eval=True, do_predict=True))
    assert "eval_f1 = " in report
    return run_dir


@pytest.fixture(scope="module")
def quiz_2_run(trained):
    """Folder of a run that may have no answer, as in SQuAD 2.0."""
    return trained("question_answering")


def test_answers_are_in_the_releases_files_with_their_positions(quiz_run, quiz):
    answers = read_json(quiz_run)
    assert len(answers) == 32
    assert list(answers)[:2] == ["0-first?", "0-last?"]
    nbest = read_json(quiz_run, "nbest_predictions.json")
    assert {key: entries[0]["text"] for key, entries in nbest.items()} == answers
    names = ["text", "probability", "start_logit", "end_logit"]
    assert list(nbest["0-first?"][0]) == names
    assert not (quiz_run / "null_odds.json").exists()
    lines = runs.json_lines(quiz_run / "predictions.jsonl")
    for line, (_, context) in zip(lines, pairs(quiz), strict=True):
        assert context[line["start"] : line["end"]] == line["answer"]
    assert {line["id"]: line["answer"] for line in lines} == answers


@pytest.mark.slow
def test_a_run_may_have_no_answer(quiz_2_run):
    # Every third has no answer.
    nothing = {"name": "no answer", "value": 100 / 3, "perfect": 100}
    baselines = plots.read_data(str(quiz_2_run))["baselines"]
    assert baselines == {"eval_exact_match": nothing, "eval_f1": nothing}
    odds = read_json(quiz_2_run, "null_odds.json")
    answers = read_json(quiz_2_run)
    assert {key for key, value in odds.items() if value > 0} == {
        key for key, answer in answers.items() if not answer
    }
    results = runs.scores(quiz_2_run)
    assert results["eval_NoAns_total"] == 8
    assert results["eval_best_f1"] >= results["eval_f1"]
    assert {"eval_exact_match", "eval_HasAns_f1", "eval_best_f1_thresh"} <= set(results)


@pytest.mark.slow
def test_the_threshold_of_a_run_is_used_and_exported(
    tmp_path, quiz_2_run, task_data, task_options
):
    quiz_options = task_options("question_answering")
    run_dir = tmp_path / "run"
    shutil.copytree(quiz_2_run, run_dir)
    # As if the scores of [CLS] were too low: it always answers.
    task = read_json(run_dir, "task.json") | {"null_score_diff_threshold": 1e6}
    (run_dir / "task.json").write_text(json.dumps(task))
    then = {"do_train": False}
    options = quiz_options(run_dir, do_eval=True, do_predict=True, **then)
    fine_tuning_run.run(options)
    before = runs.scores(run_dir)
    assert "" not in read_json(run_dir).values()
    # Above the best one, which is the null odds of a question that rounding may change.
    threshold = before["eval_best_f1_thresh"] + 1e-4
    fine_tuning_run.run(
        dataclasses.replace(options, null_score_diff_threshold=threshold)
    )
    tuned, answers = runs.scores(run_dir), read_json(run_dir)
    # What is best does not depend on the threshold of before.
    best = {name: score for name, score in before.items() if "best" in name}
    assert best.items() <= tuned.items()
    assert tuned["eval_f1"] == pytest.approx(tuned["eval_best_f1"])
    assert tuned["eval_f1"] > before["eval_f1"]
    assert read_json(run_dir, "task.json") == task  # The flag is for one command.
    stored = task | {"null_score_diff_threshold": threshold}
    (run_dir / "task.json").write_text(json.dumps(stored))
    # Later predictions use it, in every way.
    fine_tuning_run.run(quiz_options(run_dir, do_predict=True, **then))
    assert read_json(run_dir) == answers
    asked = pairs(task_data("question_answering") / "dev.json")
    predicted = bert_tf.load(str(run_dir)).predict(asked)
    assert [one["answer"] for one in predicted] == list(answers.values())
    folder = export.export_saved_model(str(run_dir), str(tmp_path / "export"))
    questions, contexts = map(list, zip(*asked, strict=True))
    saved = client.open_saved_model(folder).ask(question=questions, context=contexts)
    assert [one["answer"] for one in saved] == list(answers.values())
    # The checkpoint alone, in a new folder.
    values = {"init_checkpoint": str(run_dir), "do_predict": True}
    fine_tuning_run.run(quiz_options(tmp_path / "new", **then | values))
    assert read_json(tmp_path / "new") == answers
    # A flag still counts, even with the release's default.
    fine_tuning_run.run(
        quiz_options(run_dir, do_predict=True, null_score_diff_threshold=0.0, **then)
    )
    assert read_json(run_dir) == read_json(quiz_2_run)
    # The command of the training again, which has nothing left to do.
    fine_tuning_run.run(quiz_options(run_dir, **contract.CONTRACT.evaluations()))
    assert read_json(run_dir, "task.json") == stored


def test_a_model_that_always_answers_has_no_threshold(quiz_run, quiz_options):
    applied = {"do_train": False, "do_eval": True, "null_score_diff_threshold": -1.0}
    with pytest.raises(ValueError, match="=-1 has no effect on a model that"):
        fine_tuning_run.run(quiz_options(quiz_run, **applied))
    with pytest.raises(ValueError, match="has no effect on a model that always"):
        bert_tf.load(str(quiz_run)).predict([], null_score_diff_threshold=0.0)


@pytest.mark.slow
def test_a_run_keeps_its_rules_unless_flags_change_them(
    tmp_path, quiz_run, quiz_options
):
    run_dir = tmp_path / "run"
    shutil.copytree(quiz_run, run_dir)
    task = read_json(run_dir, "task.json") | {"n_best_size": 2, "max_answer_length": 1}
    (run_dir / "task.json").write_text(json.dumps(task))

    def longest(**values):
        options = quiz_options(run_dir, do_train=False, do_predict=True, **values)
        fine_tuning_run.run(options)
        nbest = read_json(run_dir, "nbest_predictions.json").values()
        words = max(len(one["text"].split()) for entries in nbest for one in entries)
        return max(map(len, nbest)), words > 1

    # Fewer than two answers if the best start and end are at different words.
    num_answers, has_phrases = longest()
    assert num_answers <= 2
    assert not has_phrases
    # Flags with the release's defaults.
    assert longest(n_best_size=20, max_answer_length=30)[1]
    assert longest(n_best_size=20, max_answer_length=30)[0] > 2


@pytest.mark.parametrize("is_training", [True, False], ids=["while training", "after"])
def test_questions_without_answers_cannot_be_evaluated_on(
    tmp_path, quiz, quiz_options, is_training
):
    with open(quiz) as file:
        content = json.load(file)
    del content["data"][0]["paragraphs"][0]["qas"][0]["answers"]
    (tmp_path / "test.json").write_text(json.dumps(content))
    values = {"eval_every_steps": 1} if is_training else {"do_eval": True}
    options = quiz_options(
        tmp_path / "run", predict_file=str(tmp_path / "test.json"), **values
    )
    with pytest.raises(ValueError, match="has questions without answers"):
        fine_tuning_run.run(options)
    assert not (tmp_path / "run").exists()
