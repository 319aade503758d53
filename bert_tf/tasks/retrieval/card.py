"""What a run of retrieval hands to its model card."""

from collections.abc import Mapping

from bert_tf.fine_tuning import model_card
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import run_setup
from bert_tf.training import training_facts

_ABOUT = {
    True: (
        "sentence-similarity",
        "Makes one vector a text; the passages whose vectors are nearest to a query's "
        "answer it.",
    ),
    False: (
        "text-ranking",
        "Reads a query and a passage together and scores how well the passage fits.",
    ),
}


def card_of(
    options: retrieval_options.RunRetrievalOptions,
    setup: run_setup.RunSetup,
    *,
    training: training_facts.TrainingFacts | None = None,
    results: Mapping[str, float] | None = None,
    firsts: Mapping[str, int] | None = None,
) -> model_card.Card:
    """Returns the card of a run, as far as this call knows it.

    Args:
        options: `RunRetrievalOptions`.
        setup: `run_setup.RunSetup`.
        training: after training, its facts.
        results: after evaluating, what eval_results.txt holds.
        firsts: after evaluating, query -> the passage that was ranked first.

    Raises:
        OSError: a file of the data cannot be read.
    """
    pipeline_tag, summary = _ABOUT[setup.task.is_bi_encoder]
    evaluated = None
    if results is not None and firsts is not None:
        evaluated = model_card.Evaluated(
            results=results,
            wrong=_wrong_examples(setup, firsts),
            num_examples=len(firsts),
        )
    return model_card.Card(
        pipeline_tag=pipeline_tag,
        summary=summary,
        options=options,
        data=_data(setup),
        training=training,
        evaluated=evaluated,
    )


def _data(setup):
    data = [
        model_card.data_file(part, setup.paths[part], len(rows))
        for part, rows in setup.examples.items()
    ]
    if setup.corpus is not None:
        path, count = setup.corpus.path, len(setup.corpus)
        data.append(model_card.data_file("corpus", path, count))
    return tuple(data)


def _wrong_examples(setup, firsts):
    corpus, right = setup.corpus, {}
    for example in setup.examples["dev"]:
        right.setdefault(example.query, []).append(example.passage)
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
