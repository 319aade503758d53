"""The report at the end of the demo."""

import dataclasses
import math
import os


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Scores on the held-out text; keys as in eval_results.txt."""

    before: dict[str, float]  # With random weights.
    after: dict[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Classification:
    """Accuracies on held-out rows."""

    num_rows: int
    num_epochs: int  # The same for both starting points.
    pretrained: float  # Fine-tuned from the pretrained weights.
    random: float  # Trained from random weights with the same settings.
    majority: float  # Always predicting the most frequent class of the training rows.


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilledMask:
    """A masked word and the model's prediction."""

    text: str  # With [MASK].
    word: str  # The masked word.
    predicted: str  # The most likely word pieces with their probabilities.


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
    answers: list[Answer]
    output_dir: str
    curves_file: str  # Image of the loss curves.
    minutes: float  # Wall time.


def text(outcome: Outcome) -> str:
    """Returns the report: one paragraph per stage and a list of all files."""
    paragraphs = [
        f"=== Report: {outcome.minutes:.1f} minutes ===",
        _pretraining(outcome.pretraining),
        _filled_masks(outcome.filled_masks),
        _classification(outcome.classification),
        _answers(outcome.answers),
        _artefacts(outcome),
    ]
    return "\n\n".join(paragraphs)


def _pretraining(pretraining: Pretraining) -> str:
    lines = ["Held-out text, before -> after pretraining"]
    for key, name in (
        ("masked_lm_loss", "masked-word loss"),
        ("masked_lm_accuracy", "masked-word accuracy"),
        ("next_sentence_loss", "next-sentence loss"),
        ("next_sentence_accuracy", "next-sentence accuracy"),
    ):
        if key not in pretraining.after:  # The examples have no sentence pairs.
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


def _filled_masks(filled_masks: list[FilledMask]) -> str:
    lines = ["Masked words of the held-out text"]
    for one in filled_masks:
        lines += [
            f"  {one.text}",
            f"    was {one.word!r}; most likely: {one.predicted}",
        ]
    return "\n".join(lines)


def _classification(classification: Classification) -> str:
    return "\n".join(
        [
            f"Accuracy on {classification.num_rows} held-out sentences after "
            f"{classification.num_epochs} epochs",
            f"  majority class      {classification.majority:.3f}",
            f"  random weights      {classification.random:.3f}",
            f"  pretrained weights  {classification.pretrained:.3f}",
        ]
    )


def _answers(answers: list[Answer]) -> str:
    lines = ["Predictions of the exported model"]
    for one in answers:
        verdict = "correct" if one.predicted == one.label else f"should be {one.label}"
        lines.append(f"  {one.text}")
        lines.append(f"    {one.predicted} {one.probability:.3f} ({verdict})")
    return "\n".join(lines)


def _artefacts(outcome: Outcome) -> str:
    made = {
        "loss curves": outcome.curves_file,
        "vocabulary": "vocab.txt",
        "pretrained model": "pretraining",
        "classifier": "topics_from_pretrained",
        "SavedModel": os.path.join("exported", "1"),
        "this report": "report.txt",
    }
    lines = ["Files"]
    for name, path in made.items():
        whole = path if path == outcome.curves_file else f"{outcome.output_dir}/{path}"
        lines.append(f"  {name:18} {whole}")
    return "\n".join(lines)
