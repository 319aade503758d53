"""Plots of runs: curves, confusion matrices, calibration and lengths.

Every function that plots returns a `matplotlib.figure.Figure`, which a notebook shows
and `save` writes.
"""

import io
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.training import plot_data
from bert_tf.training import run_folder

TENSORBOARD_FOLDER = "plots"  # TensorBoard's name for a run is its folder.
# Okabe and Ito's colors, which color-blind readers can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GRAY = "#777777"
WIDTH, HEIGHT = 5.0, 3.6  # Of a panel, in inches.
MAX_CLASSES = 30  # Names and counts of more classes are not readable.
_DPI = 120
_NOT_DRAWN = {"step", "examples_per_second", "global_grad_norm"}
# A smoothed curve has about this many independent points.
_SMOOTHED_POINTS = 30


def create(num_rows: int = 1, num_columns: int = 1) -> tuple[Any, list[Any]]:
    """Returns an empty figure and its axes, row by row.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        import matplotlib.figure
    except ModuleNotFoundError:
        raise ImportError(
            "Plotting requires matplotlib; run: pip install 'bert_tf[plots]'"
        ) from None
    figure = matplotlib.figure.Figure(
        figsize=(WIDTH * num_columns, HEIGHT * num_rows),
        layout="constrained",
    )
    all_axes = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    for axes in all_axes:
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
    return figure, all_axes


def plain_ticks(axes: Any) -> None:
    """Writes tick labels as plain numbers, without offsets and powers of ten."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.10g}")


def legend_below(axes: Any) -> None:
    """Puts the legend below the axes, where it hides no data."""
    axes.legend(
        loc="upper left", bbox_to_anchor=(0, -0.2), frameon=False, fontsize="small"
    )


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


def curves(run_dirs: Mapping[str, str]) -> Any:
    """Plots the losses, scores and learning rates of runs into one figure.

    Each quantity has a panel, and each run a color. Held-out curves are dashed. Curves
    of training are smoothed, over their pale raw values. Baselines, such as that of the
    majority class, are dotted lines.

    Args:
        run_dirs: name for the legend -> folder with a metrics.jsonl.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    runs = {label: _read_curves(folder) for label, folder in run_dirs.items()}
    baselines = [plot_data.read(f).get("baselines", {}) for f in run_dirs.values()]
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
            _draw(axes, run, quantity, label=label, color=COLORS[number % len(COLORS)])
        for baseline in filter(None, (b.get(f"eval_{quantity}") for b in baselines)):
            if (value := baseline["value"]) is not None:
                label = f"{quantity}, {baseline['name']}: {value:.3g}"
                axes.axhline(value, color=GRAY, linestyle=":", label=label)
        plain_ticks(axes)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    place = {"loc": "outside lower left", "frameon": False, "fontsize": "small"}
    figure.legend(handles.values(), handles.keys(), **place)
    return figure


def smoothed(values: Sequence[float]) -> np.ndarray | None:
    """Returns moving averages of a curve; None if it has too few points to smooth.

    The windows are centered, so the average does not lag behind the values. They are
    shorter at both ends.
    """
    half = len(values) // (2 * _SMOOTHED_POINTS)
    if half == 0:
        return None
    window = np.ones(2 * half + 1)
    counts = np.convolve(np.ones(len(values)), window, "same")
    return np.convolve(values, window, "same") / counts


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


def _draw(axes, run, quantity, *, label, color):
    """Draws training and held-out values of a quantity."""
    if quantity in run:
        steps, values = run[quantity]
        average = None if quantity == "learning_rate" else smoothed(values)
        if average is not None:
            axes.plot(steps, values, color=color, alpha=0.2)
            values = average
        axes.plot(steps, values, color=color, label=f"{label}, training")
    if (held_out := run.get(f"eval_{quantity}")) is not None:
        label = f"{label}, held-out"
        axes.plot(*held_out, "--", color=color, marker=".", label=label)


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


def calibration(bins: Sequence[Mapping[str, float]]) -> Any:
    """Plots how often the model is right, by its confidence.

    Args:
        bins: see `plot_data.calibration`.
    """
    figure, [axes] = create()
    axes.plot([0, 1], [0, 1], "--", color=GRAY, label="perfectly calibrated")
    confidences = [one["confidence"] for one in bins]
    accuracies = [one["accuracy"] for one in bins]
    axes.plot(confidences, accuracies, color=COLORS[0], alpha=0.5)
    most = max(one["count"] for one in bins)
    areas = [20 + 180 * one["count"] / most for one in bins]
    label = "model (area: number of examples)"
    axes.scatter(confidences, accuracies, s=areas, color=COLORS[0], label=label)
    axes.set(
        title="calibration",
        xlabel="probability of the predicted class",
        ylabel="accuracy",
        xlim=(0, 1.03),
        ylim=(-0.03, 1.05),
    )
    legend_below(axes)
    return figure


def lengths(edges: Sequence[float], counts: Sequence[int], limit: int) -> Any:
    """Plots a histogram of the lengths of the training examples.

    Args:
        edges: N + 1 borders, in word pieces.
        counts: N numbers of examples.
        limit: the length to which examples are truncated, or of their windows.
    """
    figure, [axes] = create()
    axes.stairs(counts, edges, fill=True, color=COLORS[0], alpha=0.8)
    axes.axvline(limit, color=COLORS[1], linestyle="--", label=f"limit: {limit:,}")
    axes.set(
        title="lengths of the training examples",
        xlabel="word pieces, before truncation or windows",
        ylabel="examples",
        xlim=(0, None),
    )
    plain_ticks(axes)
    legend_below(axes)
    return figure


def from_plot_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of plot_data.json by name; see `plot_data`."""
    figures = {}
    if len((data.get("confusion") or {}).get("labels", ())) > 1:
        figures["confusion"] = confusion(**data["confusion"])
    if data.get("calibration"):
        figures["calibration"] = calibration(data["calibration"])
    if data.get("lengths"):
        figures["lengths"] = lengths(**data["lengths"])
    return figures


def write_tensorboard(run_dir: str) -> str:
    """Writes what TensorBoard shows of a run beside its curves.

    These are the baselines as flat lines, and the other plots as images. Training
    writes the curves itself; see `run_folder.RunFolder.log`.

    Args:
        run_dir: `output_dir` of a run.

    Returns:
        A sentence that says how to look at the run.

    Raises:
        OSError: a file cannot be written.
        ImportError: matplotlib is not installed.
    """
    folder = os.path.join(run_dir, TENSORBOARD_FOLDER)
    if files.is_folder(folder):  # An earlier call's files would be shown, too.
        for name in files.list_folder(folder):
            files.remove(os.path.join(folder, name))
    data = plot_data.read(run_dir)
    lines = run_folder.RunFolder(run_dir).read_metrics()
    steps = sorted({int(line["step"]) for line in lines}) or [0]
    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        for name, baseline in data.get("baselines", {}).items():
            if baseline["value"] is not None:
                for step in {steps[0], steps[-1]}:
                    run_folder.write_scalar(name, baseline["value"], step)
        for name, figure in from_plot_data(data).items():
            width, height = (int(pixels) for pixels in figure.get_size_inches() * _DPI)
            # As tf.summary.image, which requires the package tensorboard.
            metadata = tf.compat.v1.SummaryMetadata()
            metadata.plugin_data.plugin_name = "images"
            values = tf.constant([str(width), str(height), image(figure)])
            tf.summary.write(name, values, steps[-1], metadata)
    writer.close()
    return f"TensorBoard shows the run: tensorboard --logdir={run_dir}"
