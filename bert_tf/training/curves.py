"""Curves of a run, drawn from its metrics.jsonl."""

import os
from collections.abc import Mapping

from bert_tf import files
from bert_tf.training import run_folder

CURVES_FILE = "curves.png"
_NOT_DRAWN = {"step", "examples_per_second", "global_grad_norm"}
_EVAL = "eval_"
PERPLEXITY = "perplexity"


def plot_runs(options) -> str:
    """Draws runs into one file; returns a sentence that names it.

    Args:
        options: `curve_options.PlotRunOptions`.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    folders = [folder.rstrip("/") for folder in options.run_dir]
    path = options.plot_file or os.path.join(folders[0], CURVES_FILE)
    names = [os.path.basename(folder) for folder in folders]
    # Runs of one name are told apart by their whole paths.
    shown = {
        folder if names.count(name) > 1 else name: folder
        for name, folder in zip(names, folders, strict=True)
    }
    save(figure(shown), path)
    return f"The curves are in {path}."


def figure(run_dirs: Mapping[str, str]):
    """Draws runs beside each other.

    Args:
        run_dirs: name for the legend -> folder with a metrics.jsonl.

    Returns:
        `matplotlib.figure.Figure`: by step losses (dashed: evaluation); accuracies,
        perplexities and other scores where there are any; and the learning rate.

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
    drawn = matplotlib_figure.Figure(
        figsize=(5 * len(panels), 3.6), layout="constrained"
    )
    all_axes = drawn.subplots(1, len(panels), squeeze=False)[0]
    for (title, keys), axes in zip(panels.items(), all_axes, strict=True):
        for name, key in keys:
            label = key if len(run_dirs) == 1 else f"{name}: {key}"
            style = {"linestyle": "--", "marker": "."} if key.startswith(_EVAL) else {}
            axes.plot(*curves[name, key], label=label, **style)
        axes.set(xlabel="step", title=title)
        if title == PERPLEXITY:
            axes.set_yscale("log")  # It begins at the size of the vocabulary.
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    return drawn


def save(drawn, path) -> None:
    """Writes a figure to a file whose ending says the format; complete or absent."""
    image_format = os.path.splitext(path)[1].removeprefix(".") or "png"
    with files.complete_or_absent_path(path) as temporary:
        drawn.savefig(temporary, format=image_format, dpi=120)


def _is_other_score(key):
    return key.startswith(_EVAL) and not key.endswith(("loss", "accuracy", PERPLEXITY))


def _curves(folder):
    """Returns key -> (steps, values) of a run."""
    curves = {}
    for line in run_folder.RunFolder(folder).read_metrics():
        for key in line.keys() - _NOT_DRAWN:
            steps, values = curves.setdefault(key, ([], []))
            steps.append(line["step"])
            values.append(line[key])
    if not curves:
        raise ValueError(
            f"{folder} has no {run_folder.METRICS_FILE}; expected the output_dir of a "
            "training run."
        )
    return dict(sorted(curves.items()))


def _matplotlib_figure():
    try:
        import matplotlib.figure
    except ModuleNotFoundError:
        raise ImportError(
            "Drawing needs matplotlib; install it with: pip install 'bert_tf[plots]'"
        ) from None
    return matplotlib.figure
