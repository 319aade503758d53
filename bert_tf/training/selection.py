"""Which checkpoint is the best, and when to stop early."""

# A score whose name ends so is better when lower.
LOWER_IS_BETTER = ("loss", "perplexity")


def check_metric(metric, names):
    """Refuses a metric that the evaluations of a run do not have.

    Args:
        metric: str, of --best_metric.
        names: of all scores of an evaluation.

    Raises:
        ValueError: the metric is none of them.
    """
    if metric not in names:
        raise ValueError(
            f"--best_metric={metric} is not among the scores of this run: "
            f"{', '.join(sorted(names))}."
        )


class Selection:
    """Follows one score over the evaluations of a run.

    Args:
        metric: str, a key of the evaluations, such as "eval_loss".
        patience: int; evaluations without a better score before stopping; 0: never.
    """

    def __init__(self, metric, patience):
        self.metric = metric
        self.patience = patience
        self.best = None
        self.num_since_best = 0

    @classmethod
    def replayed(cls, metric, patience, logged):
        """Returns the state after the evaluations in metrics.jsonl's dicts."""
        selection = cls(metric, patience)
        for line in logged:
            if metric in line:
                selection.is_best(line)
        return selection

    def is_best(self, scores):
        """Takes the next evaluation in; says whether it beats all before it.

        Raises:
            ValueError: the scores do not have the metric.
        """
        check_metric(self.metric, scores)
        score = scores[self.metric]
        sign = -1 if self.metric.endswith(LOWER_IS_BETTER) else 1
        if self.best is None or sign * score > sign * self.best:
            self.best, self.num_since_best = score, 0
            return True
        self.num_since_best += 1
        return False

    @property
    def should_stop(self):
        """Whether the patience is used up."""
        return 0 < self.patience <= self.num_since_best
