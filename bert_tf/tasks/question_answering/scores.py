"""Exact match and F1, as in the official scripts of SQuAD 1.1 and 2.0."""

import collections
import dataclasses
import json
import logging
import re
import string
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import predictions as predictions_module

logger = logging.getLogger(__name__)

_METRICS = ("exact", "f1")
# The default of --na-prob-thresh in evaluate-v2.0.py.
OFFICIAL_NA_PROB_THRESH = 1.0
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionScore:
    """The scores of the answer to one question."""

    exact: float  # 1 if the answer equals a correct one, else 0.
    f1: float  # The highest F1 over the words of the correct answers.
    has_answer: bool  # The question has a correct answer.


def squad_scores(
    squad_file: examples_module.SquadFile,
    answers: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    *,
    best_answers: Mapping[str, str] | None = None,
    na_prob_thresh: float | None = None,
) -> dict[str, float]:
    """Returns the scores of the answers to a file's questions, in percent.

    Args:
        squad_file: the result of `read_squad`.
        answers: {id: answer}; "" if there is none.
        null_odds: {id: null odds}, for files of version 2.0; higher odds mean that a
            question is less likely to have an answer.
        best_answers: {id: answer} without any threshold applied, to find the best
            thresholds with. None: `answers`, as in the official script, which is only
            right if no threshold was applied to them.
        na_prob_thresh: questions with higher null odds count as answered by "". None:
            `answers` are scored as they are.

    Returns:
        For version 1.1 `exact_match` and `f1`. For version 2.0 `exact`, `f1` and
        `total`, also separately for the questions with and without an answer
        (`HasAns_exact`, `NoAns_f1`, ...). With `null_odds` also `best_exact` and
        `best_f1`, the scores at the threshold of the null odds that is best for each,
        and these thresholds, `best_exact_thresh` and `best_f1_thresh`.

    Raises:
        ValueError: the file lacks the answers to a question, `answers` has none of the
            file's ids, or `null_odds` or `best_answers` lacks the id of an answer.

    Source: SQuAD's evaluate-v1.1.py and evaluate-v2.0.py. As there, a question that
    `answers` lacks scores 0 in version 1.1 and is ignored in version 2.0. A warning
    reports the number of such questions.
    """
    if not squad_file.has_answers:
        raise ValueError(
            f"{squad_file.path} has questions without answers, so predictions cannot "
            "be scored; expected a training or development file."
        )
    by_id = question_scores(squad_file, answers)
    missing = len(squad_file.examples) - len(by_id)
    if missing:
        logger.warning(
            "%d of %d questions are not answered.", missing, len(squad_file.examples)
        )
    if not by_id:
        raise ValueError(
            f"None of the answers belongs to a question of {squad_file.path}; expected "
            "predictions for this file."
        )
    if not squad_file.is_version_2:
        means = _means(by_id.values(), len(squad_file.examples))
        return {"exact_match": means.pop("exact"), **means}
    if null_odds is None:
        return _version_2_scores(by_id.values())
    _check_ids("null odds", null_odds, by_id)
    shown = by_id
    if na_prob_thresh is not None:
        shown = {
            qas_id: _unanswered(score) if null_odds[qas_id] > na_prob_thresh else score
            for qas_id, score in by_id.items()
        }
    scores = _version_2_scores(shown.values())
    if best_answers is None:
        return scores | _best_scores(squad_file, answers, null_odds, by_id)
    _check_ids("best answers", best_answers, by_id)
    best = question_scores(squad_file, {one: best_answers[one] for one in by_id})
    return scores | _best_scores(
        squad_file, best_answers, null_odds, best, is_official=False
    )


