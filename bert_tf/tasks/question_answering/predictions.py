"""Chooses answers from the logits of windows and writes the release's files.

The head has one vector for starts and one for ends. The score of a span is the dot
product of the start vector with its first piece plus that of the end vector with its
last piece, and the best span with end >= start wins (arXiv:1810.04805, section 4.2).
The two choices are independent given the encoder's output. That costs 2 H weights and
S scores per vector instead of S * S. But the best start and the best end need not form
a span, so several of each are combined and impossible pairs are removed.

Every question gets a list of its best answers, not just one. The list shows how sure
the model is: its probabilities are a softmax over its scores. Probabilities over all
positions would not do, since the windows are scored independently of one another.

For SQuAD 2.0, "no answer" is the span from [CLS] to [CLS]. Its score minus that of the
best answer is the null odds, and there is no answer if they exceed a threshold chosen
on the development set (section 4.3). The threshold is needed because the scores of
[CLS] and of real spans are not calibrated against each other.

Shape letters: W windows, S sequence, B windows in a call, K best starts (or ends) of a
window, N spans.
"""

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics
from bert_tf.modeling import span_predictor
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.training import run_file

PREDICTIONS_FILE = "predictions.json"
NBEST_FILE = "nbest_predictions.json"
NULL_ODDS_FILE = "null_odds.json"
JSON_LINES_FILE = "predictions.jsonl"
_NBEST_FIELDS = ("text", "probability", "start_logit", "end_logit")
# The release's answer if no window contains a valid span.
NO_CANDIDATE = "empty"
# Windows whose K x K pairs are in memory at a time.
WINDOWS_PER_CALL = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules by which answers are chosen."""

    # Number of answers per question, and of starts and ends to try per window.
    n_best_size: int = 20
    max_answer_length: int = 30  # In word pieces.
    version_2_with_negative: bool = False  # A question may have no answer.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    """How to cut windows and choose answers: the content of task.json."""

    KIND = "question_answering"

    doc_stride: int  # Word pieces between the starts of two windows.
    max_query_length: int  # In word pieces.
    version_2_with_negative: bool  # Whether a question may have no answer.
    n_best_size: int  # Number of starts, and of ends, to try per window.
    max_answer_length: int  # In word pieces.
    null_score_diff_threshold: float  # Above it, there is no answer.
    bilstm_on_top: bool = False  # A BiLSTM between encoder and head.

    @property
    def sizes(self) -> features_module.WindowSizes:
        """How contexts are divided into windows."""
        return features_module.WindowSizes(
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            max_query_length=self.max_query_length,
        )

    @property
    def threshold(self) -> float | None:
        """The null odds above which there is no answer; None: always answer."""
        if not self.version_2_with_negative:
            return None
        return self.null_score_diff_threshold

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 2

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> span_predictor.BertSpanPredictor:
        """See `TaskRecord.create_model`."""
        return span_predictor.BertSpanPredictor(
            config, bilstm_on_top=self.bilstm_on_top, dtype=dtype
        )


class Candidate(NamedTuple):  # Up to n_best_size per question, so it must be light.
    """A possible answer. The text "" means that there is no answer."""

    text: str
    start_logit: float
    end_logit: float
    start: int = 0  # In characters: context[start:end].
    end: int = 0
    probability: float = 0.0  # Among the question's candidates.

    @property
    def score(self) -> float:
        """The score of the span: the sum of its logits."""
        return self.start_logit + self.end_logit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """The candidate answers to a question."""

    qas_id: str
    candidates: tuple[Candidate, ...]  # At least one, by falling probability.
    # The sum of the logits of [CLS], from the window where it is lowest.
    no_answer_score: float

    @property
    def best(self) -> Candidate:
        """The most probable candidate that is not "", if there is one."""
        return next((one for one in self.candidates if one.text), self.candidates[0])

    @property
    def null_odds(self) -> float:
        """`no_answer_score` minus the score of the best answer."""
        # The order of the release, since the last digit depends on it.
        return self.no_answer_score - self.best.start_logit - self.best.end_logit

    def answer(self, null_score_diff_threshold: float | None) -> Candidate:
        """Returns the answer.

        Args:
            null_score_diff_threshold: there is no answer if `null_odds` is higher.
                None if every question has an answer.
        """
        threshold = null_score_diff_threshold
        if threshold is not None and self.null_odds > threshold:
            return Candidate(text="", start_logit=0.0, end_logit=0.0)
        return self.best


def predictions_of(
    windows: features_module.Windows,
    logits: tuple[np.ndarray, np.ndarray],
    rules: Rules | Record,
    aligner: alignment.Aligner,
    *,
    progress: progress_module.Progress = progress_module.report,
) -> list[Prediction]:
    """Returns the prediction for each example of the windows, in their order.

    Args:
        windows: the windows that were scored.
        logits: start logits and end logits, float32 [W, S] each.
        rules: how answers are chosen.
        aligner: maps pieces to the original text.
        progress: reports the number of finished questions.

    Source: write_predictions of run_squad.py, 2018.
    """
    start_logits, end_logits = logits
    example_index, *ranks = _allowed_spans(windows, logits, rules)
    num_examples = len(windows.examples)
    # The start of the spans of each example, then the end.
    splits = np.searchsorted(example_index, np.arange(num_examples + 1))
    null_windows = _null_windows(windows, start_logits, end_logits)
    predictions = []
    for index, example in enumerate(windows.examples):
        null_window = null_windows[index]
        null = Candidate(
            text="",
            start_logit=float(start_logits[null_window, 0]),
            end_logit=float(end_logits[null_window, 0]),
        )
        here = slice(splits[index], splits[index + 1])
        ranked = zip(*(column[here].tolist() for column in ranks), strict=True)
        span_of = aligner.spans_of(windows.contexts[index])
        candidates = _n_best(ranked, null, rules, span_of)
        probabilities = _softmax([one.score for one in candidates])
        predictions.append(
            Prediction(
                qas_id=example.qas_id,
                candidates=tuple(
                    one._replace(probability=probability)
                    for one, probability in zip(candidates, probabilities, strict=True)
                ),
                no_answer_score=null.score,
            )
        )
        done = index + 1
        if done % features_module.EXAMPLES_PER_CALL == 0 or done == num_examples:
            progress("answer", done, num_examples, unit="questions")
    return predictions


def without_padding(windows: features_module.Windows, logits: np.ndarray) -> np.ndarray:
    """Returns the logits with padding masked, so that it cannot be chosen.

    This makes the result independent of the length to which a batch was padded. The
    release does not mask padding, which can therefore take one of the K best positions
    although no answer can start there.

    Args:
        windows: the windows that were scored.
        logits: float32 [W, S].

    Returns:
        float32 [W, S].
    """
    places = np.arange(logits.shape[1])[np.newaxis]
    is_used = places < windows.lengths[:, np.newaxis]
    return np.where(is_used, logits, np.float32(numerics.ATTENTION_MASK_BIAS))


def _allowed_spans(windows, logits, rules):
    """Returns the valid spans from the best starts to the best ends of each window.

    A span is valid if it is inside the context, its end is not before its start, it
    has at most `max_answer_length` pieces, and no other window shows its first piece
    with more context (see `features.is_max_context`). Nothing in the model links the
    end to the start: without a limit, a start in one sentence and an end three
    sentences later can score higher than either sentence's answer.

    Returns:
        Five arrays [N], sorted by example and falling score: the index of the example,
        the first and the last piece in its context, and their float64 logits.

    Source: the first half of write_predictions of run_squad.py, 2018.
    """
    start_logits, end_logits = logits
    parts = []
    for begin in range(0, len(windows), WINDOWS_PER_CALL):
        numbers = np.arange(begin, min(begin + WINDOWS_PER_CALL, len(windows)))
        starts = _best_places(start_logits[numbers], rules.n_best_size)  # [B, K]
        ends = _best_places(end_logits[numbers], rules.n_best_size)
        offset = windows.context_offset[numbers] - windows.first_piece[numbers]
        firsts = starts - offset[:, np.newaxis]
        lasts = ends - offset[:, np.newaxis]
        window = numbers[:, np.newaxis]  # [B, 1]
        may_start = features_module.is_max_context(windows, window, firsts)
        inside = lasts - windows.first_piece[window]
        may_end = (inside >= 0) & (inside < windows.num_pieces[window])
        lengths = lasts[:, np.newaxis, :] - firsts[:, :, np.newaxis] + 1  # [B, K, K]
        allowed = may_start[:, :, np.newaxis] & may_end[:, np.newaxis, :]
        allowed &= (lengths > 0) & (lengths <= rules.max_answer_length)
        # By window, start and end, as in the release.
        row, start, end = np.nonzero(allowed)
        parts.append(
            (
                windows.example_index[numbers[row]],
                firsts[row, start],
                lasts[row, end],
                start_logits[numbers[row], starts[row, start]].astype(np.float64),
                end_logits[numbers[row], ends[row, end]].astype(np.float64),
            )
        )
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    # The sort is stable: equal scores keep the order in which the release finds them.
    order = np.lexsort((-(columns[3] + columns[4]), columns[0]))
    return [column[order] for column in columns]


def _null_windows(windows, start_logits, end_logits):
    """Returns for each example the window with the lowest no-answer score.

    The score of "no answer" is that of the span from [CLS] to [CLS] (section 4.3 of the
    paper). Training teaches every window without the answer to give [CLS] a high score,
    so one high score says nothing about the others. The whole context has no answer
    only if all windows say so, and the lowest score decides.
    """
    scores = start_logits[:, 0].astype(np.float64) + end_logits[:, 0]
    order = np.lexsort((scores, windows.example_index))
    examples = np.arange(len(windows.examples))
    return order[np.searchsorted(windows.example_index[order], examples)]


def _best_places(logits, count):
    """Returns the positions [B, K] of the highest logits; ties keep their order."""
    return np.argsort(-logits, axis=1, kind="stable")[:, :count]


def write_predictions(
    output_dir: str,
    predictions: Sequence[Prediction],
    null_score_diff_threshold: float | None,
    *,
    suffix: str = "",
) -> list[str]:
    """Writes the release's files and `predictions.jsonl`; returns their paths.

    * predictions.json: {id: answer}.
    * nbest_predictions.json: {id: [{"text", "probability", "start_logit",
      "end_logit"}]}.
    * null_odds.json, only if a question may have no answer: {id: null odds}.
    * predictions.jsonl, one object per line: {"id", "answer", "start", "end", "score",
      "no_answer_score"}.

    Args:
        output_dir: an existing folder.
        predictions: one per question.
        null_score_diff_threshold: see `Prediction.answer`.
        suffix: added to the file names; see `RunFolder.suffix_of`.

    Raises:
        OSError: a file cannot be written.
    """
    paths = []
    contents = file_contents(predictions, null_score_diff_threshold)
    for name, text in contents.items():
        path = os.path.join(output_dir, run_file.with_suffix(name, suffix))
        with files.complete_or_absent(path) as file:
            file.write(text)
        paths.append(path)
    return paths


def file_contents(
    predictions: Sequence[Prediction], null_score_diff_threshold: float | None
) -> dict[str, str]:
    """Returns the texts of the files of `write_predictions`, by name."""
    threshold = null_score_diff_threshold
    contents = {
        PREDICTIONS_FILE: {
            one.qas_id: one.answer(threshold).text for one in predictions
        },
        NBEST_FILE: {
            one.qas_id: [
                {name: getattr(candidate, name) for name in _NBEST_FIELDS}
                for candidate in one.candidates
            ]
            for one in predictions
        },
    }
    if threshold is not None:
        contents[NULL_ODDS_FILE] = {one.qas_id: one.null_odds for one in predictions}
    texts = {
        name: json.dumps(content, indent=4) + "\n" for name, content in contents.items()
    }
    records = (
        {"id": one.qas_id} | answer_record(one, threshold) for one in predictions
    )
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return texts | {JSON_LINES_FILE: "".join(lines)}


def answer_record(prediction: Prediction, threshold: float | None) -> dict[str, Any]:
    """Returns a dict of `answer`, `start`, `end`, `score` and `no_answer_score`.

    `start` and `end` are in characters: the answer is context[start:end], with one
    space between words. `score` belongs to the best answer, even if `answer` is "".
    """
    answer = prediction.answer(threshold)
    return {
        "answer": answer.text,
        "start": answer.start,
        "end": answer.end,
        "score": prediction.best.score,
        "no_answer_score": prediction.no_answer_score,
    }


def _n_best(ranked, null, rules, span_of):
    """Returns the best candidates with unique texts, and `null` if it is allowed."""
    candidates, texts = [], set()
    may_decline = rules.version_2_with_negative
    for first, last, start_logit, end_logit in ranked:
        if may_decline and start_logit + end_logit < null.score:
            candidates.append(null)
            may_decline = False
        if len(candidates) >= rules.n_best_size:
            break
        text, start, end = span_of(first, last)
        if text not in texts:
            texts.add(text)
            candidates.append(Candidate(text, start_logit, end_logit, start, end))
    if may_decline:  # Null is always in the list, even if the list is full.
        candidates.append(null)
    return candidates or [Candidate(NO_CANDIDATE, 0.0, 0.0)]


def _softmax(scores):
    """Returns probabilities that equal those of run_squad.py of 2018 bit for bit."""
    highest = max(scores)
    exponentials = [math.exp(score - highest) for score in scores]
    total = 0.0
    for exponential in exponentials:  # `sum` compensates rounding since 3.12.
        total += exponential
    return [exponential / total for exponential in exponentials]
