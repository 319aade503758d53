"""Plots of a run's losses, scores and learning rate, from its metrics.jsonl."""

import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.training import metrics_file
from bert_tf.training import options as training_options
from bert_tf.training import run_folder

CURVES_FILE = "curves.png"
_NOT_DRAWN = {"step", "examples_per_second", "global_grad_norm"}
_EVAL = "eval_"
# Folders of the phases of `run_pretraining --phase`.
_PHASE = re.compile(r"phase_(\d+)")
PERPLEXITY = "perplexity"


def plot_runs(options: training_options.PlotRunOptions) -> str:
    """Plots runs into one file; returns a sentence that names it.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    given = [folder.rstrip("/") for folder in options.run_dir]
    path = options.plot_file or os.path.join(given[0], CURVES_FILE)
    folders = [part for folder in given for part in phases_of(folder)]
    names = [os.path.basename(folder) for folder in folders]
    # Runs with the same folder name are labeled with their whole paths.
    run_dirs = {
        folder if names.count(name) > 1 else name: folder
        for name, folder in zip(names, folders, strict=True)
    }
    save(figure(run_dirs), path)
    return f"The curves are in {path}."


def figure(run_dirs: Mapping[str, str]) -> Any:
    """Plots several runs into one figure.

    Args:
        run_dirs: name for the legend -> folder with a metrics.jsonl.

    Returns:
        `matplotlib.figure.Figure` with one panel each for the losses, the learning
        rate and, if there are any, accuracies, perplexities and other scores, all by
        step. Curves of evaluations are dashed.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    matplotlib_figure = _matplotlib_figure()
    curves = {
        (name, key): points
        for name, folder in run_dirs.items()
        for key, points in _curves(folder).items()
    }
    panels = {
        "loss": [key for key in curves if key[1].endswith("loss")],
        "accuracy": [key for key in curves if key[1].endswith("accuracy")],
        PERPLEXITY: [key for key in curves if key[1].endswith(PERPLEXITY)],
        "score": [key for key in curves if _is_other_score(key[1])],
        "learning rate": [key for key in curves if key[1] == "learning_rate"],
    }
    panels = {title: keys for title, keys in panels.items() if keys}
    plot = matplotlib_figure.Figure(
        figsize=(5 * len(panels), 3.6), layout="constrained"
    )
    all_axes = plot.subplots(1, len(panels), squeeze=False)[0]
    for (title, keys), axes in zip(panels.items(), all_axes, strict=True):
        for name, key in keys:
            label = key if len(run_dirs) == 1 else f"{name}: {key}"
            style = {"linestyle": "--", "marker": "."} if key.startswith(_EVAL) else {}
            axes.plot(*curves[name, key], label=label, **style)
        axes.set(xlabel="step", title=title)
        if title == PERPLEXITY:
            axes.set_yscale("log")  # It starts near the size of the vocabulary.
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    return plot


def phases_of(folder: str) -> list[str]:
    """Returns the folders of a run's phases; the folder itself if it has none."""
    if not files.is_folder(folder):
        return [folder]
    names = [name.rstrip("/") for name in files.list_folder(folder)]
    phases = {int(m[1]): m[0] for m in map(_PHASE.fullmatch, names) if m}
    found = [os.path.join(folder, phases[number]) for number in sorted(phases)]
    return [part for part in found if _has_metrics(part)] or [folder]


def _has_metrics(folder: str) -> bool:
    return files.exists(os.path.join(folder, metrics_file.NAME))


def save(plot: Any, path: str) -> None:
    """Writes a figure to a file, in the format of the file's extension."""
    image_format = os.path.splitext(path)[1].removeprefix(".") or "png"
    with files.complete_or_absent_path(path) as temporary:
        plot.savefig(temporary, format=image_format, dpi=120)


def _is_other_score(key):
    return key.startswith(_EVAL) and not key.endswith(("loss", "accuracy", PERPLEXITY))


def _curves(folder):
    """Returns {key: (steps, values)} of a run."""
    curves: dict[str, tuple[list, list]] = {}
    for line in run_folder.RunFolder(folder).read_metrics():
        for key in line.keys() - _NOT_DRAWN:
            steps, values = curves.setdefault(key, ([], []))
            steps.append(line["step"])
            values.append(line[key])
    if not curves:
        raise ValueError(
            f"{folder} has no {metrics_file.NAME}; expected the output_dir of a "
            "training run."
        )
    return dict(sorted(curves.items()))


def _matplotlib_figure():
    try:
        import matplotlib.figure
    except ModuleNotFoundError:
        raise ImportError(
            "Plotting requires matplotlib; run: pip install 'bert_tf[plots]'"
        ) from None
    return matplotlib.figure
