"""The content of a retrieval run's model card."""

from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.fine_tuning import model_card
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import run_setup
from bert_tf.training import training_facts

_ABOUT = {
    True: (
        "sentence-similarity",
        "Computes one vector per text. The passages whose vectors are nearest to the "
        "vector of a query answer it.",
    ),
    False: (
        "text-ranking",
        "Reads a query and a passage together and scores how well the passage answers "
        "the query.",
    ),
}


def card_of(
    options: retrieval_options.RunRetrievalOptions,
    setup: run_setup.RunSetup,
    *,
    training: training_facts.TrainingFacts | None = None,
    training_data: Sequence[str] = (),
    results: Mapping[str, float] | None = None,
    firsts: Mapping[str, int] | None = None,
) -> model_card.Card:
    """Returns the card of a run, with the parts that are known at this point.

    Args:
        options: options of the run.
        setup: setup of the run.
        training: facts about the training; given after training.
        training_data: sentences about the lengths of the training texts; given after
            training.
        results: content of eval_results.txt; given after evaluation.
        firsts: query -> index of the passage ranked first; given after evaluation.

    Raises:
        OSError: a data file cannot be read.
    """
    pipeline_tag, summary = _ABOUT[setup.task.is_bi_encoder]
    evaluated = None
    if results is not None and firsts is not None:
        evaluated = model_card.Evaluated(
            results=results,
            data_set=setup.data_sets["dev"],
            wrong=_wrong_examples(setup, firsts),
            num_examples=len(firsts),
        )
    return model_card.Card(
        pipeline_tag=pipeline_tag,
        summary=summary,
        options=options,
        data=_data(setup),
        training=training,
        training_data=tuple(training_data),
        evaluated=evaluated,
    )


def _data(setup: run_setup.RunSetup) -> tuple[model_card.DataFile, ...]:
    data = [
        setup.data_file(part, setup.paths[part], len(rows))
        for part, rows in setup.examples.items()
    ]
    if setup.corpus is not None:
        path, count = setup.corpus.path, len(setup.corpus)
        data.append(setup.data_file("corpus", path, count))
    return tuple(data)


def _wrong_examples(
    setup: run_setup.RunSetup, firsts: Mapping[str, int]
) -> list[model_card.WrongExample]:
    corpus = setup.require_corpus()
    right: dict[str, list[str]] = {}
    for example in setup.examples["dev"]:
        right.setdefault(example.query, []).append(example.require_passage())
    return [
        model_card.WrongExample(
            text=query,
            expected=right[query][0],
            predicted=corpus.passages[number],
        )
        for query, number in firsts.items()
        if corpus.numbers[number]
        not in {corpus.number_of_text(passage) for passage in right[query]}
    ]
