"""Plots of runs: curves and confusion matrices.

Evaluations write what the plots need besides metrics.jsonl to plot_data.json:

| key | value |
|---|---|
| `baselines` | name of a score -> `name` and `value` of the simplest prediction |
| `confusion` | `labels`, and `counts`: rows are true classes, columns predicted ones |

Functions that draw return a `matplotlib.figure.Figure`, which a notebook shows and
`save` writes.

Shape letters: N examples, C classes.
"""

import io
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf import files
from bert_tf import json_values
from bert_tf import machine
from bert_tf.checkpoints import companion_files
from bert_tf.training import run_file
from bert_tf.training import run_folder

FILE = "plot_data.json"
MAJORITY_CLASS = "majority class"
TENSORBOARD_FOLDER = "plots"  # TensorBoard's name for a run is its folder.
# Okabe and Ito's colors, which color-blind readers can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GRAY = "#777777"
WIDTH, HEIGHT = 5.0, 3.6  # Of a panel, in inches.
MAX_CLASSES = 30  # Names and counts of more classes are not readable.
_DPI = 120
_NOT_DRAWN = {"step", "examples_per_second", "global_grad_norm"}
_NUMBER = int | float | None
_SHAPE = {
    "baselines?": {str: {"name": str, "value": _NUMBER}},
    "confusion?": {"labels": [str], "counts": [[int]]},
}


def read_data(run_dir: str) -> dict[str, Any]:
    """Returns the content of plot_data.json; empty if a run has none.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged.
    """
    path = os.path.join(run_dir, FILE)
    if not files.exists(path):
        return {}
    return files.read_json(
        path, advice="remove it; an evaluation writes it again", shape=_SHAPE
    )


def update_data(
    folder: run_folder.RunFolder,
    values: Mapping[str, Any],
    data_set: run_file.DataSet | None = None,
) -> None:
    """Replaces values in plot_data.json. Baselines of other scores are kept.

    Args:
        folder: of the run.
        values: by key; see the module.
        data_set: what was evaluated. Nothing is written if it is not the run's own.
    """
    if not is_written(folder, data_set):
        return
    merged = read_data(folder.path)
    baselines = merged.get("baselines", {}) | values.get("baselines", {})
    merged |= {**values, "baselines": baselines}
    path = os.path.join(folder.path, FILE)
    companion_files.write_json(path, json_values.with_null(merged))


def is_written(folder: run_folder.RunFolder, data_set: run_file.DataSet | None) -> bool:
    """Returns whether `update_data` writes values of a data set.

    Only the chief does, and only for the evaluation data of its own run.
    """
    name = run_folder.EVAL_RESULTS_FILE
    return folder.is_written and not folder.suffix_of(name, data_set)


def baseline(
    name: str, value: float, *, perfect: float | None = None
) -> dict[str, Any]:
    """Returns an entry of `baselines`.

    Args:
        name: of the simplest prediction.
        value: its score.
        perfect: the best possible score, if it is not 1.
    """
    entry = {"name": name, "value": float(value)}
    return entry if perfect is None else entry | {"perfect": perfect}


def confusion_data(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, labels: Sequence[str]
) -> dict[str, Any]:
    """Returns the confusion matrix of int [N] classes with the names `labels`."""
    counts = np.zeros((len(labels), len(labels)), np.int64)  # [C, C]
    np.add.at(counts, (np.asarray(truth), np.asarray(predicted)), 1)
    return {"labels": list(labels), "counts": counts.tolist()}


def curves(run_dirs: Mapping[str, str]) -> Any:
    """Plots the losses, scores and learning rates of runs into one figure.

    Each quantity has a panel, and each run a color. Held-out curves are dashed.
    Baselines, such as that of the majority class, are dotted lines.

    Args:
        run_dirs: name for the legend -> folder with a metrics.jsonl.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    runs = {label: _read_curves(folder) for label, folder in run_dirs.items()}
    baselines = [read_data(f).get("baselines", {}) for f in run_dirs.values()]
    names = {key.removeprefix("eval_") for run in runs.values() for key in run}
    quantities = sorted(names, key=lambda name: (_order(name), name))
    num_columns = min(len(quantities), 3)
    figure, all_axes = create(-(-len(quantities) // num_columns), num_columns)
    for axes in all_axes[len(quantities) :]:
        axes.remove()
    for axes, quantity in zip(all_axes, quantities, strict=False):
        axes.set(xlabel="step", title=quantity.replace("_", " "))
        if quantity.endswith("perplexity"):
            axes.set_yscale("log")  # It starts near the size of the vocabulary.
        for number, (label, run) in enumerate(runs.items()):
            color = COLORS[number % len(COLORS)]
            if quantity in run:
                axes.plot(*run[quantity], color=color, label=f"{label}, training")
            if (held_out := run.get(f"eval_{quantity}")) is not None:
                style = {"linestyle": "--", "marker": ".", "color": color}
                axes.plot(*held_out, label=f"{label}, held-out", **style)
        for entry in filter(None, (b.get(f"eval_{quantity}") for b in baselines)):
            if (value := entry["value"]) is not None:
                label = f"{quantity}, {entry['name']}: {value:.3g}"
                axes.axhline(value, color=GRAY, linestyle=":", label=label)
        axes.yaxis.set_major_formatter("{x:,.10g}")  # Without powers of ten.
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    place = {"loc": "outside lower left", "frameon": False, "fontsize": "small"}
    figure.legend(handles.values(), handles.keys(), **place)
    return figure


def figures(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of the values in plot_data.json by name."""
    if len(data.get("confusion", {}).get("labels", ())) < 2:
        return {}
    return {"confusion": confusion(**data["confusion"])}


