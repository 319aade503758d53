"""The model card of a run: README.md in its output_dir, in Hugging Face's form.

It knows no task: tasks hand it a `Card`. What one call knows is kept beside the text,
in model_card.json, so that an evaluation that comes later completes the card.
"""

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.fine_tuning import card_text
from bert_tf.training import training_facts

logger = logging.getLogger(__name__)

FACTS_FILE = "model_card.json"
CARD_FILE = "README.md"
MAX_WRONG_EXAMPLES = 10
_BYTES_PER_READ = 1 << 20
# In the order of the card; "corpus" is what is searched.
_PARTS = ("train", "dev", "test", "corpus")
# The last line of a card says what was written, so that edits by hand are seen.
_SEAL = "<!-- bert_tf wrote all of the above: sha256 {} -->\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file that the run read, or a part of a data set known by its name."""

    # One of `_PARTS`, or one that starts with "dev_" or "test_".
    part: str
    name: str  # The file's name, without folders.
    num_examples: int
    sha256: str | None  # Of its bytes; None of a data set known by its name.


@dataclasses.dataclass(frozen=True, kw_only=True)
class WrongExample:
    """An example of the evaluation that the model got wrong."""

    text: str  # What the model saw, as a reader would write it.
    expected: str
    predicted: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluated:
    """What an evaluation found."""

    results: Mapping[str, float]  # As in eval_results.txt.
    wrong: Sequence[WrongExample]  # The card shows the first ten.
    num_examples: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recorded:
    """What the card of a run says that another run started from."""

    base_model: str | None  # Its init_checkpoint.
    data: tuple[DataFile, ...]  # Of its training.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
    """What a task knows about its run; what is empty, this call does not know."""

    pipeline_tag: str  # Hugging Face's name of the task: "text-classification".
    summary: str  # One sentence: what the model does.
    options: options_module.Options  # The tool's record.
    labels: tuple[str, ...] = ()  # Names of the classes.
    languages: tuple[str, ...] = ()  # ISO codes.
    data: tuple[DataFile, ...] = ()
    training: training_facts.TrainingFacts | None = None
    evaluated: Evaluated | None = None


