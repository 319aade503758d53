"""The model card of a run (README.md) and its report (report.html).

Each task describes its run as a `Card`. The facts of a card are kept next to its text,
in model_card.json, so that a later evaluation can complete it. The card is for the
Hugging Face Hub.

The report is one self-contained file with the scores next to baselines without
learning, the plots, the settings and the next commands. It reads only files in the
folder, so `plot_run` can also write it for an older run.
"""

import base64
import dataclasses
import hashlib
import json
import logging
import os
import shlex
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import jinja2

from bert_tf import files
from bert_tf import json_values
from bert_tf import locks
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.training import options as training_options
from bert_tf.training import plots
from bert_tf.training import run_file
from bert_tf.training import run_folder
from bert_tf.training import stopping

logger = logging.getLogger(__name__)

FACTS_FILE = "model_card.json"
CARD_FILE = "README.md"
REPORT_FILE = "report.html"
CURVES_FILE = "curves.png"
# A score must cover this share of the distance from the baseline to a perfect score.
MARGIN = 0.02
_NO_FACTS = {"summary": "A training run of bert_tf."}
MAX_CHARACTERS = 200  # Of a cell in a table.
# Settings that are always shown. Other settings are shown if they are not the default.
ALWAYS_SHOWN = (
    "learning_rate",
    "train_batch_size",
    "num_train_epochs",
    "warmup_proportion",
    "max_seq_length",
    "random_seed",
    "dtype",
)
# Settings that do not change what a run computes, or that are listed elsewhere.
_HIDDEN = (
    "do_train",
    "do_eval",
    "do_predict",
    "dry_run",
    "eval_batch_size",
    "init_checkpoint",
    "iterations_per_loop",
    "keep_checkpoint_max",
    "predict_batch_size",
    "save_checkpoints_steps",
)
# See `json_values.unexpected`.
_FACTS_SHAPE = {
    "labels": [str],
    "data": [{"part": str, "name": str, "num_examples": int, "sha256": str | None}],
    "training_data": [str],
    "settings": dict,
    "scores": {str: int | float | None},
    "training": {
        "num_steps": int,
        "examples_per_second": int | float | None,
        "versions": {str: str | None},
    },
}
# The last line of a card contains its checksum, which reveals manual edits.
_SEAL = "<!-- bert_tf wrote all of the above: sha256 {} -->\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file that the run read, or a part of a published data set."""

    part: str  # Such as train, dev, dev_matched, test or corpus.
    name: str  # Without folders.
    num_examples: int
    sha256: str | None = None  # Of the file. None for a published data set.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
    """The facts of a task about its run. Empty fields are unknown to this call."""

    pipeline_tag: str  # Task name on the Hub, such as "text-classification".
    summary: str  # One sentence that says what the model does.
    options: training_options.TrainingOptions
    labels: Sequence[str] | None = None  # Names of the classes.
    languages: tuple[str, ...] = ()  # ISO codes.
    data: tuple[DataFile, ...] = ()
    training: run_file.TrainingFacts | None = None
    training_data: tuple[str, ...] = ()  # Sentences about labels and lengths.
    # Of an evaluation: the contents of eval_results.txt, and what was evaluated (None:
    # the run's own data).
    results: Mapping[str, float] | None = None
    data_set: run_file.DataSet | None = None


def read_facts(run_dir: str) -> dict[str, Any] | None:
    """Returns the contents of model_card.json of a run; None if there is none.

    Raises:
        ValueError: model_card.json is damaged.
        OSError: model_card.json cannot be read.
    """
    path = os.path.join(run_dir, FACTS_FILE)
    if not files.exists(path):
        return None
    advice = "remove it to create a new model card"
    facts = files.read_json(path, advice=advice, shape=_FACTS_SHAPE)
    scores = facts["scores"].items()
    return facts | {"scores": {n: json_values.nan_if_null(v) for n, v in scores}}


def write_card(folder: run_folder.RunFolder, card: Card) -> str | None:
    """Writes or completes README.md of a run.

    The card contains the data and settings of the steps that were trained, and the
    scores on the run's own data. Only a call that trained replaces facts about the
    training.

    Returns:
        The path of the card. None if it was not written: the model in the folder was
        trained without a card, other data was evaluated, the card was edited manually,
        or this process is not the chief.
    """

    def facts(earlier):
        if earlier is None and card.training is None:
            return None
        if folder.suffix_of(run_folder.EVAL_RESULTS_FILE, card.data_set):
            return None  # Not the run's own data.
        return _merged(earlier, _facts(card, folder))

    return _rewrite(folder, facts)


def rewrite_scores(
    folder: run_folder.RunFolder, scores: Mapping[str, float]
) -> str | None:
    """Replaces the scores of a card."""
    return _rewrite(folder, lambda facts: facts and facts | {"scores": dict(scores)})


