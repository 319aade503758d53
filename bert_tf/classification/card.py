"""What a run of classification hands to its model card."""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf.classification import examples as examples_module
from bert_tf.training import model_card

PIPELINE_TAG = "text-classification"


def card_of(
    options,
    inputs,
    examples: Mapping[str, Sequence[examples_module.InputExample]],
    *,
    training: model_card.TrainingFacts | None = None,
    results: Mapping[str, float] | None = None,
    predicted: Sequence[str] | None = None,
) -> model_card.Card:
    """Returns the card of a run, as far as this call knows it.

    Args:
        options: `RunClassifierOptions`.
        inputs: `inputs.Inputs`.
        examples: "train", "dev", "test" -> the examples that were read.
        training: after training, its facts.
        results: after evaluating, what eval_results.txt holds.
        predicted: after evaluating, the class found for each example of "dev".

    Raises:
        OSError: a file of the data cannot be read.
    """
    task = inputs.task
    kind = "a pair of texts" if task.is_pair else "a text"
    of_task = f" ({task.task_name.upper()})" if task.task_name else ""
    paths = inputs.processor.get_files(options.data_dir)
    wrong = _wrong_examples(examples["dev"], predicted) if predicted else []
    return model_card.Card(
        pipeline_tag=PIPELINE_TAG,
        summary=f"Tells which of {len(task.labels)} classes {kind} has{of_task}.",
        labels=task.labels,
        options=options,
        data=tuple(
            model_card.data_file(part, paths[part], len(rows))
            for part, rows in examples.items()
            if part in paths
        ),
        scores={name: (value,) for name, value in (results or {}).items()},
        wrong_examples=tuple(wrong),
        num_wrong=len(wrong) if predicted else None,
        num_evaluated=len(predicted) if predicted else None,
        training=training,
    )


def names_of(logits: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Returns the likeliest class of each row of float [N, C]."""
    return [labels[index] for index in np.argmax(logits, axis=-1)]


def _wrong_examples(examples, predicted):
    return [
        model_card.WrongExample(
            text=" ||| ".join(filter(None, (example.text_a, example.text_b))),
            expected=example.label,
            predicted=label,
        )
        for example, label in zip(examples, predicted, strict=True)
        if example.label != label
    ]