def eval_scores(
    squad_file: examples_module.SquadFile,
    answers: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    *,
    best_answers: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Returns `squad_scores` under the names of eval_results.txt.

    The official script of SQuAD 2.0 calls `exact` what that of 1.1 calls `exact_match`.
    A run has one name for it: eval_exact_match, eval_HasAns_exact_match, and so on.
    """
    scores = squad_scores(squad_file, answers, null_odds, best_answers=best_answers)
    return {
        "eval_" + re.sub("exact(?!_match)", "exact_match", name): value
        for name, value in scores.items()
    }


def prediction_scores(
    squad_file: examples_module.SquadFile,
    predictions: Sequence[predictions_module.Prediction],
    threshold: float | None,
) -> dict[str, float]:
    """Returns `eval_scores` of predictions; for `threshold` see `Prediction.answer`."""
    null_odds = None
    if threshold is not None:
        null_odds = {one.qas_id: one.null_odds for one in predictions}
    return eval_scores(
        squad_file,
        {one.qas_id: one.answer(threshold).text for one in predictions},
        null_odds,
        best_answers={one.qas_id: one.best.text for one in predictions},
    )


def question_scores(
    squad_file: examples_module.SquadFile, answers: Mapping[str, str]
) -> dict[str, QuestionScore]:
    """Returns the scores of the answered questions, by id; "" means no answer."""
    return {
        example.qas_id: _question_score(
            example, answers[example.qas_id], squad_file.is_version_2
        )
        for example in squad_file.examples
        if example.qas_id in answers
    }


def report(options: question_answering_options.EvaluateSquadOptions) -> str:
    """Returns the scores of a predictions file as JSON.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file has the wrong format, or they contradict each other.
    """
    squad_file = examples_module.read_squad(options.data_file)
    warn_without_spaces(squad_file)
    answers, null_odds = read_by_id(options.predictions_file, str), None
    if options.null_odds_file is not None:
        if not squad_file.is_version_2:
            raise ValueError(
                f"{options.data_file} does not say which questions have no answer, so "
                "no threshold can be determined; omit --null_odds_file."
            )
        null_odds = read_by_id(options.null_odds_file, float)
    scores = squad_scores(
        squad_file, answers, null_odds, na_prob_thresh=options.na_prob_thresh
    )
    if null_odds is not None:
        _log_thresholds(options, answers, null_odds)
    return json.dumps(scores, indent=2)


def warn_without_spaces(squad_file: examples_module.SquadFile) -> None:
    """Logs a warning if F1 over words says little about the answers of a file."""
    answers = [one.text for example in squad_file.examples for one in example.answers]
    if 2 * sum(map(alignment.is_without_spaces, answers)) > len(answers):
        logger.warning(
            "%s: most correct answers are in scripts without spaces, so f1, which "
            "compares words, is hardly more than exact_match; score the predictions "
            "with the script of the data set.",
            squad_file.path,
        )


def read_by_id(path: str, kind: type) -> dict[str, Any]:
    """Returns the content of a JSON file with one value per question.

    Args:
        path: JSON: {id: text} or {id: number}.
        kind: type of the values: str or float.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has a different format.
    """
    with files.open_file(path, "rb") as file:
        content = files.parse_json(file.read(), path)
    kinds, expected = (str, "text") if kind is str else ((int, float), "a number")
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: expected a JSON object with {expected} for each question id."
        )
    for qas_id, value in content.items():
        # NaN, which differs from itself, cannot be ordered.
        if not isinstance(value, kinds) or value != value:
            raise ValueError(f"{path}: {qas_id}: expected {expected}, got {value!r}.")
    return content


def normalized(answer: str) -> str:
    """Returns an answer in lower case without punctuation, articles, extra spaces."""
    text = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def word_f1(truth: str, answer: str, *, empty_is_word: bool) -> float:
    """Returns the F1 of the words that two answers have in common.

    Args:
        truth: the correct answer.
        answer: the predicted answer.
        empty_is_word: whether two empty answers have an F1 of 1 (version 2.0) or of 0
            (version 1.1).
    """
    expected, predicted = normalized(truth).split(), normalized(answer).split()
    if empty_is_word and not (expected and predicted):
        return float(expected == predicted)
    common = collections.Counter(expected) & collections.Counter(predicted)
    num_same = sum(common.values())
    if not num_same:
        return 0.0
    precision, recall = num_same / len(predicted), num_same / len(expected)
    return 2 * precision * recall / (precision + recall)


def _question_score(example, answer, is_version_2):
    truths = [one.text for one in example.answers]
    if is_version_2:
        truths = [truth for truth in truths if normalized(truth)] or [""]
    return QuestionScore(
        exact=max(float(normalized(truth) == normalized(answer)) for truth in truths),
        f1=max(word_f1(truth, answer, empty_is_word=is_version_2) for truth in truths),
        has_answer=bool(example.answers),
    )


def _version_2_scores(scores):
    means: dict[str, float] = {}
    for prefix, kinds in (("", (0, 1)), ("HasAns_", (1,)), ("NoAns_", (0,))):
        part = [score for score in scores if score.has_answer in kinds]
        if part:
            part_means = _means(part, len(part)) | {"total": len(part)}
            means |= {f"{prefix}{name}": mean for name, mean in part_means.items()}
    return means


def _means(scores, count):
    # Summed as in the official script, so that the last digits are equal too.
    return {
        name: 100 * sum(getattr(score, name) for score in scores) / count
        for name in _METRICS
    }


def _unanswered(score):
    points = float(not score.has_answer)
    return dataclasses.replace(score, exact=points, f1=points)


def _check_ids(what, given, expected):
    missing = [qas_id for qas_id in expected if qas_id not in given]
    if missing:
        raise ValueError(
            f"The {what} lack {len(missing)} of {len(expected)} answered questions, "
            f"for example {missing[0]}; expected files of the same predictions."
        )


def _log_thresholds(options, answers, null_odds):
    """Logs where the official script differs or thresholds may be wrong."""
    count = sum(
        bool(answer) and null_odds.get(one, 0.0) > OFFICIAL_NA_PROB_THRESH
        for one, answer in answers.items()
    )
    if count and options.na_prob_thresh is None:
        logger.warning(
            "%d answers have scores above %g in %s. The official script counts them as "
            "no answer by default; --na_prob_thresh=%g does the same.",
            count,
            OFFICIAL_NA_PROB_THRESH,
            options.null_odds_file,
            OFFICIAL_NA_PROB_THRESH,
        )
    count = sum(not answer for answer in answers.values())
    if count:
        logger.warning(
            "%d answers in %s are empty. If a threshold was applied to them, the best "
            "thresholds are wrong, as in the official script; bert_tf answer --do_eval "
            "writes the right ones.",
            count,
            options.predictions_file,
        )


def _best_scores(squad_file, answers, null_odds, by_id, *, is_official=True):
    """Returns the best threshold of the null odds, and the score there, per metric.

    Starting from "no question has an answer", the threshold rises past one question at
    a time. Its score changes by what its answer earns, or is lost if it has none.

    The official script also stops between questions with equal odds, where no threshold
    can be, and its threshold is 0 if it is best to answer nothing. With `is_official`
    False, the score is always the one that the threshold gives.

    Source: find_all_best_thresh of evaluate-v2.0.py.
    """
    ranked = sorted(filter(by_id.__contains__, null_odds), key=null_odds.get)
    num_without = sum(not example.answers for example in squad_file.examples)
    best_scores = {}
    for name in _METRICS:
        best = current = num_without
        threshold = 0.0 if is_official else null_odds[ranked[0]] - 1
        for qas_id, following in zip(ranked, [*ranked[1:], None], strict=True):
            score = by_id[qas_id]
            if score.has_answer:
                current += getattr(score, name)
            elif answers[qas_id]:
                current -= 1
            is_tie = following and null_odds[following] == null_odds[qas_id]
            if current > best and (is_official or not is_tie):
                best, threshold = current, null_odds[qas_id]
        best_scores[f"best_{name}"] = 100 * best / len(by_id)
        best_scores[f"best_{name}_thresh"] = threshold
    return best_scores
