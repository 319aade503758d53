"""The text of a model card: Markdown with the front matter of the Hugging Face Hub.

Fields that a run cannot fill in, such as licenses, contain "to fill in".
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import options as options_module
from bert_tf.training import run_settings

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
# Settings without influence on the model. Files and folders are listed elsewhere.
NEVER_SHOWN = (*run_settings.WITHOUT_EFFECT, "init_checkpoint")
MAX_CHARACTERS = 200
# Entries of eval_results.txt that are not scores.
_COUNTS = ("global_step", "loss")
_HUB_PREFIX = "hf://"
_NO_BASE = "none; the weights were initialized randomly"


def settings(
    options: options_module.Options, earlier: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Returns the options that a card shows as training settings, by name.

    Args:
        options: options of the last steps.
        earlier: flags that differed in earlier steps; see `RunFolder.earlier_settings`.
    """
    values = run_settings.flags_of(options)
    changes: dict[str, list[str]] = {}
    for part in earlier:
        for name, value in part["flags"].items():
            text = f"{_text(value)} until step {part['until_step']}"
            changes.setdefault(name, []).append(text)
    shown: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        name = field.name
        is_default = getattr(options, name) == field.default
        if name in NEVER_SHOWN or name.endswith(("_file", "_dir")):
            continue
        if name in ALWAYS_SHOWN or name in changes or not is_default:
            shown[name] = values[name]
        if name in changes:
            shown[name] = f"{_text(values[name])} ({'; '.join(changes[name])})"
    return shown


def render(name: str, facts: Mapping[str, Any]) -> str:
    """Returns the text of the card.

    Args:
        name: of the run.
        facts: contents of model_card.json; see `model_card`.
    """
    sections = [
        _front_matter(facts),
        f"# {name}",
        facts["summary"],
        _overview(facts),
        "## Data",
        _data(facts),
        *map(_escaped, facts.get("training_data") or ()),
        "## Training",
        _table(("setting", "value"), facts["settings"].items()),
        "## Scores",
        _scores(facts),
        *_wrong_examples(facts),
        "## Speed and hardware",
        _hardware(facts["training"]),
        "## Use",
        f'```python\nimport bert_tf\n\nmodel = bert_tf.load("{name}")\n```',
        "## License and limits",
        "- License of this model: to fill in.\n"
        "- License of the data: to fill in.\n"
        "- Intended use and limits: to fill in.\n"
        "- Known limits of every BERT model, such as bias and outdated facts: "
        "docs/responsible_use.md of bert_tf.",
    ]
    return "\n\n".join(sections) + "\n\n"


def _front_matter(facts):
    languages = facts["languages"] or ()
    lines = [
        "language:" + ("" if languages else "  # To fill in: ISO code, such as en.")
    ]
    lines += [f"- {_quoted(language)}" for language in languages]
    lines += ["license:  # To fill in: its name, such as apache-2.0."]
    lines += ["library_name: bert_tf", f"pipeline_tag: {facts['pipeline_tag']}"]
    if base_model := _base_name(facts["base_model"]):
        # A model on the hub without its revision.
        lines += [f"base_model: {_quoted(base_model.partition('@')[0])}"]
    lines += ["tags:", "- bert", "- tensorflow"]
    names = [
        key.removeprefix("eval_").removeprefix("test_") for key in _shown_scores(facts)
    ]
    metrics = [name for name in dict.fromkeys(names) if name != "loss"]
    if metrics:
        lines += ["metrics:", *(f"- {name}" for name in metrics)]
    return "\n".join(["---", *lines, "---"])


def _overview(facts):
    training = facts["training"]
    count = f"{training['num_parameters']:,}"
    if training["num_trained_parameters"] != training["num_parameters"]:
        count += f", {training['num_trained_parameters']:,} of them trained"
    rows = [
        ("task", facts["pipeline_tag"]),
        ("base checkpoint", _base_name(facts["base_model"]) or _NO_BASE),
        ("parameters", count),
    ]
    if facts["labels"]:
        rows.insert(1, ("classes", ", ".join(facts["labels"])))
    return _table(("", ""), rows)


def _data(facts):
    if not facts["data"]:
        return "The data files were not recorded."
    rows = [
        (
            file["part"],
            file["name"],
            f"{file['num_examples']:,}",
            file["sha256"] or "no file",
        )
        for file in facts["data"]
    ]
    return _table(("part", "file", "examples", "SHA-256"), rows)


def _scores(facts):
    shown = _shown_scores(facts)
    if not shown:
        return "Not evaluated yet. --do_eval adds the scores."
    rows = [(name, _with_spread(values)) for name, values in shown.items()]
    counted = facts["num_evaluated"]
    head = f"On {counted:,} examples.\n\n" if counted else ""
    return head + _table(("score", "value"), rows)


def _shown_scores(facts):
    scores = facts["scores"] or {}
    return {name: scores[name] for name in sorted(scores) if name not in _COUNTS}


def _with_spread(values):
    if len(values) == 1:
        return f"{values[0]:.4f}"
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    each = ", ".join(f"{value:.4f}" for value in values)
    return f"{mean:.4f} ± {math.sqrt(variance):.4f} over {len(values)} runs ({each})"


def _wrong_examples(facts):
    wrong, counted = facts["num_wrong"], facts["num_evaluated"]
    if None in (wrong, counted):
        return []
    examples = facts["wrong_examples"] or ()
    sentence = f"{wrong:,} of {counted:,} evaluated examples are wrong"
    sentence += f"; {len(examples)} of them:" if examples else "."
    rows = [(e["text"], e["expected"], e["predicted"]) for e in examples]
    table = [_table(("text", "expected", "predicted"), rows)] if rows else []
    return ["## Wrong examples", sentence, *table]


def _hardware(training):
    speed = training["examples_per_second"]
    rows = [
        ("devices", training["devices"]),
        ("optimizer steps", f"{training['num_steps']:,}"),
        ("training speed", f"{speed:.1f} examples/s" if speed else "not measured"),
        ("trained on", training["date"]),
    ]
    versions = training["versions"]
    rows += [(name, versions[name]) for name in versions if versions[name]]
    return _table(("", ""), rows)


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value):
    """Returns a value as one line of text, with Markdown characters escaped."""
    text = " ".join(_text(value).split())
    if len(text) > MAX_CHARACTERS:
        text = text[: MAX_CHARACTERS - 1] + "…"
    return _escaped(text)


def _escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def _text(value):
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _base_name(path):
    """Returns the name of a checkpoint: that of its folder, or its own."""
    if (path or "").startswith(_HUB_PREFIX):
        return path.removeprefix(_HUB_PREFIX)
    folder, name = os.path.split(run_settings.short_name(path or ""))
    is_prefix = name.endswith(".ckpt") or "model.ckpt" in name
    return (folder or name) if is_prefix else os.path.join(folder, name)


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)
