"""Which checkpoint is the best one, and when to stop early."""

import math
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from bert_tf.training import options as training_options

# A score is better when lower if its name ends in one of these.
LOWER_IS_BETTER = ("loss", "perplexity")


def check_metric(metric: str, names: Collection[str]) -> None:
    """Raises ValueError if the evaluations of a run do not have a score.

    Args:
        metric: value of --best_metric.
        names: all scores of an evaluation.
    """
    if metric not in names:
        raise ValueError(
            f"--best_metric={metric} is not among the scores of this run: "
            f"{', '.join(sorted(names))}."
        )


class Selection:
    """Follows one score over the evaluations of a run.

    Args:
        metric: a key of the evaluations, such as "eval_loss".
        patience: number of evaluations in a row without a better score after which to
            stop; 0: never stop.
    """

    def __init__(self, metric: str, patience: int):
        self.metric = metric
        self.patience = patience
        self.best: float | None = None
        self.num_since_best = 0

    @classmethod
    def replay(
        cls,
        options: training_options.EvaluationOptions,
        logged: Iterable[Mapping[str, float]],
    ) -> "Selection":
        """Returns the selection after the evaluations in the lines of a run's log."""
        selection = cls(options.best_metric, options.early_stopping_evals)
        for line in logged:
            if selection.metric in line:
                selection.is_best(line)
        return selection

    def is_best(self, scores: Mapping[str, float]) -> bool:
        """Records the next evaluation; returns whether it beats all before it.

        An equal score is not better: the earlier checkpoint stays in best/, and the
        evaluation uses up patience. NaN and infinity are never the best.

        Raises:
            ValueError: the scores lack the metric.
        """
        check_metric(self.metric, scores)
        score = scores[self.metric]
        sign = -1 if self.metric.endswith(LOWER_IS_BETTER) else 1
        is_better = math.isfinite(score) and (
            self.best is None or sign * score > sign * self.best
        )
        if is_better:
            self.best, self.num_since_best = score, 0
            return True
        self.num_since_best += 1
        return False

    def line(self, scores: Mapping[str, float]) -> str:
        """Returns the last evaluation as a line: the deciding score, then the others.

        Example:
            >>> selection = Selection("eval_loss", 0)
            >>> selection.is_best({"eval_accuracy": 0.5, "eval_loss": 0.25})
            True
            >>> selection.line({"eval_accuracy": 0.5, "eval_loss": 0.25})
            'loss 0.2500 (best so far), accuracy 0.5000'
        """
        comparison = "best so far"
        if self.num_since_best:
            known = "none" if self.best is None else f"{self.best:.4f}"
            comparison = f"best: {known}"
        names = [self.metric, *sorted(scores.keys() - {self.metric})]
        texts = [f"{n.removeprefix('eval_')} {scores[n]:.4f}" for n in names]
        return ", ".join([f"{texts[0]} ({comparison})", *texts[1:]])

    @property
    def should_stop(self) -> bool:
        """Whether the patience is used up."""
        return 0 < self.patience <= self.num_since_best
