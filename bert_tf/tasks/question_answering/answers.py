"""The answers to the questions of a file: their files and their scores."""

import dataclasses
import re
from typing import Any

from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import scores as question_answering_scores
from bert_tf.training import plot_data
from bert_tf.training import result_files
from bert_tf.training import run_folder


def score_names(
    squad_file: question_answering_examples.SquadFile, *, allow_no_answer: bool
) -> list[str]:
    """Returns the names of the scores that an evaluation on a file reports.

    Args:
        squad_file: the result of `read_squad`.
        allow_no_answer: whether the model may predict that there is no answer.

    Raises:
        ValueError: a question of the file has no answers.
    """
    texts = {example.qas_id: "" for example in squad_file.examples}
    null_odds = dict.fromkeys(texts, 0.0) if allow_no_answer else None
    return list(
        _eval_results(
            question_answering_scores.squad_scores(squad_file, texts, null_odds)
        )
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """The predicted answers to the questions of a file."""

    squad_file: question_answering_examples.SquadFile
    predictions: list[question_answering_predictions.Prediction]
    threshold: float | None  # See `Prediction.answer`.
    global_step: int | None  # Of the model; None for an ensemble.

    def write(self, output_dir: str) -> list[str]:
        """Writes the release's files and predictions.jsonl; returns their paths."""
        folder = run_folder.RunFolder(output_dir)
        folder.create()
        suffix = folder.suffix_of(
            question_answering_predictions.JSON_LINES_FILE,
            result_files.file_data_set(self.squad_file.path),
        )
        return question_answering_predictions.write_predictions(
            output_dir, self.predictions, self.threshold, suffix=suffix
        )

    @property
    def texts(self) -> dict[str, str]:
        """The answer to each question by id; "" if there is none."""
        return {one.qas_id: one.answer(self.threshold).text for one in self.predictions}

    def scores(self) -> dict[str, float]:
        """Returns {"eval_exact_match", "eval_f1", ...}; see `scores.squad_scores`."""
        null_odds = None
        if self.threshold is not None:
            null_odds = {one.qas_id: one.null_odds for one in self.predictions}
        return _eval_results(
            question_answering_scores.squad_scores(
                self.squad_file,
                self.texts,
                null_odds,
                best_answers={one.qas_id: one.best.text for one in self.predictions},
            )
        )

    def baselines(self) -> dict[str, dict[str, Any]]:
        """Returns the scores of never answering, for files of version 2.0."""
        if self.threshold is None:
            return {}
        texts = dict.fromkeys(self.texts, "")
        found = _eval_results(
            question_answering_scores.squad_scores(self.squad_file, texts)
        )
        return {
            name: plot_data.baseline("no answer", found[name], perfect=100)
            for name in ("eval_exact_match", "eval_f1")
        }

    def tuned(self) -> "Answers":
        """Returns the answers with a threshold that gives the best F1.

        Only for files of version 2.0 and models that may predict no answer.
        """
        best = self.scores()["eval_best_f1_thresh"]
        above = [one.null_odds for one in self.predictions if one.null_odds > best]
        # The best threshold is the null odds of one of the questions. If it were used
        # itself, rounding in later predictions could remove the answer to that one.
        threshold = (best + min(above)) / 2 if above else best + 1.0
        return dataclasses.replace(self, threshold=threshold)

    def write_scores(self, output_dir: str) -> dict[str, float]:
        """Writes eval_results.txt and returns its content."""
        results = self.scores()
        if self.global_step is not None:
            results["global_step"] = self.global_step
        folder = run_folder.RunFolder(output_dir)
        folder.create()
        folder.write_eval_results(
            results, result_files.file_data_set(self.squad_file.path)
        )
        return results


def _eval_results(scores):
    """Returns scores under the names of eval_results.txt.

    The official script of SQuAD 2.0 calls `exact` what that of 1.1 calls `exact_match`.
    A run has one name for it: eval_exact_match, eval_HasAns_exact_match, and so on.
    """
    return {
        "eval_" + re.sub("exact(?!_match)", "exact_match", name): value
        for name, value in scores.items()
    }
