"""Exact match and F1, as the official scripts of SQuAD 1.1 and 2.0 count them."""

import collections
import dataclasses
import json
import logging
import re
import statistics
import string
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf.tasks.question_answering import examples as question_answering_examples

logger = logging.getLogger(__name__)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionScore:
    """How good one answer is."""

    exact: float  # 1 where it is one of the true ones, else 0.
    f1: float  # Of its words and those of the nearest true one.
    has_answer: bool  # Whether the question has one.


def squad_scores(
    squad_file: question_answering_examples.SquadFile,
    answers: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Returns the scores of the answers to a file's questions, in percent.

    Args:
        squad_file: what `read_squad` returned.
        answers: {id: answer}, "" for none.
        null_odds: {id: how likely there is no answer}, for files of version 2.0.

    Returns:
        Version 1.1: `exact_match`, `f1`. Version 2.0: `exact`, `f1`, `total`, and
        these of the questions with and without an answer (`HasAns_exact`,
        `NoAns_f1`, ...). With `null_odds` also `best_exact`, `best_exact_thresh`,
        `best_f1`, `best_f1_thresh`: what the scores would be if there were no answer
        wherever the odds are above the best threshold.

    Raises:
        ValueError: a question has no true answer, or none of the questions is answered.

    Source: SQuAD's evaluate-v1.1.py and evaluate-v2.0.py. As there, a question that is
    not answered counts 0 in version 1.1 and is left out in version 2.0; a warning says
    how many there are.
    """
    if not squad_file.has_answers:
        raise ValueError(
            f"{squad_file.path} has questions without their true answers, so answers "
            "cannot be scored; expected a training or development file."
        )
    of_question = question_scores(squad_file, answers)
    missing = len(squad_file.examples) - len(of_question)
    if missing:
        logger.warning(
            "%d of %d questions are not answered.", missing, len(squad_file.examples)
        )
    if not of_question:
        raise ValueError(
            f"None of the answers belongs to a question of {squad_file.path}; expected "
            "the predictions of this very file."
        )
    if not squad_file.is_version_2:
        num_questions = len(squad_file.examples)
        exact = sum(score.exact for score in of_question.values())
        f1 = sum(score.f1 for score in of_question.values())
        return {
            "exact_match": 100 * exact / num_questions,
            "f1": 100 * f1 / num_questions,
        }
    found = _version_2_scores(of_question.values())
    if null_odds is not None:
        found |= _best_scores(squad_file, answers, null_odds, of_question)
    return found


def question_scores(
    squad_file: question_answering_examples.SquadFile, answers: Mapping[str, str]
) -> dict[str, QuestionScore]:
    """Returns the score of each question that is answered, by its id.

    Args:
        squad_file: what `read_squad` returned.
        answers: {id: answer}, "" for none.
    """
    return {
        example.qas_id: _question_score(
            example, answers[example.qas_id], squad_file.is_version_2
        )
        for example in squad_file.examples
        if example.qas_id in answers
    }


def report(options) -> str:
    """Returns the scores of a file of predictions as JSON, and writes them.

    Args:
        options: `question_answering.options.EvaluateSquadOptions`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the files do not fit together.
    """
    squad_file = question_answering_examples.read_squad(options.data_file)
    null_odds = None
    if options.null_odds_file is not None:
        if not squad_file.is_version_2:
            raise ValueError(
                f"{options.data_file} does not say which questions have no answer, so "
                "there is no threshold to find; leave --null_odds_file out."
            )
        null_odds = read_by_id(options.null_odds_file, float)
    answers = read_by_id(options.predictions_file, str)
    text = json.dumps(squad_scores(squad_file, answers, null_odds), indent=2)
    if options.output_file is not None:
        with files.complete_or_absent(options.output_file) as file:
            file.write(text + "\n")
    return text


def read_by_id(path: str, kind: type) -> dict:
    """Returns what a JSON file says of each question.

    Args:
        path: the file: {id: text} or {id: number}.
        kind: str or float.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file.
    """
    with files.open_file(path) as file:
        try:
            content = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: not JSON ({error}).") from None
    kinds = (int, float) if kind is float else kind
    expected = "a number" if kind is float else "text"
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected an object of {expected} by id.")
    for qas_id, value in content.items():
        if not isinstance(value, kinds):
            raise ValueError(f"{path}: {qas_id}: expected {expected}, got {value!r}.")
    return content


def normalized(answer: str) -> str:
    """Returns an answer lower-cased, without punctuation, articles, excess spaces."""
    text = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def word_f1(truth: str, answer: str, *, empty_is_word: bool) -> float:
    """Returns the F1 of two answers' words.

    Args:
        truth: str.
        answer: str.
        empty_is_word: whether two answers without words are the same (version 2.0),
            or have nothing in common (1.1).
    """
    wanted, given = normalized(truth).split(), normalized(answer).split()
    if empty_is_word and not (wanted and given):
        return float(wanted == given)
    num_same = sum((collections.Counter(wanted) & collections.Counter(given)).values())
    if not num_same:
        return 0.0
    precision, recall = num_same / len(given), num_same / len(wanted)
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
    scores = list(scores)
    found = _means(scores, "")
    for name, has_answer in (("HasAns_", True), ("NoAns_", False)):
        part = [score for score in scores if score.has_answer is has_answer]
        if part:
            found |= _means(part, name)
    return found


def _means(scores: Sequence[QuestionScore], prefix):
    return {
        f"{prefix}exact": 100 * statistics.fmean(score.exact for score in scores),
        f"{prefix}f1": 100 * statistics.fmean(score.f1 for score in scores),
        f"{prefix}total": len(scores),
    }


def _best_scores(squad_file, answers, null_odds, of_question):
    """Source: find_all_best_thresh of evaluate-v2.0.py."""
    ranked = sorted(null_odds, key=null_odds.get)
    num_without = sum(not example.answers for example in squad_file.examples)
    found = {}
    for name in ("exact", "f1"):
        best = current = num_without
        threshold = 0.0
        for qas_id in ranked:
            if qas_id not in of_question:
                continue
            score = of_question[qas_id]
            if score.has_answer:
                current += getattr(score, name)
            elif answers[qas_id]:
                current -= 1
            if current > best:
                best, threshold = current, null_odds[qas_id]
        found[f"best_{name}"] = 100 * best / len(of_question)
        found[f"best_{name}_thresh"] = threshold
    return found
