"""Curves of losses, scores and learning rates of runs, from their metrics.jsonl."""

import dataclasses
import json
import os
import re
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.training import figures
from bert_tf.training import metrics_file
from bert_tf.training import options as training_options
from bert_tf.training import plot_data
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import run_settings
from bert_tf.training import tensorboard

CURVES_FILE = "curves.png"
PERPLEXITY = "perplexity"
LEARNING_RATE = "learning_rate"
_NOT_DRAWN = {"step", "examples_per_second", "global_grad_norm"}
_EVAL = "eval_"
_LOSS = "loss"
# Folders of the phases of `run_pretraining --phase`.
_PHASE = re.compile(r"phase_(\d+)")
_MAX_COLUMNS = 3
_MAX_FLAGS_IN_LABEL = 3
# A smoothed curve has about this many independent points.
_SMOOTHED_POINTS = 30


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Run:
    """The curves of a run."""

    label: str  # For the legend.
    curves: Mapping[str, tuple[list[float], list[float]]]  # Key -> steps and values.
    baselines: Mapping[str, Mapping[str, Any]]  # See `plot_data`.

    def quantities(self) -> set[str]:
        """Returns the keys without the prefix of evaluations."""
        return {key.removeprefix(_EVAL) for key in self.curves}


def plot_runs(
    options: training_options.PlotRunOptions,
    write_report: Callable[[run_folder.RunFolder], str | None] = lambda folder: None,
) -> str:
    """Plots runs into one file; returns sentences that name what was written.

    Args:
        options: of the tool.
        write_report: writes the report of a run and returns its path. Called if one
            run is plotted and no `plot_file` is given.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    given = [folder.rstrip("/") for folder in options.run_dir]
    path = options.plot_file or os.path.join(given[0], CURVES_FILE)
    folders = [part for folder in given for part in phase_folders(folder)]
    names = [os.path.basename(folder) for folder in folders]
    # Runs with the same folder name are labeled with their whole paths.
    run_dirs = {
        folder if names.count(name) > 1 else name: folder
        for name, folder in zip(names, folders, strict=True)
    }
    figures.save(figure(run_dirs), path)
    lines = [f"The curves are in {path}."]
    if folders == given[:1] and options.plot_file is None:
        report = write_report(run_folder.RunFolder(given[0]))
        lines += [f"The report is in {report}."] if report else []
    if options.tensorboard:
        lines += [tensorboard.write(folder) for folder in folders]
    return "\n".join(lines)


def figure(run_dirs: Mapping[str, str]) -> Any:
    """Plots several runs into one figure.

    Training and held-out values of one quantity have one color; held-out curves are
    dashed. Curves of training are smoothed, over their pale raw values. Baselines, such
    as that of the majority class, are dotted lines.

    Args:
        run_dirs: name for the legend -> folder with a metrics.jsonl.

    Returns:
        `matplotlib.figure.Figure`. For one run, it has one panel each for the losses,
        accuracies, perplexities, other scores and the learning rate. For several runs,
        it has one panel for each quantity, and one color for each run, whose label has
        the flags that differ.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    labels = _labels(run_dirs)
    runs = [
        _Run(
            label=labels[name],
            curves=_curves(folder),
            baselines=plot_data.read(folder).get("baselines", {}),
        )
        for name, folder in run_dirs.items()
    ]
    panels = _panels(runs)
    num_columns = 2 if len(panels) == 4 else min(len(panels), _MAX_COLUMNS)
    num_rows = -(-len(panels) // num_columns)
    drawn, all_axes = figures.create(num_rows, num_columns)
    for axes in all_axes[len(panels) :]:
        axes.remove()
    for (title, quantities), axes in zip(panels.items(), all_axes, strict=False):
        _draw_panel(axes, title, quantities, runs)
    if len(runs) > 1:
        pairs = [
            pair
            for axes in drawn.axes
            for pair in zip(*axes.get_legend_handles_labels(), strict=True)
        ]
        handles = {label: handle for handle, label in pairs}
        drawn.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower left",
            frameon=False,
            fontsize="small",
        )
    return drawn


def phase_folders(folder: str) -> list[str]:
    """Returns the folders of a run's phases; the folder itself if it has none."""
    if not files.is_folder(folder):
        return [folder]
    names = [name.rstrip("/") for name in files.list_folder(folder)]
    phases = {int(m[1]): m[0] for m in map(_PHASE.fullmatch, names) if m}
    found = [os.path.join(folder, phases[number]) for number in sorted(phases)]
    return [part for part in found if _has_metrics(part)] or [folder]


