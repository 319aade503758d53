import json
import logging
import random

import pytest

from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import scores as scores_module


def squad_file(*answers, is_version_2=False):
    """Returns a file of questions "0", "1", ...; each has the answers given for it."""
    context = examples_module.Context("some text")
    return examples_module.SquadFile(
        path="quiz.json",
        examples=[
            examples_module.SquadExample(
                qas_id=str(number),
                question_text="?",
                context=context,
                answers=tuple(
                    examples_module.Answer(text=text, start=0) for text in texts
                ),
                is_impossible=not texts,
            )
            for number, texts in enumerate(answers)
        ],
        is_version_2=is_version_2,
        has_answers=True,
    )


@pytest.mark.parametrize(
    "answer, expected",
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("an apple a day", "apple day"),
        ("U.S.", "us"),
        ("the", ""),
    ],
)
def test_answers_are_compared_without_articles_and_punctuation(answer, expected):
    assert scores_module.normalized(answer) == expected


@pytest.mark.parametrize(
    "truth, answer, version_1, version_2",
    [
        ("the red house", "red house", 1.0, 1.0),
        ("red house", "house", 2 / 3, 2 / 3),  # Precision 1, recall 1/2.
        ("red red house", "red", 0.5, 0.5),  # A word counts as often as it occurs.
        ("red", "blue", 0.0, 0.0),
        ("", "", 0.0, 1.0),  # Version 2.0 marks questions without an answer.
        ("", "red", 0.0, 0.0),
    ],
)
def test_f1_is_that_of_the_words(truth, answer, version_1, version_2):
    results = [
        scores_module.word_f1(truth, answer, empty_is_word=v) for v in (False, True)
    ]
    assert results == pytest.approx([version_1, version_2])


@pytest.mark.parametrize(
    "texts, is_warned",
    [(["北京", "1984年", "Rom"], True), (["Rom", "Bonn", "北京", "Paris"], False)],
)
def test_f1_over_words_says_little_in_scripts_without_spaces(caplog, texts, is_warned):
    scores_module.warn_without_spaces(squad_file(*([text] for text in texts)))
    assert ("score the predictions with the script of" in caplog.text) == is_warned


def test_version_1_takes_the_nearest_true_answer_and_counts_what_is_missing(caplog):
    given = squad_file(["red house", "house"], ["1905"], ["Anna"], ["Ida"])
    with caplog.at_level(logging.WARNING):
        results = scores_module.squad_scores(
            given, {"0": "a house", "1": "in 1905", "2": "Ida"}
        )
    assert results == pytest.approx({"exact_match": 25.0, "f1": 100 * (1 + 2 / 3) / 4})
    assert "1 of 4 questions are not answered." in caplog.text


def test_version_2_has_scores_with_and_without_answer_and_best_thresholds():
    given = squad_file(["red house"], ["Anna"], [], [], is_version_2=True)
    answers = {"0": "house", "1": "Anna", "2": "Ida", "3": ""}
    odds = {"0": -3.0, "1": -1.0, "2": 2.0, "3": 5.0}
    results = scores_module.squad_scores(given, answers, odds)
    assert results == pytest.approx(
        {
            "exact": 50.0,
            "f1": 100 * (2 / 3 + 2) / 4,
            "total": 4,
            "HasAns_exact": 50.0,
            "HasAns_f1": 100 * (2 / 3 + 1) / 2,
            "HasAns_total": 2,
            "NoAns_exact": 50.0,
            "NoAns_f1": 50.0,
            "NoAns_total": 2,
            # Answering the first two and nothing else.
            "best_exact": 75.0,
            "best_exact_thresh": -1.0,
            "best_f1": 100 * (2 / 3 + 1 + 2) / 4,
            "best_f1_thresh": -1.0,
        }
    )


def test_without_any_good_answer_the_best_threshold_is_none_at_all():
    given = squad_file(["Anna"], [], is_version_2=True)
    results = scores_module.squad_scores(
        given, {"0": "Ida", "1": "Ida"}, {"0": 1.0, "1": 0.0}
    )
    assert (results["best_f1"], results["best_f1_thresh"]) == (50.0, 0.0)


def scores_at(given, best_answers, odds, threshold):
    answers = {i: "" if odds[i] > threshold else best_answers[i] for i in odds}
    return scores_module.squad_scores(given, answers, odds, best_answers=best_answers)


def test_the_best_threshold_does_not_depend_on_the_one_that_was_applied():
    """Every best score is reached at its threshold, and at no threshold a higher one.

    Many odds are equal, as in half precision: no threshold separates them.
    """
    generator = random.Random(3)
    for _ in range(200):
        count = generator.randint(1, 12)
        texts = [generator.choice([["red house"], ["Anna"], []]) for _ in range(count)]
        given = squad_file(*texts, is_version_2=True)
        ids = [str(number) for number in range(count)]
        said = ("red house", "house", "Anna", "Ida", "")
        best = {name: generator.choice(said) for name in ids}
        odds = {name: generator.randint(-3, 3) / 2 for name in ids}
        results = [scores_at(given, best, odds, number / 2) for number in range(-9, 9)]
        for name in ("exact", "f1"):
            best_scores = {
                (one[f"best_{name}"], one[f"best_{name}_thresh"]) for one in results
            }
            [(score, threshold)] = best_scores
            assert score == pytest.approx(max(one[name] for one in results))
            again = scores_at(given, best, odds, threshold)
            assert again[name] == pytest.approx(score)


def test_predictions_of_another_file_are_refused():
    with pytest.raises(ValueError, match="None of the answers belongs to a question"):
        scores_module.squad_scores(squad_file(["Anna"]), {"x": "Anna"})


@pytest.mark.parametrize(
    "content, kind, message",
    [
        ("{", str, "not JSON"),
        ("[]", str, "expected a JSON object with text for each question id"),
        ('{"a": 1}', str, "a: expected text, got 1"),
        ('{"a": "x"}', float, "a: expected a number, got 'x'"),
    ],
)
def test_files_that_hold_something_else_are_refused(tmp_path, content, kind, message):
    path = tmp_path / "answers.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        scores_module.read_by_id(str(path), kind)


@pytest.mark.parametrize(
    "version, names, expected",
    [
        ("1.1", ("exact_match", "f1"), (86.21, 92.20)),
        ("2.0", ("exact", "f1"), (78.74, 81.78)),
    ],
)
def test_published_predictions_have_their_published_scores(
    shared, version, names, expected
):
    folder = shared / "data" / "squad"
    path = folder / f"published-bert-predictions-v{version}.json"
    results = scores_module.squad_scores(
        examples_module.read_squad(str(folder / f"dev-v{version}.json")),
        json.loads(path.read_text()),
    )
    assert tuple(round(results[name], 2) for name in names) == expected
