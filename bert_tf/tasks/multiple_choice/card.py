"""What a run of multiple choice hands to its model card."""

from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.fine_tuning import model_card
from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from bert_tf.tasks.multiple_choice import run_setup
from bert_tf.training import training_facts

PIPELINE_TAG = "multiple-choice"


def card_of(
    options: multiple_choice_options.RunSwagOptions,
    setup: run_setup.RunSetup,
    *,
    training: training_facts.TrainingFacts | None = None,
    results: Mapping[str, float] | None = None,
    predicted: Sequence[int] | None = None,
) -> model_card.Card:
    """Returns the card of a run, as far as this call knows it.

    Args:
        options: `RunSwagOptions`.
        setup: `run_setup.RunSetup`.
        training: after training, its facts.
        results: after evaluating, what eval_results.txt holds.
        predicted: after evaluating, the ending chosen for each example of "dev".

    Raises:
        OSError: a file of the data cannot be read.
    """
    evaluated = None
    if results is not None and predicted is not None:
        evaluated = model_card.Evaluated(
            results=results,
            wrong=_wrong_examples(setup.examples["dev"], predicted),
            num_examples=len(predicted),
        )
    return model_card.Card(
        pipeline_tag=PIPELINE_TAG,
        summary=(
            f"Tells which of {setup.task.num_endings} endings goes on best with the "
            "start of a text."
        ),
        options=options,
        data=tuple(
            model_card.data_file(part, setup.paths[part], len(rows))
            for part, rows in setup.examples.items()
        ),
        training=training,
        evaluated=evaluated,
    )


def _wrong_examples(examples, predicted):
    return [
        model_card.WrongExample(
            text=example.start,
            expected=example.endings[example.label],
            predicted=example.endings[chosen],
        )
        for example, chosen in zip(examples, predicted, strict=True)
        if example.label != chosen
    ]