def smoothed(values: Sequence[float]) -> np.ndarray | None:
    """Returns moving averages of a curve; None if it has too few points to smooth.

    The windows are centered, so the average does not lag behind the values. They are
    shorter at both ends.
    """
    half = len(values) // (2 * _SMOOTHED_POINTS)
    if half == 0:
        return None
    sums = np.cumsum(np.concatenate([[0.0], np.asarray(values, np.float64)]))
    places = np.arange(len(values))
    first = np.maximum(places - half, 0)
    last = np.minimum(places + half + 1, len(values))
    return (sums[last] - sums[first]) / (last - first)


def _panels(runs):
    """Returns {title: quantities}."""
    found = sorted(set().union(*(run.quantities() for run in runs)))
    panels: dict[str, list[str]] = {
        "loss": [q for q in found if q.endswith("loss")],
        "accuracy": [q for q in found if q.endswith("accuracy")],
        PERPLEXITY: [q for q in found if q.endswith(PERPLEXITY)],
    }
    known = {LEARNING_RATE, *(q for part in panels.values() for q in part)}
    panels["score"] = [q for q in found if q not in known]
    panels["learning rate"] = [q for q in found if q == LEARNING_RATE]
    panels = {title: quantities for title, quantities in panels.items() if quantities}
    if len(runs) == 1:
        return panels
    return {q.replace("_", " "): [q] for part in panels.values() for q in part}


def _draw_panel(axes, title, quantities, runs):
    axes.set(xlabel="step", title=title)
    if quantities[0].endswith(PERPLEXITY):
        axes.set_yscale("log")  # It starts near the size of the vocabulary.
    parts = sorted(set().union(*(map(_part_of, run.quantities()) for run in runs)))
    for number, run in enumerate(runs):
        for quantity in quantities:
            label = quantity if len(runs) == 1 else run.label
            index = parts.index(_part_of(quantity)) if len(runs) == 1 else number
            color = figures.COLORS[index % len(figures.COLORS)]
            if run.quantities() & {quantity}:
                _draw_quantity(axes, run, quantity, label=label, color=color)
            _draw_baseline(axes, run, quantity, is_alone=len(runs) == 1, color=color)
    figures.plain_ticks(axes)
    if len(runs) == 1 and quantities != [LEARNING_RATE]:
        figures.legend_below(axes)


def _part_of(quantity):
    """Returns what of the model a quantity measures, such as "masked_lm"."""
    part = re.sub("_?(loss|accuracy)$", "", quantity)
    return "" if part in (LEARNING_RATE, PERPLEXITY) else part


def _draw_quantity(axes, run, quantity, *, label, color):
    """Draws training and held-out values of a quantity."""
    if quantity == LEARNING_RATE:
        axes.plot(*run.curves[quantity], color=color, label=f"{label}, training")
    elif quantity in run.curves:
        steps, values = run.curves[quantity]
        smooth = smoothed(values)
        axes.plot(steps, values, color=color, alpha=1 if smooth is None else 0.2)
        if smooth is not None:
            axes.plot(steps, smooth, color=color)
        axes.get_lines()[-1].set_label(f"{label}, training")
    if (held_out := _EVAL + quantity) in run.curves:
        axes.plot(
            *run.curves[held_out],
            "--",
            color=color,
            marker=".",
            label=f"{label}, held-out",
        )


def _draw_baseline(axes, run, quantity, *, is_alone, color):
    baseline = run.baselines.get(_EVAL + quantity)
    if baseline is None or baseline["value"] is None:
        return
    label = f"{baseline['name']}: {baseline['value']:.3g}"
    axes.axhline(
        baseline["value"],
        color=color if is_alone else figures.GRAY,
        linestyle=":",
        label=f"{quantity}, {label}" if is_alone else label,
    )


def _labels(run_dirs):
    """Returns the label of each run: its name, and its flags that differ."""
    if len(run_dirs) == 1:
        return {name: name for name in run_dirs}
    flags = {
        name: result_files.read_run(folder).get("flags", {})
        for name, folder in run_dirs.items()
    }
    names = sorted(set().union(*flags.values()) - set(run_settings.WITHOUT_EFFECT))
    differing = [
        flag
        for flag in names
        if len({json.dumps(found.get(flag)) for found in flags.values()}) > 1
    ]
    labels = {}
    for name, found in flags.items():
        parts = [f"{flag}={found.get(flag)}" for flag in differing]
        rest = len(parts) - _MAX_FLAGS_IN_LABEL
        parts = parts[:_MAX_FLAGS_IN_LABEL] + ([f"{rest} more"] if rest > 0 else [])
        labels[name] = f"{name} ({', '.join(parts)})" if parts else name
    return labels


def _has_metrics(folder: str) -> bool:
    return files.exists(os.path.join(folder, metrics_file.NAME))


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
    # A model with one loss logs it under its own name and as the whole loss.
    same = [key for key in curves if key != _LOSS and curves[key] == curves.get(_LOSS)]
    return {key: curves[key] for key in sorted(curves.keys() - set(same))}
