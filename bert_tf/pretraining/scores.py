"""Scores of pretraining, under the release's names."""

import math
from collections.abc import Iterable
from collections.abc import Mapping

# The scores that run_pretraining.py printed (2018), and those of left-to-right models.
RELEASE_SCORES = (
    "loss",
    "masked_lm_accuracy",
    "masked_lm_loss",
    "next_piece_accuracy",
    "next_piece_loss",
    "next_sentence_accuracy",
    "next_sentence_loss",
)


def release_scores(means: Mapping[str, float], global_step: int) -> dict[str, float]:
    """Returns the numbers of eval_results.txt: the release's scores in `means`.

    Args:
        means: the result of `Trainer.evaluate`.
        global_step: number of finished optimizer steps.
    """
    kept = {name: means[name] for name in RELEASE_SCORES if name in means}
    return kept | {"global_step": global_step}


def names_of(loss_names: Iterable[str]) -> list[str]:
    """Returns the names of the scores that `evaluation_scores` returns.

    Args:
        loss_names: the model's losses: ("masked_lm_loss", "next_sentence_loss").
    """
    loss_names = tuple(loss_names)
    accuracies = [name.removesuffix("loss") + "accuracy" for name in loss_names]
    names = ("loss", *loss_names, *accuracies, "perplexity")
    return [f"eval_{name}" for name in names]


def evaluation_scores(means: Mapping[str, float]) -> dict[str, float]:
    """Returns the scores of an evaluation during training, each named eval_NAME.

    The perplexity is that of the masked words, or of the next pieces.
    """
    scores = {f"eval_{name}": value for name, value in means.items()}
    words = "masked_lm_loss" if "masked_lm_loss" in means else "next_piece_loss"
    scores["eval_perplexity"] = perplexity(means[words])
    return scores


def perplexity(loss: float) -> float:
    """Returns exp(loss), or infinity if that exceeds the largest float."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
