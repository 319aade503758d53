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

from bert_tf import files
from bert_tf import json_values
from bert_tf import locks
from bert_tf.fine_tuning import card_text
from bert_tf.training import options as training_options
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import run_settings
from bert_tf.training import training_facts

logger = logging.getLogger(__name__)

FACTS_FILE = "model_card.json"
CARD_FILE = "README.md"
WRONG_EXAMPLES_FILE = "wrong_examples.jsonl"
MAX_WRONG_EXAMPLES = 10
# In the order of the card. "corpus" is the corpus of a retrieval model.
_PARTS = ("train", "dev", "test", "corpus")
# See `json_values.unexpected`.
_FILE_SHAPE = {
    "part": lambda part: str(part).split("_")[0] in _PARTS,
    "name": str,
    "num_examples": int,
    "sha256": str | None,
}
_FACTS_SHAPE = {
    "pipeline_tag": str,
    "summary": str,
    "labels": (None, [str]),
    "languages": (None, [str]),
    "base_model": str | None,
    "data": (None, [_FILE_SHAPE]),
    "training_data?": (None, [str]),  # Cards of earlier versions have none.
    "settings": dict,
    "scores": (None, {str: [int | float | None]}),
    "wrong_examples": (None, [{"text": str, "expected": str, "predicted": str}]),
    "num_wrong": int | None,
    "num_evaluated": int | None,
    "training": {
        "num_parameters": int,
        "num_trained_parameters": int,
        "num_steps": int,
        "examples_per_second": int | float | None,
        "devices": str,
        "versions": {str: str | None},
        "date": str,
    },
}
# The last line of a card contains its checksum, which reveals manual edits.
_SEAL = "<!-- bert_tf wrote all of the above: sha256 {} -->\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file that the run read, or a part of a published data set."""

    # One of `_PARTS`, or a name that begins with "dev_" or "test_".
    part: str
    name: str  # Without folders.
    num_examples: int
    sha256: str | None  # Of the file. None for a published data set.


@dataclasses.dataclass(frozen=True, kw_only=True)
class WrongExample:
    """An example that the model answered incorrectly."""

    text: str  # Readable form of the model's input.
    expected: str
    predicted: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluated:
    """The results of an evaluation."""

    results: Mapping[str, float]  # Contents of eval_results.txt.
    wrong: Sequence[WrongExample]
    num_examples: int
    # What was evaluated. None: the run's own data.
    data_set: result_files.DataSet | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recorded:
    """Facts from the card of a run that another run started from."""

    base_model: str | None  # The init_checkpoint of that run.
    data: tuple[DataFile, ...]  # The training data of that run.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
    """The facts of a task about its run. Empty fields are unknown to this call."""

    pipeline_tag: str  # Task name on the Hub, such as "text-classification".
    summary: str  # One sentence that says what the model does.
    options: training_options.FineTuningOptions
    labels: tuple[str, ...] = ()  # Names of the classes.
    languages: tuple[str, ...] = ()  # ISO codes.
    data: tuple[DataFile, ...] = ()
    training: training_facts.TrainingFacts | None = None
    training_data: tuple[str, ...] = ()  # Sentences about labels and lengths.
    evaluated: Evaluated | None = None


def data_file(
    part: str,
    path: str,
    num_examples: int,
    data_set: result_files.DataSet | None = None,
) -> DataFile:
    """Returns the record of a file, with its checksum.

    Args:
        part: see `DataFile`.
        path: of the file.
        num_examples: number of examples read from the file.
        data_set: contains the file, and stores its checksum from when it was read.

    Raises:
        OSError: the file cannot be read.
    """
    data_set = data_set or result_files.file_data_set(path)
    return DataFile(
        part=part,
        name=os.path.basename(path),
        num_examples=num_examples,
        sha256=data_set.sha256(path),
    )


