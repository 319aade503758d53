"""Scores of pretraining under the names of the release."""

import math

# What run_pretraining.py printed, section by section (2018).
RELEASE_SCORES = (
    "loss",
    "masked_lm_accuracy",
    "masked_lm_loss",
    # Of a model that reads from left to right; not in the release.
    "next_piece_accuracy",
    "next_piece_loss",
    "next_sentence_accuracy",
    "next_sentence_loss",
)


def release_scores(means, global_step):
    """Returns eval_results.txt's numbers: the release's scores that `means` has.

    Args:
        means: dict of floats, as `Trainer.evaluate` gives them.
        global_step: int, finished optimizer steps.
    """
    kept = {name: means[name] for name in RELEASE_SCORES if name in means}
    return kept | {"global_step": global_step}


def names_of(loss_names):
    """Returns the names of the scores that `evaluation_scores` gives.

    Args:
        loss_names: of the model: ("masked_lm_loss", "next_sentence_loss").
    """
    accuracies = [name.removesuffix("loss") + "accuracy" for name in loss_names]
    names = ("loss", *loss_names, *accuracies, "perplexity")
    return [f"eval_{name}" for name in names]


def evaluation_scores(means):
    """Returns the scores of an evaluation while training, each named eval_NAME.

    Perplexity is that of the masked words, or of the next pieces.
    """
    scores = {f"eval_{name}": value for name, value in means.items()}
    words = "masked_lm_loss" if "masked_lm_loss" in means else "next_piece_loss"
    scores["eval_perplexity"] = perplexity(means[words])
    return scores


def perplexity(loss):
    """Returns exp(loss), infinite where that is too large for a float."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