def settings(options: options_module.Options) -> dict[str, Any]:
    """Returns the options that a card shows as training settings, by name."""
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    return {
        name: value
        for name, value in run_file.flags_of(options).items()
        if name not in _HIDDEN
        and not name.endswith(("_file", "_dir"))  # Listed elsewhere.
        and (name in ALWAYS_SHOWN or getattr(options, name) != defaults[name])
    }


def render(template: str, **values: Any) -> str:
    """Returns the text of a template beside this module. HTML is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
        autoescape=jinja2.select_autoescape(["html.jinja"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cell": _cell, "escaped": _escaped, "number": "{:,}".format}
    return environment.get_template(template).render(values)


def _rewrite(folder, change):
    """Writes what `change` makes of the facts, if it is not None, and their text.

    No other process changes the card meanwhile. Returns the path of the text; None if
    it is not written.
    """
    facts_path = os.path.join(folder.path, FACTS_FILE)
    path = os.path.join(folder.path, CARD_FILE)
    if not folder.is_written:
        return None
    with locks.output_file(facts_path, flag="output_dir", waits=True):
        facts = change(read_facts(folder.path))
        if facts is None:
            return None
        companion_files.write_json(facts_path, json_values.with_null(facts))
        if files.exists(path):
            with files.open_file(path) as file:
                *lines, seal = file.read().splitlines(keepends=True) or [""]
            if seal != _seal("".join(lines)):
                logger.warning("%s was edited manually; it is not changed.", path)
                return None
        text = _text(os.path.basename(os.path.abspath(folder.path)), facts)
        with files.complete_or_absent(path) as file:
            file.write(text + _seal(text))
    return path


def _seal(text):
    return _SEAL.format(hashlib.sha256(text.encode("utf-8")).hexdigest())


def _facts(card: Card, folder: run_folder.RunFolder) -> dict[str, Any]:
    """Returns the contents of model_card.json."""
    evaluation = {"options", "results", "data_set"}
    facts = {k: v for k, v in dataclasses.asdict(card).items() if k not in evaluation}
    options, results = card.options, card.results
    start = options.init_checkpoint
    facts |= {
        "labels": card.labels or (),
        "base_model": run_file.read_run(folder.path).get("hub_name")
        or (start and run_file.short_name(start)),
        "settings": settings(options),
        "scores": results or {},
    }
    return json.loads(json.dumps(facts))  # Lists in place of tuples.


def _merged(earlier, facts):
    """Returns the facts of a call that trained, or earlier ones with its scores."""
    training = facts["training"]
    if earlier is None or (training and training["examples_per_second"] is not None):
        return facts
    if training and training["num_steps"] != earlier["training"]["num_steps"]:
        return facts  # Steps of a process that was killed before it wrote a card.
    if not facts["scores"]:
        return earlier
    evaluated = [file for file in facts["data"] if file["part"] != "train"]
    facts["data"] = [f for f in earlier["data"] if f["part"] == "train"] + evaluated
    return earlier | {name: facts[name] for name in ("data", "scores")}


def _text(name, facts):
    """Returns the text of the card from the facts in model_card.json."""
    scores = {
        score: run_folder.format_score(value)
        for score, value in sorted(facts["scores"].items())
        if score not in ("global_step", "loss")
    }
    metrics = [score.removeprefix("eval_").removeprefix("test_") for score in scores]
    values = {
        "name": name,
        "base_name": _base_name(facts["base_model"] or ""),
        "metrics": [metric for metric in dict.fromkeys(metrics) if metric != "loss"],
        "scores": scores,
        "speed": facts["training"]["examples_per_second"],
    }
    return render("model_card.md.jinja", **facts | values)


def _base_name(path):
    """Returns the name of a checkpoint: that of its folder, or its own."""
    folder, name = os.path.split(run_file.short_name(path))
    if "ckpt" in name:
        return folder or name
    return os.path.join(folder, name).removeprefix("hf://")


def _cell(value):
    """Returns a value as one line of text, with Markdown characters escaped."""
    value = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    text = " ".join(value.split())
    if len(text) > MAX_CHARACTERS:
        text = text[: MAX_CHARACTERS - 1] + "…"
    return _escaped(text)


def _escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


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
        lines.append(
            f"The report is in {write_report(run_folder.RunFolder(run_dirs[0]))}."
        )
    if options.tensorboard:
        lines += [plots.write_tensorboard(folder) for folder in run_dirs]
    return "\n".join(lines)


def write_report(folder: run_folder.RunFolder) -> str | None:
    """Writes report.html; returns its path, or None if this process is not the chief.

    Without matplotlib, the report has no plots and says how to install it.
    """
    run_dir = folder.path
    if not folder.is_written or not files.is_folder(run_dir):
        return None
    data = plots.read_data(run_dir)
    facts = read_facts(run_dir) or _NO_FACTS
    images, no_plots = _images(run_dir, data)
    flags = run_file.read_run(run_dir).get("flags", {})
    text = render(
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
    path = os.path.join(run_dir, REPORT_FILE)
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
