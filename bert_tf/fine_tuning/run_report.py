"""The report of a run: report.html in its folder, one self-contained file.

It shows the scores next to baselines without learning, the plots, wrong examples if the
run has --card_examples, the settings and the next commands. It reads only files in the
folder, so `plot_run` can also write it for an older run.
"""

import base64
import html
import io
import logging
import os
import shlex
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.fine_tuning import card_text
from bert_tf.fine_tuning import model_card
from bert_tf.training import curves
from bert_tf.training import figures
from bert_tf.training import metrics_file
from bert_tf.training import options as training_options
from bert_tf.training import plot_data
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import verdicts

logger = logging.getLogger(__name__)

FILE = "report.html"
_TOOLS = {
    "classification": "run_classifier",
    "multiple_choice": "run_swag",
    "question_answering": "run_squad",
    "token_classification": "run_ner",
    "retrieval": "run_retrieval",
}
_QUERIES = {
    "classification": "--text='Your text'",
    "question_answering": "--question='Your question' --context='Your text'",
    "token_classification": "--text='Your text'",
    "retrieval": "--text='Your text'",
}
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { background: white; border-radius: .5rem; max-width: 100%; margin: .3rem 0; }
pre { background: var(--soft); padding: .8rem; border-radius: .5rem; overflow-x: auto; }
.not-learned { color: #c40; font-weight: 600; }
"""


def plot_runs(options: training_options.PlotRunOptions) -> str:
    """Plots runs and writes the report of a single one; see `curves.plot_runs`."""
    return curves.plot_runs(options, write)


def write(folder: run_folder.RunFolder) -> str | None:
    """Writes report.html; returns its path, or None if this process is not the chief.

    Without matplotlib, the report has no plots and says how to install it.

    Args:
        folder: of a run.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: a file of the run is damaged.
    """
    if not folder.is_written or not files.is_folder(folder.path):
        return None
    path = os.path.join(folder.path, FILE)
    with files.complete_or_absent(path) as file:
        file.write(render(folder.path))
    return path


def render(run_dir: str) -> str:
    """Returns the report of a run as HTML.

    Args:
        run_dir: `output_dir` of a run.

    Raises:
        OSError, ValueError: see `write`.
    """
    name = os.path.basename(os.path.abspath(run_dir))
    data = plot_data.read(run_dir)
    facts = model_card.facts_of(run_dir) or {}
    sections = [
        f"<h1>{_text(name)}</h1>",
        f"<p>{_text(facts.get('summary') or 'A training run of bert_tf.')}</p>",
        "<h2>Scores</h2>",
        _scores(run_folder.RunFolder(run_dir).read_eval_results(), data),
        "<h2>Plots</h2>",
        _plots(run_dir, data),
        *_wrong_examples(run_dir, facts),
        *_settings(run_dir, facts),
        "<h2>What to type next</h2>",
        f"<pre>{_text(next_commands(run_dir))}</pre>",
    ]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(name)}</title><style>{_STYLE}</style></head><body>"
    )
    return "\n".join([head, *sections, "</body></html>\n"])


def next_commands(run_dir: str) -> str:
    """Returns commands that use the run, one per line.

    Raises:
        OSError, ValueError: task.json cannot be read.
    """
    run = shlex.quote(run_dir)
    task: Mapping[str, Any] = {}
    if files.exists(os.path.join(run_dir, companion_files.TASK_FILE)):
        task = companion_files.read_task(run_dir)
    kind = task.get("task", "")
    if kind == "pretraining":
        lines = [
            f"fill_mask --init_checkpoint={run} --text='A sentence with a [MASK].'",
            f"run_classifier --init_checkpoint={run} --train_file=train.csv "
            "--eval_file=dev.csv --output_dir=runs/classifier --do_train --do_eval",
            f"convert_checkpoint --source={run} --target=hugging_face_folder "
            "--target_format=hugging_face",
        ]
    else:
        lines = []
        if kind in _TOOLS:
            file = "new.json" if kind == "question_answering" else "new.csv"
            flags = f"--output_dir={run} --predict_file={file} --do_predict"
            lines.append(f"{_TOOLS[kind]} {flags}")
        lines.append(f"export_saved_model --output_dir={run} --export_dir=exported/1")
        if kind in _QUERIES:
            query = _QUERIES[kind]
            lines.append(f"query_saved_model --export_dir=exported/1 {query}")
    lines.append(f"plot_run --run_dir={run},ANOTHER_RUN")
    return "\n".join(lines)


def _scores(results, data):
    baselines = data.get("baselines", {})
    if not results:
        return "<p>Not evaluated yet; <code>--do_eval</code> adds the scores.</p>"
    rows = []
    for name in sorted(results):
        if name == "global_step" or (name == "loss" and "eval_loss" in results):
            continue
        found = baselines.get(name) or baselines.get(f"eval_{name}") or {}
        value = found.get("value")
        said = verdicts.verdict(
            name, results[name], value, perfect=found.get("perfect")
        )
        rows.append(
            f"<tr><td>{_text(name)}</td>{_number(results[name])}"
            f"{_number(value)}<td>{_text(found.get('name', ''))}</td>"
            f'<td class="not-learned">{said}</td></tr>'
        )
    head = _row(("score", "value", "baseline", "", ""), cell="th")
    return f"<table>{head}{''.join(rows)}</table>"


def _plots(run_dir, data):
    try:
        drawn = {}
        if files.exists(os.path.join(run_dir, metrics_file.NAME)):
            drawn["curves"] = curves.figure({os.path.basename(run_dir): run_dir})
        drawn |= figures.from_plot_data(data)
    except ImportError as error:
        return f"<p>{_text(error)}</p>"
    if not drawn:
        return "<p>There is nothing to plot yet.</p>"
    return "\n".join(_image(name, figure) for name, figure in drawn.items())


def _image(name, figure):
    import matplotlib as mpl

    written = io.BytesIO()
    # A salt and no date, so that the same run gives the same bytes.
    with mpl.rc_context({"svg.hashsalt": "bert_tf", "svg.fonttype": "none"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    encoded = base64.b64encode(written.getvalue()).decode("ascii")
    return f'<img alt="{name}" src="data:image/svg+xml;base64,{encoded}">'


def _wrong_examples(run_dir, facts):
    name = model_card.WRONG_EXAMPLES_FILE
    if not files.exists(os.path.join(run_dir, name)):
        return []
    # They may be private: the facts contain some only with --card_examples.
    examples = facts.get("wrong_examples") or ()
    sentence = f"{name} has all of them."
    counts = facts.get("num_wrong"), facts.get("num_evaluated")
    if None not in counts:
        wrong, evaluated = counts
        counted = f"{wrong:,} of {evaluated:,} evaluated examples are wrong."
        sentence = f"{counted} {sentence}" if wrong else counted
    if not examples and counts[0] != 0:
        sentence += " A training or evaluation with --card_examples shows some here."
    rows = [(e["text"], e["expected"], e["predicted"]) for e in examples]
    table = _table(("text", "expected", "predicted"), rows) if rows else ""
    return ["<h2>Wrong examples</h2>", f"<p>{sentence}</p>", table]


def _settings(run_dir, facts):
    settings = facts.get("settings")
    if settings is None:
        flags = result_files.read_run(run_dir).get("flags", {})
        settings = {name: value for name, value in flags.items() if value is not None}
    if not settings:
        return []
    return ["<h2>Settings</h2>", _table(("setting", "value"), settings.items())]


def _table(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [_row(head, cell="th"), *(_row(row) for row in rows)]
    return "<table>" + "".join(lines) + "</table>"


def _row(cells, *, cell="td"):
    return "<tr>" + "".join(f"<{cell}>{_text(c)}</{cell}>" for c in cells) + "</tr>"


def _number(value):
    text = "" if value is None else run_folder.format_score(value)
    return f'<td class="number">{text}</td>'


def _text(value):
    found = str(value)
    limit = card_text.MAX_CHARACTERS * 5
    return html.escape(found if len(found) <= limit else found[: limit - 1] + "…")
