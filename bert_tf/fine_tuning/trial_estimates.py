"""Estimates the time and memory of several runs before they start."""

import itertools
from collections.abc import Callable
from collections.abc import Sequence

from bert_tf.fine_tuning import trial_options
from bert_tf.training import estimates

# Options that one model can estimate, and options without influence on the estimate.
_COUNTED = ("train_batch_size", "num_train_epochs")
_WITHOUT_COST = ("learning_rate", "random_seed", "warmup_proportion")


def report(
    trials: Sequence[trial_options.Trial],
    create: Callable[..., Callable[..., estimates.Estimate]],
) -> str:
    """Returns the number, size and time of all runs as text, each from its first step.

    Args:
        trials: the runs.
        create: maps the options of a run to a function that estimates this run and
            others that differ in learning rate, seed, batch size or number of epochs.

    Raises:
        ValueError, OSError: options, data or checkpoint of a run are invalid.
    """
    found = _estimates(trials, create)
    steps = [one.num_train_steps for one in found]
    memory = max(one.memory_bytes for one in found) / 2**30
    seconds = estimates.format_seconds(sum(one.seconds for one in found))
    parameters = _range([one.num_parameters for one in found], "{:,}")
    flops = _range([one.flops_per_step for one in found], "{:.3g}")
    return "\n".join(
        [
            f"runs              {len(found):,}",
            f"parameters        {parameters}",
            f"steps             {_range(steps, '{:,}')} per run, "
            f"{sum(steps):,} in total",
            f"FLOPs per step    {flops}",
            f"memory per device {memory:.2f} GiB at most (estimate)",
            f"time              {seconds} for all runs (at this machine's speed of "
            "matrix multiplication; the runs will be slower)",
        ]
    )


def _estimates(trials, create):
    found = []
    ordered = sorted(trials, key=_shared_settings)
    for _, group in itertools.groupby(ordered, key=_shared_settings):
        estimate_one, known = None, {}
        for trial in group:
            estimate_one = estimate_one or create(trial.options)
            cost = tuple(getattr(trial.options, name) for name in _COUNTED)
            if cost not in known:
                known[cost] = estimate_one(trial.options)
            found.append(known[cost])
    return found


def _shared_settings(trial):
    """Returns the settings that runs must share to be estimated with one model."""
    names = (*_COUNTED, *_WITHOUT_COST)
    return repr({n: value for n, value in trial.changed.items() if n not in names})


def _range(values: Sequence[float], form: str) -> str:
    """Returns "3 to 12", or "3" if all values are equal."""
    texts = [form.format(value) for value in (min(values), max(values))]
    return " to ".join(dict.fromkeys(texts))
