"""What came out of the demo, for the reader."""

import dataclasses
import math
import os


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Scores on the held-out text; keys as in eval_results.txt."""

    before: dict[str, float]  # Of random weights.
    after: dict[str, float]  # Of the trained model.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Classification:
    """Accuracies on rows that were never trained on."""

    num_rows: int  # How many rows these are.
    num_epochs: int  # Passes over the training rows, the same for both starts.
    pretrained: float  # Fine-tuned from the pretrained weights.
    random: float  # Trained from random weights, with the same settings.
    majority: float  # Of always saying the commonest class of the training rows.


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilledMask:
    """What the model saw in place of a hidden word."""

    text: str  # With [MASK].
    word: str  # The word that stood there.
    predicted: str  # The likeliest pieces with their probabilities.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """What the exported model says about a sentence."""

    text: str  # The sentence.
    label: str  # Its class.
    predicted: str  # The class that the model says.
    probability: float  # What it gives that class.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Everything that is worth telling."""

    pretraining: Pretraining
    classification: Classification
    filled_masks: list[FilledMask]
    answers: list[Answer]
    output_dir: str  # Folder of all that was made.
    curves_file: str  # Picture of the losses.
    minutes: float  # Of wall time.


def text(outcome: Outcome) -> str:
    """Returns the report: a paragraph a stage, and where everything is."""
    paragraphs = [
        f"=== Report: {outcome.minutes:.1f} minutes ===",
        _pretraining(outcome.pretraining),
        _filled_masks(outcome.filled_masks),
        _classification(outcome.classification),
        _answers(outcome.answers),
        _artefacts(outcome),
    ]
    return "\n\n".join(paragraphs)


def _pretraining(pretraining):
    lines = ["Held-out text, before -> after pretraining"]
    for key, name in (
        ("masked_lm_loss", "masked-word loss"),
        ("masked_lm_accuracy", "masked-word accuracy"),
        ("next_sentence_loss", "next-sentence loss"),
        ("next_sentence_accuracy", "next-sentence accuracy"),
    ):
        if key not in pretraining.after:  # Without sentence pairs.
            continue
        before, after = pretraining.before[key], pretraining.after[key]
        lines.append(f"  {name:23} {before:8.3f} -> {after:.3f}")
    perplexities = [
        math.exp(scores["masked_lm_loss"])
        for scores in (pretraining.before, pretraining.after)
    ]
    name = "masked-word perplexity"
    lines.append(f"  {name:23} {perplexities[0]:8.0f} -> {perplexities[1]:.0f}")
    return "\n".join(lines)


def _filled_masks(filled_masks):
    lines = ["Hidden words of the held-out text"]
    for one in filled_masks:
        lines += [f"  {one.text}", f"    was {one.word!r}; likeliest: {one.predicted}"]
    return "\n".join(lines)


def _classification(classification):
    return "\n".join(
        [
            f"Accuracy on {classification.num_rows} sentences never trained on, after "
            f"{classification.num_epochs} epochs",
            f"  majority class      {classification.majority:.3f}",
            f"  random weights      {classification.random:.3f}",
            f"  pretrained weights  {classification.pretrained:.3f}",
        ]
    )


def _answers(answers):
    lines = ["Answers of the exported model"]
    for one in answers:
        verdict = "right" if one.predicted == one.label else f"it is {one.label}"
        lines.append(f"  {one.text}")
        lines.append(f"    {one.predicted} {one.probability:.3f} ({verdict})")
    return "\n".join(lines)


def _artefacts(outcome):
    made = {
        "loss curves": outcome.curves_file,
        "vocabulary": "vocab.txt",
        "pretrained model": "pretraining",
        "classifier": "topics_from_pretrained",
        "SavedModel": os.path.join("exported", "1"),
        "this report": "report.txt",
    }
    lines = ["Where it is"]
    for name, path in made.items():
        whole = path if path == outcome.curves_file else f"{outcome.output_dir}/{path}"
        lines.append(f"  {name:18} {whole}")
    return "\n".join(lines)
