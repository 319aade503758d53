"""The model card of a run: README.md in its output_dir, for the Hugging Face Hub.

Each task describes its run as a `Card`. The facts are kept next to the text, in
model_card.json, so that a later evaluation can complete the card.
"""

import dataclasses
import hashlib
import json
import logging
import os
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
from bert_tf.training import run_file
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)

FACTS_FILE = "model_card.json"
CARD_FILE = "README.md"
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


def write(folder: run_folder.RunFolder, card: Card) -> str | None:
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
