"""The report at the end of the demo, as text and as a web page."""

import base64
import dataclasses
import html
import math
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.training import verdicts

_SCORES = {
    "masked_lm_loss": "masked-word loss",
    "masked_lm_accuracy": "masked-word accuracy",
    "next_sentence_loss": "next-sentence loss",
    "next_sentence_accuracy": "next-sentence accuracy",
}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { padding: .3rem .8rem; border-bottom: 1px solid #8884; text-align: left;
  vertical-align: top; }
img { background: white; border-radius: .5rem; max-width: 100%; }
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Scores on the held-out text; keys as in eval_results.txt."""

    before: dict[str, float]  # With random weights.
    after: dict[str, float]
    # Without looking at the context: `baselines` of plot_data.json.
    baselines: Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """Accuracies of a classifier, by what its training started from."""

    name: str
    learning_rate: float  # The best of the recipe on the dev sentences.
    dev: float
    test: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Classification:
    """Accuracies on sentences that were not trained on."""

    num_dev: int
    num_test: int
    num_epochs: int
    starts: Sequence[Start]
    # Always predicting the most frequent class of the training rows.
    majority_dev: float
    majority_test: float
    # Why the released encoder is not among `starts`; empty if it is.
    left_out: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilledMask:
    """A masked word and the most likely word pieces with their probabilities."""

    text: str  # With [MASK].
    word: str  # The masked word.
    before: str  # With random weights.
    after: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """The exported model's prediction for a sentence."""

    text: str
    label: str  # The true class.
    predicted: str  # The predicted class.
    probability: float  # Of the predicted class.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """The results of all stages."""

    pretraining: Pretraining
    classification: Classification
    filled_masks: list[FilledMask]
    frequent_pieces: str  # The prediction of the unigram baseline for every mask.
    answers: list[Answer]
    output_dir: str
    curves_file: str  # Image of the loss curves.
    minutes: float  # Wall time.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report: a table below a title."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    image: str | None = None  # Path of a PNG file.


def sections(outcome: Outcome) -> list[Section]:
    """Returns the parts of the report."""
    return [
        _pretraining(outcome),
        _filled_masks(outcome),
        _classification(outcome.classification),
        _answers(outcome.answers),
        _artefacts(outcome),
    ]


def text(outcome: Outcome) -> str:
    """Returns the report as text."""
    parts = [f"=== Report: {outcome.minutes:.1f} minutes ==="]
    for section in sections(outcome):
        lines = [section.title, *_aligned([section.head, *section.rows])]
        lines += [f"  {note}" for note in section.notes]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def page(outcome: Outcome) -> str:
    """Returns the report as one self-contained HTML file."""
    parts = []
    for section in sections(outcome):
        head = _html_row("th", section.head)
        rows = "".join(_html_row("td", row) for row in section.rows)
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        parts.append(f"<table>{head}{rows}</table>")
        parts += [f"<p>{html.escape(note)}</p>" for note in section.notes]
        if section.image:
            with files.open_file(section.image, "rb") as file:
                encoded = base64.b64encode(file.read()).decode("ascii")
            source = f"data:image/png;base64,{encoded}"
            parts.append(f'<img alt="{section.title}" src="{source}">')
    title = f"The demo of bert_tf: {outcome.minutes:.1f} minutes"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{title}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _pretraining(outcome: Outcome) -> Section:
    pretraining = outcome.pretraining
    rows = []
    for key, name in _SCORES.items():
        if key not in pretraining.after:  # The examples have no sentence pairs.
            continue
        baseline = pretraining.baselines.get(f"eval_{key}")
        before, after = pretraining.before[key], pretraining.after[key]
        rows.append(_score_row(name, key, (before, after), baseline))
        if key == "masked_lm_loss":
            perplexities = math.exp(before), math.exp(after)
            baseline = pretraining.baselines.get("eval_perplexity")
            rows.append(
                _score_row(
                    "masked-word perplexity", "perplexity", perplexities, baseline
                )
            )
    return Section(
        title="Held-out text, before and after pretraining",
        head=("", "before", "after", "baseline", "", ""),
        rows=rows,
        image=outcome.curves_file,
    )


def _score_row(name, key, scores, baseline):
    form = "{:.0f}" if key == "perplexity" else "{:.3f}"
    value = baseline["value"] if baseline else None
    return (
        name,
        *(form.format(score) for score in scores),
        "" if value is None else form.format(value),
        baseline["name"] if baseline else "",
        verdicts.verdict(key, scores[-1], value),
    )


def _filled_masks(outcome: Outcome) -> Section:
    rows = []
    for one in outcome.filled_masks:
        rows += [
            (one.text, ""),
            (f"  masked word: {one.word}", ""),
            ("  before pretraining", one.before),
            ("  after pretraining", one.after),
        ]
    return Section(
        title="Masked words of the held-out text",
        head=("", "most likely word pieces"),
        rows=rows,
        notes=[f"By word frequency alone, every mask is: {outcome.frequent_pieces}"],
    )


def _classification(classification: Classification) -> Section:
    majority = classification.majority_dev, classification.majority_test
    rows = [("majority class", "", f"{majority[0]:.3f}", f"{majority[1]:.3f}", "")]
    rows += [
        (
            start.name,
            f"{start.learning_rate:g}",
            f"{start.dev:.3f}",
            f"{start.test:.3f}",
            verdicts.verdict("accuracy", start.test, majority[1]),
        )
        for start in classification.starts
    ]
    notes = [
        f"Epochs: {classification.num_epochs}. The learning rate is the best of "
        f"several on the {classification.num_dev} dev sentences.",
        f"The {classification.num_test} test sentences were used only once.",
    ]
    return Section(
        title="Accuracy of the topic classifier",
        head=("start", "learning rate", "dev", "test", ""),
        rows=rows,
        notes=notes + ([classification.left_out] if classification.left_out else []),
    )


def _answers(answers: list[Answer]) -> Section:
    return Section(
        title="Predictions of the exported model",
        head=("sentence", "predicted", "probability", ""),
        rows=[
            (
                one.text,
                one.predicted,
                f"{one.probability:.3f}",
                "correct" if one.predicted == one.label else f"should be {one.label}",
            )
            for one in answers
        ],
    )


def _artefacts(outcome: Outcome) -> Section:
    made = {
        "loss curves": outcome.curves_file,
        "vocabulary": "vocab.txt",
        "pretrained model": "pretraining",
        "classifier": "topics_from_pretrained",
        "SavedModel": os.path.join("exported", "1"),
        "this report": "report.html",
    }
    return Section(
        title="Files",
        head=("", ""),
        rows=[
            (
                name,
                path if path == outcome.curves_file else f"{outcome.output_dir}/{path}",
            )
            for name, path in made.items()
        ],
    )


def _aligned(rows):
    """Returns lines of columns; empty heads are left out.

    A row with text in its first column only may be wider than that column.
    """
    rows = rows if any(rows[0]) else rows[1:]
    columns = zip(*(row for row in rows if any(row[1:])), strict=True)
    widths = [max(map(len, column)) for column in columns]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _html_row(cell, row):
    if not any(row):
        return ""
    cells = "".join(f"<{cell}>{html.escape(text)}</{cell}>" for text in row)
    return f"<tr>{cells}</tr>"
