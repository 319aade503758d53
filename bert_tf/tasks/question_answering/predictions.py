"""The windows' scores to answers: n-best lists, null odds, and the release's files.

Shape letters: W windows, S sequence.
"""

import dataclasses
import functools
import json
import math
import os
import statistics
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import spans
from bert_tf.tasks.question_answering import windows as question_answering_windows

PREDICTIONS_FILE = "predictions.json"
NBEST_FILE = "nbest_predictions.json"
NULL_ODDS_FILE = "null_odds.json"
JSON_LINES_FILE = "predictions.jsonl"
# What the release answers where no window allows any answer.
NO_CANDIDATE = "empty"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """What an answer may be."""

    n_best_size: int = 20  # Answers kept a question; starts and ends tried a window.
    max_answer_length: int = 30  # In pieces.
    version_2_with_negative: bool = False  # Whether there may be no answer.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidate:
    """One possible answer; "" for no answer."""

    text: str
    start_logit: float
    end_logit: float
    start: int = 0  # Characters of the context: context[start:end].
    end: int = 0
    probability: float = 0.0  # Among the candidates of the question.

    @property
    def score(self) -> float:
        """How well it starts and ends."""
        return self.start_logit + self.end_logit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a model, or several together, say about one question."""

    qas_id: str
    candidates: tuple[Candidate, ...]  # The likeliest first, at least one.
    # Start and end score of [CLS] together, the lowest of all windows.
    no_answer_score: float
    # `no_answer_score` less the score of the best answer: high where there is none.
    null_odds: float

    @property
    def best(self) -> Candidate:
        """The likeliest candidate that is not "", where there is one."""
        return _best(self.candidates)

    def answer(self, null_score_diff_threshold: float | None) -> Candidate:
        """Returns the answer.

        Args:
            null_score_diff_threshold: there is no answer where `null_odds` is higher;
                None where every question has one.
        """
        threshold = null_score_diff_threshold
        if threshold is not None and self.null_odds > threshold:
            return Candidate(text="", start_logit=0.0, end_logit=0.0)
        return self.best


def predictions_of(
    windows: question_answering_windows.Windows,
    logits: tuple[np.ndarray, np.ndarray],
    rules: Rules,
    aligner: alignment.Aligner,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> list[Prediction]:
    """Returns the prediction for each example of the windows, in order.

    Args:
        windows: `Windows`.
        logits: the start and the end scores, float32 [W, S] each.
        rules: `Rules`.
        aligner: `Aligner` of the vocabulary.
        progress: told how many questions are done.

    Source: write_predictions of run_squad.py, 2018.
    """
    start_logits, end_logits = logits
    allowed = spans.allowed_spans(
        windows,
        start_logits,
        end_logits,
        n_best_size=rules.n_best_size,
        max_answer_length=rules.max_answer_length,
    )
    num_examples = len(windows.examples)
    splits = allowed.splits(num_examples)
    null_windows = spans.null_windows(windows, start_logits, end_logits)
    found = []
    for index, example in enumerate(windows.examples):
        null = Candidate(
            text="",
            start_logit=float(start_logits[null_windows[index], 0]),
            end_logit=float(end_logits[null_windows[index], 0]),
        )
        ranked = allowed.part(splits[index], splits[index + 1])
        span_of = functools.partial(aligner.span, windows.contexts[index])
        candidates = _n_best(ranked, null, rules, span_of)
        found.append(_prediction(example.qas_id, candidates, null))
        if (
            index + 1
        ) % features_module.EXAMPLES_PER_CALL == 0 or index + 1 == num_examples:
            progress("answer", index + 1, num_examples, unit="questions")
    return found


def averaged(
    predictions: Sequence[Sequence[Prediction]], *, n_best_size: int
) -> list[Prediction]:
    """Returns what several models say together.

    The probability of an answer is the mean of what the models give it, 0 where it is
    not in a model's list; its scores are means over the models that list it.

    Args:
        predictions: for each model its `Prediction`s, of the same questions.
        n_best_size: answers kept a question.

    Raises:
        ValueError: there is no model.
    """
    if not predictions:
        raise ValueError("Expected the predictions of at least one model, got none.")
    return [_averaged(parts, n_best_size) for parts in zip(*predictions, strict=True)]


def write_predictions(
    output_dir: str,
    predictions: Sequence[Prediction],
    null_score_diff_threshold: float | None,
) -> list[str]:
    """Writes the release's files and `predictions.jsonl`; returns their paths.

    predictions.json: {id: answer}. nbest_predictions.json: {id: [{"text",
    "probability", "start_logit", "end_logit"}]}. null_odds.json, where there may be no
    answer: {id: odds}. The last one says where the answer stands, one object a line:
    {"id", "answer", "start", "end", "score", "no_answer_score"}.

    Args:
        output_dir: an existing folder.
        predictions: `Prediction`s.
        null_score_diff_threshold: there is no answer where the null odds are higher;
            None where every question has one.

    Raises:
        OSError: a file cannot be written.
    """
    answers = [one.answer(null_score_diff_threshold) for one in predictions]
    both = list(zip(predictions, answers, strict=True))
    contents = {
        PREDICTIONS_FILE: {one.qas_id: answer.text for one, answer in both},
        NBEST_FILE: {
            one.qas_id: [_entry(candidate) for candidate in one.candidates]
            for one in predictions
        },
    }
    if null_score_diff_threshold is not None:
        contents[NULL_ODDS_FILE] = {one.qas_id: one.null_odds for one in predictions}
    for name, content in contents.items():
        with files.complete_or_absent(os.path.join(output_dir, name)) as file:
            file.write(json.dumps(content, indent=4) + "\n")
    with files.complete_or_absent(os.path.join(output_dir, JSON_LINES_FILE)) as file:
        for one, answer in both:
            record = {"id": one.qas_id} | answer_record(one, answer)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return [os.path.join(output_dir, name) for name in (*contents, JSON_LINES_FILE)]


def answer_record(prediction: Prediction, answer: Candidate) -> dict:
    """Returns `answer`, `start`, `end`, `score` and `no_answer_score` as a dict.

    `start` and `end` are characters of the context: the answer is what stands between
    them, with one space between words. `score` is the best answer's, even where there
    is said to be none.
    """
    return {
        "answer": answer.text,
        "start": answer.start,
        "end": answer.end,
        "score": prediction.best.score,
        "no_answer_score": prediction.no_answer_score,
    }


def _best(candidates):
    return next((one for one in candidates if one.text), candidates[0])


def _n_best(ranked, null, rules, span_of):
    """Returns the best candidates of different texts; `null` too, where it may be."""
    kept, texts = [], set()
    nulls = [null] if rules.version_2_with_negative else []
    for first, last, start_logit, end_logit in ranked:
        if nulls and start_logit + end_logit < null.score:
            kept.append(nulls.pop())
        if len(kept) >= rules.n_best_size:
            break
        span = span_of(first, last)
        if span.text in texts:
            continue
        texts.add(span.text)
        candidate = Candidate(
            text=span.text,
            start_logit=start_logit,
            end_logit=end_logit,
            start=span.start,
            end=span.end,
        )
        kept.append(candidate)
    # It has its place in the list even where the list is full.
    kept += nulls
    if not kept:
        kept.append(Candidate(text=NO_CANDIDATE, start_logit=0.0, end_logit=0.0))
    return kept


def _prediction(qas_id, candidates, null):
    probabilities = _softmax([candidate.score for candidate in candidates])
    best = _best(candidates)
    # In the release's order: the last digit depends on it.
    null_odds = null.score - best.start_logit - best.end_logit
    return Prediction(
        qas_id=qas_id,
        candidates=tuple(
            dataclasses.replace(candidate, probability=probability)
            for candidate, probability in zip(candidates, probabilities, strict=True)
        ),
        no_answer_score=null.score,
        null_odds=null_odds,
    )


def _softmax(scores):
    """Returns probabilities, to the last digit as run_squad.py of 2018 does."""
    highest = max(scores)
    exponentials = [math.exp(score - highest) for score in scores]
    total = 0.0
    for exponential in exponentials:  # `sum` corrects its rounding since Python 3.12.
        total += exponential
    return [exponential / total for exponential in exponentials]


def _averaged(parts, n_best_size):
    same = {}
    for part in parts:
        for candidate in part.candidates:
            same.setdefault(candidate.text, []).append(candidate)
    candidates = [
        dataclasses.replace(
            max(those, key=lambda one: one.probability),
            start_logit=statistics.fmean(one.start_logit for one in those),
            end_logit=statistics.fmean(one.end_logit for one in those),
            probability=sum(one.probability for one in those) / len(parts),
        )
        for those in same.values()
    ]
    candidates.sort(key=lambda one: -one.probability)
    null = [one for one in candidates[n_best_size:] if not one.text]
    return Prediction(
        qas_id=parts[0].qas_id,
        candidates=(*candidates[:n_best_size], *null),
        no_answer_score=statistics.fmean(part.no_answer_score for part in parts),
        null_odds=statistics.fmean(part.null_odds for part in parts),
    )


def _entry(candidate):
    return {
        "text": candidate.text,
        "probability": candidate.probability,
        "start_logit": candidate.start_logit,
        "end_logit": candidate.end_logit,
    }
