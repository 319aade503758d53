"""Figures of a run: how they look, and those that show no curve.

Every function returns a `matplotlib.figure.Figure`, which a notebook shows and
`save` writes.
"""

import io
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files

# Okabe and Ito's colors, which color-blind readers can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GRAY = "#777777"
PANEL_WIDTH, PANEL_HEIGHT = 5.0, 3.6  # Inches.
MAX_CLASSES = 30  # Names and counts of more classes are not readable.


def create(num_rows: int = 1, num_columns: int = 1) -> tuple[Any, list[Any]]:
    """Returns an empty figure and its axes, row by row.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = _matplotlib_figure().Figure(
        figsize=(PANEL_WIDTH * num_columns, PANEL_HEIGHT * num_rows),
        layout="constrained",
    )
    grid = figure.subplots(num_rows, num_columns, squeeze=False)
    all_axes = [axes for row in grid for axes in row]
    for axes in all_axes:
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
    return figure, all_axes


def plain_ticks(axes: Any) -> None:
    """Writes tick labels as plain numbers, without offsets and powers of ten."""
    if axes.get_yscale() == "log":
        axes.set_yscale("log", subs=[])  # Ticks between 1, 2, 5, 10 and so on crowd it.
        axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)


def _plain(value, position):
    del position  # Of the tick.
    text = f"{value:,.10f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def legend_below(axes: Any) -> None:
    """Puts the legend below the axes, where it hides no data."""
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, -0.2),
        borderaxespad=0,
        frameon=False,
        fontsize="small",
    )


def confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Any:
    """Plots a confusion matrix; the color is the share of the true class.

    Args:
        labels: names of the C classes.
        counts: [C, C]; rows are true classes, columns predicted ones.
    """
    figure, [axes] = create()
    size = max(PANEL_HEIGHT, 0.5 * min(len(labels), MAX_CLASSES) + 1.5)
    figure.set_size_inches(size + 1, size)
    shares = [[count / max(sum(row), 1) for count in row] for row in counts]
    picture = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    axes.grid(visible=False)
    axes.set(title="confusion matrix", xlabel="predicted", ylabel="true")
    figure.colorbar(picture, ax=axes, label="share of the true class", shrink=0.8)
    if len(labels) <= MAX_CLASSES:
        places = range(len(labels))
        axes.set_xticks(places, labels, rotation=45, ha="right")
        axes.set_yticks(places, labels)
        for row in places:
            for column in places:
                color = "white" if shares[row][column] > 0.5 else "black"
                text = f"{counts[row][column]:,}"
                axes.text(column, row, text, ha="center", va="center", color=color)
    return figure


def calibration(bins: Sequence[Mapping[str, float]]) -> Any:
    """Plots how often the model is right, by its confidence.

    Args:
        bins: see `plot_data.calibration`.
    """
    figure, [axes] = create()
    axes.plot([0, 1], [0, 1], "--", color=GRAY, label="perfectly calibrated")
    sure = [one["confidence"] for one in bins]
    right = [one["accuracy"] for one in bins]
    axes.plot(sure, right, color=COLORS[0], alpha=0.5)
    most = max(one["count"] for one in bins)
    sizes = [20 + 180 * one["count"] / most for one in bins]
    axes.scatter(
        sure, right, s=sizes, color=COLORS[0], label="model (area: number of examples)"
    )
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
    found = {}
    if len((data.get("confusion") or {}).get("labels", ())) > 1:
        found["confusion"] = confusion(**data["confusion"])
    if data.get("calibration"):
        found["calibration"] = calibration(data["calibration"])
    if data.get("lengths"):
        found["lengths"] = lengths(**data["lengths"])
    return found


def save(figure: Any, path: str) -> None:
    """Writes a figure to a file, in the format of the file's extension."""
    image_format = os.path.splitext(path)[1].removeprefix(".") or "png"
    with files.complete_or_absent_path(path) as temporary:
        figure.savefig(temporary, format=image_format, dpi=120)


def png(figure: Any) -> bytes:
    """Returns a figure as a PNG image."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=120)
    return written.getvalue()


def _matplotlib_figure():
    try:
        import matplotlib.figure
    except ModuleNotFoundError:
        raise ImportError(
            "Plotting requires matplotlib; run: pip install 'bert_tf[plots]'"
        ) from None
    return matplotlib.figure
