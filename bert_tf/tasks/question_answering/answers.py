"""The answers to a whole file: written, and scored."""

import dataclasses

from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import scores as question_answering_scores
from bert_tf.training import run_folder


def score_names(
    squad_file: question_answering_examples.SquadFile, *, may_be_none: bool
) -> list[str]:
    """Returns the names of all scores that answers to a file's questions have.

    Args:
        squad_file: what `read_squad` returned.
        may_be_none: whether there may be no answer.

    Raises:
        ValueError: a question has no true answer.
    """
    texts = {example.qas_id: "" for example in squad_file.examples}
    null_odds = dict.fromkeys(texts, 0.0) if may_be_none else None
    return list(
        _named(question_answering_scores.squad_scores(squad_file, texts, null_odds))
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """What is said about the questions of a file."""

    squad_file: question_answering_examples.SquadFile
    predictions: list[question_answering_predictions.Prediction]
    threshold: float | None  # See `Prediction.answer`.
    global_step: int | None  # Of the model; None for several.

    def write(self, output_dir) -> list[str]:
        """Writes the release's files and predictions.jsonl; returns their paths."""
        run_folder.RunFolder(output_dir).create()
        return question_answering_predictions.write_predictions(
            output_dir, self.predictions, self.threshold
        )

    @property
    def texts(self) -> dict[str, str]:
        """The answer to each question, by its id; "" for none."""
        return {one.qas_id: one.answer(self.threshold).text for one in self.predictions}

    def scores(self) -> dict[str, float]:
        """Returns {"eval_exact_match", "eval_f1", ...}; see `scores.squad_scores`."""
        null_odds = None
        if self.threshold is not None:
            null_odds = {one.qas_id: one.null_odds for one in self.predictions}
        return _named(
            question_answering_scores.squad_scores(
                self.squad_file, self.texts, null_odds
            )
        )

    def write_scores(self, output_dir) -> dict[str, float]:
        """Writes eval_results.txt; returns what it holds."""
        results = self.scores()
        if self.global_step is not None:
            results["global_step"] = self.global_step
        folder = run_folder.RunFolder(output_dir)
        folder.create()
        folder.write_eval_results(results)
        return results


def _named(found):
    if "exact" in found:  # Version 2.0's word for what 1.1 calls exact_match.
        found["exact_match"] = found.pop("exact")
    return {f"eval_{name}": value for name, value in found.items()}