def recorded(run_dir: str) -> Recorded | None:
    """Returns facts from the card of a run; None if there is no card.

    Raises:
        ValueError: model_card.json is damaged.
        OSError: model_card.json cannot be read.
    """
    facts = facts_of(run_dir)
    if facts is None:
        return None
    return Recorded(
        base_model=facts["base_model"],
        data=tuple(
            DataFile(**file) for file in facts["data"] if file["part"] == "train"
        ),
    )


def facts_of(run_dir: str) -> dict[str, Any] | None:
    """Returns the contents of model_card.json of a run; None if there is none.

    Raises:
        ValueError: model_card.json is damaged.
        OSError: model_card.json cannot be read.
    """
    return _read(os.path.join(run_dir, FACTS_FILE))


def write(folder: run_folder.RunFolder, card: Card) -> str | None:
    """Writes or completes README.md of a run, and lists the wrong examples.

    The card contains the data and settings of the steps that were trained, and the
    scores on the run's own data. Wrong examples are in wrong_examples.jsonl, because
    they may be private. The card shows some of them if `options.card_examples` is set.

    Args:
        folder: of the run.
        card: facts about this call. Only a call that trained replaces the facts about
            the training.

    Returns:
        The path of the card. None if it was not written: the model in the folder was
        trained without a card, other data was evaluated, the card was edited manually,
        or this process is not the chief.

    Raises:
        OSError: a file cannot be written.
    """
    if not folder.is_written:
        return None
    with _locked(folder):
        earlier = _read(os.path.join(folder.path, FACTS_FILE))
        if earlier is None and card.training is None:
            return None
        if card.evaluated is not None and _write_wrong_examples(folder, card.evaluated):
            return None
        facts = _facts(card, folder)
        return _write(folder.path, _merged(earlier or {}, facts))


def rewrite_scores(
    folder: run_folder.RunFolder, scores: Mapping[str, tuple[float, ...]]
) -> str | None:
    """Replaces the scores of a card, for example by those of several restarts.

    Args:
        folder: of the run.
        scores: values of each score, one per restart.

    Returns:
        The path of the card. None if there is none, if it was edited manually, or if
        this process is not the chief.

    Raises:
        OSError: a file cannot be written.
    """
    if not folder.is_written:
        return None
    with _locked(folder):
        facts = _read(os.path.join(folder.path, FACTS_FILE))
        if facts is None:
            return None
        values = {name: list(v) for name, v in scores.items()}
        return _write(folder.path, facts | {"scores": values})


def _locked(folder):
    """Locks the card, so that no other process changes it meanwhile."""
    path = os.path.join(folder.path, FACTS_FILE)
    return locks.output_file(path, flag="output_dir", waits=True)


def _write(output_dir, facts):
    """Writes facts and text. Returns the path of the text; None if it was edited."""
    with files.complete_or_absent(os.path.join(output_dir, FACTS_FILE)) as file:
        text = json.dumps(json_values.with_null(facts), indent=2, ensure_ascii=False)
        file.write(text + "\n")
    path = os.path.join(output_dir, CARD_FILE)
    if _is_edited(path):
        logger.warning("%s was written or edited manually; it is not changed.", path)
        return None
    name = os.path.basename(os.path.abspath(output_dir))
    text = card_text.render(name, facts)
    with files.complete_or_absent(path) as file:
        file.write(text + _seal(text))
    return path


def _write_wrong_examples(folder, evaluated):
    """Writes the wrong examples. Returns the suffix of the file; see `result_files`."""
    suffix = ""
    if evaluated.data_set is not None:
        suffix = folder.record_data_set(
            run_folder.EVAL_RESULTS_FILE, evaluated.data_set
        )
    name = result_files.with_suffix(WRONG_EXAMPLES_FILE, suffix)
    with files.complete_or_absent(os.path.join(folder.path, name)) as file:
        for wrong in evaluated.wrong:
            record = dataclasses.asdict(wrong)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return suffix


