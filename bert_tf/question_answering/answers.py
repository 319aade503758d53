"""The answers to a whole file: written, and scored."""

import dataclasses

from bert_tf.question_answering import examples
from bert_tf.question_answering import predictions as predictions_module
from bert_tf.question_answering import scores
from bert_tf.training import run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """What is said about the questions of a file."""

    squad_file: examples.SquadFile
    predictions: list[predictions_module.Prediction]
    threshold: float | None  # See `Prediction.answer`.
    global_step: int | None  # Of the model; None for several.

    def write(self, output_dir) -> list[str]:
        """Writes the release's files and predictions.jsonl; returns their paths."""
        run_folder.RunFolder(output_dir).create()
        return predictions_module.write_predictions(
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
        found = scores.squad_scores(self.squad_file, self.texts, null_odds)
        if "exact" in found:  # Version 2.0's word for what 1.1 calls exact_match.
            found["exact_match"] = found.pop("exact")
        return {f"eval_{name}": value for name, value in found.items()}

    def write_scores(self, output_dir) -> dict[str, float]:
        """Writes eval_results.txt; returns what it holds."""
        results = self.scores()
        if self.global_step is not None:
            results["global_step"] = self.global_step
        folder = run_folder.RunFolder(output_dir)
        folder.create()
        folder.write_eval_results(results)
        return results
