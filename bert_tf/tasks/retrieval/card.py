"""What a run of retrieval hands to its model card."""

from collections.abc import Mapping

from bert_tf.fine_tuning import model_card
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
    options,
    inputs,
    *,
    training: training_facts.TrainingFacts | None = None,
    results: Mapping[str, float] | None = None,
    firsts: Mapping[str, int] | None = None,
) -> model_card.Card:
    """Returns the card of a run, as far as this call knows it.

    Args:
        options: `RunRetrievalOptions`.
        inputs: `inputs.Inputs`.
        training: after training, its facts.
        results: after evaluating, what eval_results.txt holds.
        firsts: after evaluating, query -> the passage that was ranked first.

    Raises:
        OSError: a file of the data cannot be read.
    """
    pipeline_tag, summary = _ABOUT[inputs.task.is_bi_encoder]
    wrong = [] if firsts is None else _wrong_examples(inputs, firsts)
    return model_card.Card(
        pipeline_tag=pipeline_tag,
        summary=summary,
        options=options,
        data=_data(inputs),
        scores={name: (value,) for name, value in (results or {}).items()},
        wrong_examples=tuple(wrong),
        num_wrong=None if firsts is None else len(wrong),
        num_evaluated=None if firsts is None else len(firsts),
        training=training,
    )


def _data(inputs):
    data = [
        model_card.data_file(part, inputs.paths[part], len(rows))
        for part, rows in inputs.examples.items()
    ]
    if inputs.corpus is not None:
        path, count = inputs.corpus.path, len(inputs.corpus)
        data.append(model_card.data_file("corpus", path, count))
    return tuple(data)


def _wrong_examples(inputs, firsts):
    corpus, right = inputs.corpus, {}
    for example in inputs.examples["dev"]:
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