def _facts(card: Card, folder: run_folder.RunFolder) -> dict[str, Any]:
    """Returns the contents of model_card.json."""
    run = result_files.read_run(folder.path)
    facts = dataclasses.asdict(dataclasses.replace(card, evaluated=None))
    del facts["options"], facts["evaluated"]
    facts |= _evaluation_facts(card.evaluated)
    if not card.options.card_examples:
        facts["wrong_examples"] = []
    facts["settings"] = card_text.settings(card.options, folder.earlier_settings())
    start = card.options.init_checkpoint
    facts["base_model"] = run.get("hub_name") or (
        start and run_settings.short_name(start)
    )
    return json.loads(json.dumps(facts))


def _evaluation_facts(evaluated):
    if evaluated is None:
        counts = dict.fromkeys(("num_wrong", "num_evaluated"))
        return {"scores": {}, "wrong_examples": []} | counts
    return {
        # A list, because a search over restarts records one value per restart.
        "scores": {name: [value] for name, value in evaluated.results.items()},
        "wrong_examples": [
            dataclasses.asdict(wrong) for wrong in evaluated.wrong[:MAX_WRONG_EXAMPLES]
        ],
        "num_wrong": len(evaluated.wrong),
        "num_evaluated": evaluated.num_examples,
    }


def _merged(earlier, facts):
    """Returns the new facts, completed by earlier ones."""
    training, before = facts["training"], earlier.get("training")
    is_measured = training is not None and training["examples_per_second"] is not None
    if before and not is_measured:
        if training is None or training["num_steps"] == before["num_steps"]:
            return _with_evaluation(earlier, facts)
        training["examples_per_second"] = before["examples_per_second"]
    return facts


def _with_evaluation(earlier, facts):
    """Returns earlier facts and the evaluation of a call that took no step."""
    merged = {key: earlier.get(key) for key in facts}
    if facts["num_evaluated"] is None:
        return merged
    merged["scores"] = _merged_scores(earlier, facts)
    evaluated = [file for file in facts["data"] if file["part"] != "train"]
    merged["data"] = _merged_data(earlier["data"], evaluated)
    for key in ("wrong_examples", "num_wrong", "num_evaluated"):
        merged[key] = facts[key]
    return merged


def _merged_scores(earlier, facts):
    """Returns the new scores, but keeps those of several restarts of this model.

    The model is the best of the restarts, so its own score is optimistic. The scores of
    all restarts say more, and remain unless the steps or the development set changed.
    """
    scores, before = facts["scores"], earlier["scores"]
    is_same_step = scores.get("global_step") == [earlier["training"]["num_steps"]]
    if not is_same_step or _dev_files(earlier) != _dev_files(facts):
        return scores or before
    return scores | {name: v for name, v in before.items() if len(v) > 1}


def _dev_files(facts):
    return [file for file in facts["data"] if file["part"].startswith("dev")]


def _merged_data(earlier, data):
    """Returns the files of all parts. New files replace earlier ones."""
    now = {file["part"] for file in data}
    return sorted(
        [*data, *(file for file in earlier if file["part"] not in now)],
        key=lambda file: _PARTS.index(file["part"].split("_")[0]),
    )


def _read(path):
    if not files.exists(path):
        return None
    advice = "remove it to create a new model card"
    facts = files.read_json(path, advice=advice, shape=_FACTS_SHAPE)
    scores = {
        name: list(map(json_values.nan_if_null, values))
        for name, values in (facts["scores"] or {}).items()
    }
    return {**facts, "scores": scores, "data": facts["data"] or []}


def _is_edited(path):
    if not files.exists(path):
        return False
    with files.open_file(path) as file:
        lines = file.read().splitlines(keepends=True)
    return not lines or lines[-1] != _seal("".join(lines[:-1]))


def _seal(text):
    return _SEAL.format(hashlib.sha256(text.encode("utf-8")).hexdigest())
