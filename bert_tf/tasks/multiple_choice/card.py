"""The model card of a multiple choice run."""

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
    training_data: Sequence[str] = (),
    results: Mapping[str, float] | None = None,
    predicted: Sequence[int] | None = None,
) -> model_card.Card:
    """Returns the parts of the card that this call can fill in.

    Args:
        options: of the run.
        setup: of the run.
        training: facts about the training, if the run trained.
        training_data: sentences about the labels and lengths of the training examples.
        results: contents of eval_results.txt, if the run was evaluated.
        predicted: index of the chosen ending of each example of "dev", if the run was
            evaluated.

    Raises:
        OSError: a data file cannot be read.
    """
    evaluated = None
    if results is not None and predicted is not None:
        evaluated = model_card.Evaluated(
            results=results,
            data_set=setup.data_sets["dev"],
            wrong=_wrong_examples(setup.examples["dev"], predicted),
            num_examples=len(predicted),
        )
    return model_card.Card(
        pipeline_tag=PIPELINE_TAG,
        summary=(
            f"Chooses the most plausible of {setup.task.num_endings} endings for the "
            "start of a text."
        ),
        options=options,
        data=tuple(
            setup.data_file(part, setup.paths[part], len(rows))
            for part, rows in setup.examples.items()
        ),
        training=training,
        training_data=tuple(training_data),
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
