"""The content of the model card of a token classification run."""

from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.fine_tuning import model_card
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tasks.token_classification import run_setup
from bert_tf.tasks.token_classification import schemes
from bert_tf.training import training_facts

PIPELINE_TAG = "token-classification"


def card_of(
    options: token_classification_options.RunNerOptions,
    setup: run_setup.RunSetup,
    *,
    training: training_facts.TrainingFacts | None = None,
    results: Mapping[str, float] | None = None,
    predicted: Sequence[Sequence[str]] | None = None,
) -> model_card.Card:
    """Returns the parts of a run's model card that are known so far.

    An example is a sentence. It is wrong if any of its tags is wrong.

    Args:
        options: the options of the run.
        setup: its data and task.
        training: facts about the training, once it is finished.
        results: the content of eval_results.txt, once it is written.
        predicted: the predicted tags of each sentence of "dev".

    Raises:
        OSError: a data file cannot be read.
    """
    task = setup.task
    evaluated = None
    if results is not None and predicted is not None:
        evaluated = model_card.Evaluated(
            results=results,
            data_set=setup.data_sets["dev"],
            wrong=_wrong_examples(setup.sentences["dev"], predicted),
            num_examples=len(predicted),
        )
    summary = f"Gives every word one of {len(task.labels)} tags."
    if task.tag_scheme != schemes.NONE:
        kinds = sorted({schemes.split_tag(tag)[1] for tag in task.labels} - {""})
        summary = f"Finds entities of {len(kinds)} types: {', '.join(kinds)}."
    return model_card.Card(
        pipeline_tag=PIPELINE_TAG,
        summary=summary,
        labels=task.labels,
        options=options,
        data=tuple(
            setup.data_file(part, run_setup.path_of(options, part), len(sentences))
            for part, sentences in setup.sentences.items()
        ),
        training=training,
        evaluated=evaluated,
    )


def _wrong_examples(sentences, predicted):
    return [
        model_card.WrongExample(
            text=" ".join(sentence.words),
            expected=_tagged(sentence.words, sentence.tags),
            predicted=_tagged(sentence.words, tags),
        )
        for sentence, tags in zip(sentences, predicted, strict=True)
        if list(sentence.tags) != list(tags)
    ]


def _tagged(words, tags):
    """Returns the words in entities, such as "Rome/B-LOC"; "O" if there are none."""
    pairs = zip(words, tags, strict=True)
    found = [f"{word}/{tag}" for word, tag in pairs if tag != schemes.OUTSIDE]
    return " ".join(found) or schemes.OUTSIDE
