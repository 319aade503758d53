"""The report of a run: report.html in its folder, one self-contained file.

It shows the scores next to baselines without learning, the plots, the settings and the
next commands. It reads only files in the folder, so `plot_run` can also write it for an
older run.
"""

import base64
import os
import shlex
from collections.abc import Mapping

from bert_tf import files
from bert_tf.fine_tuning import model_card
from bert_tf.training import options as training_options
from bert_tf.training import plots
from bert_tf.training import run_file
from bert_tf.training import run_folder
from bert_tf.training import stopping

FILE = "report.html"
CURVES_FILE = "curves.png"
# A score must cover this share of the distance from the baseline to a perfect score.
MARGIN = 0.02
_NO_FACTS = {"summary": "A training run of bert_tf."}


def plot_runs(options: training_options.PlotRunOptions) -> str:
    """Plots runs into one file, and writes the report of a single run.

    Returns:
        Sentences that name what was written.

    Raises:
        ValueError: a folder has no metrics.
        ImportError: matplotlib is not installed.
    """
    run_dirs = [folder.rstrip("/") for folder in options.run_dir]
    path = options.plot_file or os.path.join(run_dirs[0], CURVES_FILE)
    names = [os.path.basename(folder) for folder in run_dirs]
    # Runs with the same folder name are labeled with their whole paths.
    labeled = {
        folder if names.count(name) > 1 else name: folder
        for folder, name in zip(run_dirs, names, strict=True)
    }
    plots.save(plots.curves(labeled), path)
    lines = [f"The curves are in {path}."]
    if len(run_dirs) == 1 and options.plot_file is None:
        lines.append(f"The report is in {write(run_folder.RunFolder(run_dirs[0]))}.")
    return "\n".join(lines)


def write(folder: run_folder.RunFolder) -> str | None:
    """Writes report.html; returns its path, or None if this process is not the chief.

    Without matplotlib, the report has no plots and says how to install it.
    """
    run_dir = folder.path
    if not folder.is_written or not files.is_folder(run_dir):
        return None
    data = plots.read_data(run_dir)
    facts = model_card.read_facts(run_dir) or _NO_FACTS
    images, no_plots = _images(run_dir, data)
    flags = run_file.read_run(run_dir).get("flags", {})
    text = model_card.render(
        "run_report.html.jinja",
        name=os.path.basename(os.path.abspath(run_dir)),
        run=shlex.quote(run_dir),
        facts=facts,
        scores=_scores(folder.read_eval_results(), data.get("baselines", {})),
        images=images,
        no_plots=no_plots,
        settings=facts.get("settings")
        or {name: value for name, value in flags.items() if value is not None},
    )
    path = os.path.join(run_dir, FILE)
    with files.complete_or_absent(path) as file:
        file.write(text)
    return path


def _scores(results, baselines):
    """Returns rows: name, score, baseline, the baseline's name, and the verdict."""
    rows = []
    for name, score in sorted(results.items()):
        if name == "global_step" or (name == "loss" and "eval_loss" in results):
            continue
        baseline = baselines.get(name) or baselines.get(f"eval_{name}") or {}
        value, perfect = baseline.get("value"), baseline.get("perfect")
        shown = "" if value is None else run_folder.format_score(value)
        judgement = verdict(name, score, value, perfect=perfect)
        source = baseline.get("name", "")
        rows.append((name, run_folder.format_score(score), shown, source, judgement))
    return rows


def score_lines(
    folder: run_folder.RunFolder, results: Mapping[str, float]
) -> list[str]:
    """Returns lines as `run_folder.score_lines`, with the baseline of each score."""
    remarks = {}
    baselines = plots.read_data(folder.path).get("baselines", {})
    if folder.read_eval_results() == results:  # Not those of other data.
        for name, _, value, source, judgement in _scores(results, baselines):
            facts = ", ".join(filter(None, (f"{source} {value}", judgement)))
            remarks[name] = f"  ({facts})" if value else ""
    lines = run_folder.score_lines(results)
    return [line + remarks.get(line.partition(" = ")[0], "") for line in lines]


def verdict(
    name: str, score: float, baseline: float | None, *, perfect: float | None = None
) -> str:
    """Returns "not learned" if a score is hardly better than its baseline, else "".

    Args:
        name: of the score. A loss or a perplexity is better if it is lower.
        score: of the model.
        baseline: the score of the simplest prediction. None: unknown.
        perfect: the best possible score. None: 100 if one is above 1, else 1.
    """
    if baseline is None:
        return ""
    if name.endswith(stopping.LOWER_IS_BETTER):
        learned = score < baseline * (1 - MARGIN)
    else:
        perfect = perfect or (100 if max(score, baseline) > 1 else 1)
        learned = score > baseline + MARGIN * (perfect - baseline) or score >= perfect
    return "" if learned else "not learned"


def _images(run_dir, data):
    """Returns plots as SVG in base64, by name, and why there are none."""
    try:
        figures = plots.figures(data)
        if files.exists(os.path.join(run_dir, run_folder.METRICS_FILE)):
            curves = plots.curves({os.path.basename(run_dir): run_dir})
            figures = {"curves": curves} | figures
    except ImportError as error:
        return {}, str(error)
    images = {
        name: base64.b64encode(plots.image(figure, "svg")).decode("ascii")
        for name, figure in figures.items()
    }
    return images, "There is nothing to plot yet."