def data_file(part: str, path: str, num_examples: int) -> DataFile:
    """Returns the record of a file; reads it for its checksum.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with files.open_file(path, "rb") as file:
        while block := file.read(_BYTES_PER_READ):
            digest.update(block)
    return DataFile(
        part=part,
        name=os.path.basename(path),
        num_examples=num_examples,
        sha256=digest.hexdigest(),
    )


def recorded(run_dir: str) -> Recorded | None:
    """Returns what the card of a trained run says; None where there is no card.

    Raises:
        ValueError: model_card.json is damaged.
        OSError: it cannot be read.
    """
    facts = _read(os.path.join(run_dir, FACTS_FILE))
    if facts is None:
        return None
    return Recorded(
        base_model=facts["base_model"],
        data=tuple(
            DataFile(**file) for file in facts["data"] if file["part"] == "train"
        ),
    )


def write(output_dir: str, card: Card) -> str | None:
    """Writes README.md of a run, or completes it.

    Args:
        output_dir: the run's folder.
        card: what this call knows; what an earlier one knew is kept, but for the
            scores of another number of steps.

    Returns:
        The card's path. None where nothing was written: the folder's model was not
        trained by a run with a card, or somebody edited the card.

    Raises:
        OSError: a file cannot be written.
    """
    facts_path = os.path.join(output_dir, FACTS_FILE)
    earlier = _read(facts_path)
    if earlier is None and card.training is None:
        return None
    return _write(output_dir, _merged(earlier or {}, _facts(card)))


def rewrite_scores(
    output_dir: str, scores: Mapping[str, tuple[float, ...]]
) -> str | None:
    """Gives a card other scores, such as those of several restarts.

    Args:
        output_dir: the run's folder.
        scores: score -> its values, one a restart.

    Returns:
        As `write`; None too where there is no card.

    Raises:
        OSError: a file cannot be written.
    """
    facts = _read(os.path.join(output_dir, FACTS_FILE))
    if facts is None:
        return None
    return _write(
        output_dir, facts | {"scores": {name: list(v) for name, v in scores.items()}}
    )


def _write(output_dir, facts):
    """Writes facts and text; returns the text's path, or None where it was edited."""
    with files.complete_or_absent(os.path.join(output_dir, FACTS_FILE)) as file:
        file.write(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    path = os.path.join(output_dir, CARD_FILE)
    if _is_edited(path):
        logger.warning("%s was written or edited by hand and stays as it is.", path)
        return None
    name = os.path.basename(os.path.abspath(output_dir))
    text = card_text.text_of(name, facts)
    with files.complete_or_absent(path) as file:
        file.write(text + _seal(text))
    return path


def _facts(card):
    """Returns a card as the values that model_card.json holds."""
    facts = dataclasses.asdict(dataclasses.replace(card, evaluated=None))
    del facts["options"], facts["evaluated"]
    facts |= _evaluation_facts(card.evaluated)
    facts["settings"] = card_text.settings(card.options)
    facts["base_model"] = card.options.init_checkpoint
    return json.loads(json.dumps(facts))


def _evaluation_facts(evaluated):
    if evaluated is None:
        counts = dict.fromkeys(("num_wrong", "num_evaluated"))
        return {"scores": {}, "wrong_examples": []} | counts
    return {
        # A list, because a search over restarts records a value of each.
        "scores": {name: [value] for name, value in evaluated.results.items()},
        "wrong_examples": [
            dataclasses.asdict(wrong) for wrong in evaluated.wrong[:MAX_WRONG_EXAMPLES]
        ],
        "num_wrong": len(evaluated.wrong),
        "num_evaluated": evaluated.num_examples,
    }


def _merged(earlier, facts):
    """Returns facts with what was known earlier and is not known now."""
    training, before = facts["training"], earlier.get("training")
    if training is None:
        # Evaluating has other settings than the training that the card is about.
        kept = ("training", "settings", "base_model", "data", "languages")
        merged = earlier | {key: value for key, value in facts.items() if value}
        merged |= {key: earlier[key] for key in kept}
        merged["data"] = _merged_data(earlier["data"], facts["data"])
        merged["scores"] = _merged_scores(earlier, facts)
    else:
        if before and before["num_steps"] != training["num_steps"]:
            for key in ("scores", "wrong_examples", "num_wrong", "num_evaluated"):
                earlier.pop(key, None)
        if before and training["examples_per_second"] is None:
            training["examples_per_second"] = before["examples_per_second"]
        merged = earlier | {key: value for key, value in facts.items() if value}
        merged["data"] = _merged_data(earlier.get("data", []), facts["data"])
        merged["base_model"] = facts["base_model"]
    if facts["num_evaluated"]:  # None wrong is news too.
        merged |= {key: facts[key] for key in ("wrong_examples", "num_wrong")}
    return {key: merged.get(key) for key in facts}


def _merged_scores(earlier, facts):
    """Returns the scores of now; of several restarts', if they are no other ones.

    Their model is the best of the restarts, whose score says less than all of them.
    """
    scores, before = facts["scores"], earlier["scores"] or {}
    is_same_step = scores.get("global_step") == [earlier["training"]["num_steps"]]
    if not is_same_step or _dev_files(earlier) != _dev_files(facts):
        return scores or before
    return scores | {name: v for name, v in before.items() if len(v) > 1}


def _dev_files(facts):
    return [file for file in facts["data"] if file["part"].startswith("dev")]


def _merged_data(earlier, data):
    """Returns the files of all parts, those of now before those of earlier."""
    now = {file["part"] for file in data}
    return sorted(
        [*data, *(file for file in earlier if file["part"] not in now)],
        key=lambda file: _PARTS.index(file["part"].split("_")[0]),
    )


def _read(path):
    if not files.exists(path):
        return None
    with files.open_file(path) as file:
        try:
            return json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path} is no JSON ({error}); remove it to have the model card made "
                "anew."
            ) from None


def _is_edited(path):
    if not files.exists(path):
        return False
    with files.open_file(path) as file:
        lines = file.read().splitlines(keepends=True)
    return not lines or lines[-1] != _seal("".join(lines[:-1]))


def _seal(text):
    return _SEAL.format(hashlib.sha256(text.encode("utf-8")).hexdigest())