def image(figure: Any, image_format: str = "png") -> bytes:
    """Returns a figure as an image: the same bytes for the same figure."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    metadata = {"Date": None} if image_format == "svg" else None
    with mpl.rc_context({"svg.hashsalt": "bert_tf", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=image_format, dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def save(figure: Any, path: str) -> None:
    """Writes a figure to a file, in the format of the file's extension."""
    image_format = os.path.splitext(path)[1].removeprefix(".") or "png"
    with files.complete_or_absent(path, "wb") as file:
        file.write(image(figure, image_format))


def write_tensorboard(run_dir: str) -> str:
    """Writes the baselines of a run as flat lines, and its figures as images.

    Training writes the curves itself; see `run_folder.RunFolder.log`. Returns a
    sentence that says how to look at the run.

    Raises:
        OSError: a file cannot be written.
        ImportError: matplotlib is not installed.
    """
    folder = os.path.join(run_dir, TENSORBOARD_FOLDER)
    if files.is_folder(folder):  # An earlier call's files would be shown, too.
        for name in files.list_folder(folder):
            files.remove(os.path.join(folder, name))
    data = read_data(run_dir)
    lines = run_folder.RunFolder(run_dir).read_metrics()
    steps = sorted({int(line["step"]) for line in lines}) or [0]
    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        for name, entry in data.get("baselines", {}).items():
            if entry["value"] is not None:
                for step in {steps[0], steps[-1]}:
                    run_folder.write_scalar(name, entry["value"], step)
        for name, figure in figures(data).items():
            width, height = (int(pixels) for pixels in figure.get_size_inches() * _DPI)
            # As tf.summary.image, which requires the package tensorboard.
            metadata = tf.compat.v1.SummaryMetadata()
            metadata.plugin_data.plugin_name = "images"
            values = tf.constant([str(width), str(height), image(figure)])
            tf.summary.write(name, values, steps[-1], metadata)
    writer.close()
    return f"TensorBoard shows the run: tensorboard --logdir={run_dir}"


def create(num_rows: int = 1, num_columns: int = 1) -> tuple[Any, list[Any]]:
    """Returns an empty figure and its axes, row by row.

    Raises:
        ImportError: matplotlib is not installed.
    """
    module = machine.package("matplotlib.figure", extra="plots", needed_for="Plotting")
    size = (WIDTH * num_columns, HEIGHT * num_rows)
    figure = module.Figure(figsize=size, layout="constrained")
    all_axes = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    for axes in all_axes:
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
    return figure, all_axes


def _read_curves(run_dir):
    """Returns {key: (steps, values)} of a run."""
    curves: dict[str, tuple[list, list]] = {}
    for line in run_folder.RunFolder(run_dir).read_metrics():
        for key in line.keys() - _NOT_DRAWN:
            steps, values = curves.setdefault(key, ([], []))
            steps.append(line["step"])
            values.append(line[key])
    if not curves:
        raise ValueError(
            f"{run_dir} has no {run_folder.METRICS_FILE}; expected the output_dir of a "
            "training run."
        )
    # A model with one loss logs it under its own name and as the whole loss.
    loss = curves.get("loss")
    return {key: v for key, v in curves.items() if key == "loss" or v != loss}


def _order(quantity):
    """Returns the position of a panel: losses first, the learning rate last."""
    if quantity == "learning_rate":
        return 3
    return 0 if quantity.endswith("loss") else 1 if quantity.endswith("accuracy") else 2


def confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Any:
    """Plots a confusion matrix; the color is the share of the true class.

    Args:
        labels: names of the C classes.
        counts: [C, C]; rows are true classes, columns predicted ones.
    """
    figure, [axes] = create()
    size = max(HEIGHT, 0.5 * min(len(labels), MAX_CLASSES) + 1.5)
    figure.set_size_inches(size + 1, size)
    shares = [[count / max(sum(row), 1) for count in row] for row in counts]
    matrix = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    axes.grid(visible=False)
    axes.set(title="confusion matrix", xlabel="predicted", ylabel="true")
    figure.colorbar(matrix, ax=axes, label="share of the true class", shrink=0.8)
    if len(labels) <= MAX_CLASSES:
        axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right")
        axes.set_yticks(range(len(labels)), labels)
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row][column] > 0.5 else "black"
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=color)
    return figure
