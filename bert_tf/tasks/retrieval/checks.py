"""Checks of queries and passages before training; see `fine_tuning.checks`."""

import collections
import functools
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import record as record_module
from bert_tf.training import estimates

NUM_SPECIAL = 2  # [CLS] and [SEP].
_Parts = dict[str, list[examples_module.RankingExample]]  # Examples by set.
_Lengths = dict[str, np.ndarray]  # Word pieces per text, by name of the texts.


def check(
    task: Any,
    start: starting_point.StartingPoint,
    findings: findings_module.Findings,
) -> estimates.Workload | None:
    """Adds the findings about queries and passages; see `Task.check`."""
    options = task.options
    if start.source is not None:
        options = options.with_lengths(start.source.text.max_seq_length)
    fine_tuning_checks.read_sets(task, findings)
    parts, corpus = task.examples, _read_corpus(options.corpus_file, findings)
    items = {part: list(map(_item, examples)) for part, examples in parts.items()}
    if items:
        text_checks.check_texts(findings, items)
    for part, examples in parts.items():
        if part != "test":
            _check_answers(findings, part, examples)
    if corpus is not None:
        _check_corpus(findings, corpus, parts.get("dev", ()))
    texts = {
        f"queries of {part}": [example.query for example in examples]
        for part, examples in parts.items()
    } | {
        f"passages of {part}": [example.require_passage() for example in examples]
        for part, examples in parts.items()
        if part != "test"
    }
    if corpus is not None:
        texts["corpus"] = list(corpus.passages)
    if not texts:
        return None
    tokenizer = fine_tuning_checks.checked_tokenizer(
        findings, start, [text for found in texts.values() for text in found]
    )

    lengths = {}
    for name, found in texts.items():
        lengths[name], unknown = text_checks.count_pieces(
            tokenizer, found, progress=task.progress
        )
        text_checks.check_unknown(
            findings, name, lengths=lengths[name], num_unknown=unknown
        )
    sequences = _check_lengths(options, findings, lengths)
    if "train" not in parts:
        return None
    sequence_lengths = sequences["passages of train"] + _num_special(options)
    return _workload(options, parts["train"], sequence_lengths)


def _read_corpus(path, findings):
    """Returns the corpus if it is readable."""
    if path is None:
        return None
    read = functools.partial(examples_module.read_corpus, path)
    return fine_tuning_checks.read_file(findings, "corpus", path, read)


def _item(example: examples_module.RankingExample) -> text_checks.Item:
    texts = [text for text in (example.query, example.passage) if text is not None]
    return text_checks.Item(texts=tuple(texts), label=None, place=example.place)


def _check_answers(
    findings: findings_module.Findings,
    part: str,
    examples: Sequence[examples_module.RankingExample],
) -> None:
    """Reports how many queries share a passage.

    A passage is never a negative of another query that it answers, so a batch with many
    such queries has fewer negatives.
    """
    counts = collections.Counter(
        examples_module.key(one.require_passage()) for one in examples
    )
    most = max(counts.values())
    queries = {examples_module.key(example.query) for example in examples}
    findings.passed(
        "answers",
        f"{part}: {len(queries):,} queries, {len(counts):,} passages; one answers up "
        f"to {most:,} queries",
    )


def _check_corpus(
    findings: findings_module.Findings,
    corpus: examples_module.Corpus,
    examples: Iterable[examples_module.RankingExample],
) -> None:
    repeated = len(corpus) - len(corpus.number_of)
    findings.judge(
        "corpus",
        f"{repeated:,} of {len(corpus):,} passages occurred before",
        is_good=not repeated,
    )
    for example in examples:
        if not corpus.has(example.require_passage()):
            findings.error(
                "corpus",
                f"the passage of {example.guid!r} is not in {corpus.path}",
                example.place,
            )


def _check_lengths(
    options: retrieval_options.RunRetrievalOptions,
    findings: findings_module.Findings,
    lengths: _Lengths,
) -> _Lengths:
    """Reports truncated texts; returns the result of `_sequences`."""
    for name, found in lengths.items():
        if name.startswith("queries"):
            text_checks.check_lengths(
                findings,
                name,
                found,
                room=options.query_limit - NUM_SPECIAL,
                limit=f"--max_query_length={options.query_limit}",
            )
    sequences = _sequences(options, lengths)
    suffix = "" if options.model == retrieval_options.BI_ENCODER else " with a query"
    for name, found in sequences.items():
        text_checks.check_lengths(
            findings,
            name + suffix,
            found,
            room=options.sequence_limit - _num_special(options),
            limit=f"--max_seq_length={options.sequence_limit}",
        )
    return sequences


def _sequences(
    options: retrieval_options.RunRetrievalOptions, lengths: _Lengths
) -> _Lengths:
    """Returns the lengths of the model's sequences, without [CLS] and [SEP].

    For a cross-encoder they include the query. A passage of the corpus, which has no
    query of its own, is counted with the median length of all queries.
    """
    passages = {n: v for n, v in lengths.items() if not n.startswith("queries")}
    if options.model == retrieval_options.BI_ENCODER:
        return passages
    queries = {
        name.replace("queries", "passages"): np.minimum(
            found, options.query_limit - NUM_SPECIAL
        )
        for name, found in lengths.items()
        if name not in passages
    }
    median = 0
    if queries:
        median = int(np.median(np.concatenate(list(queries.values()))))
    return {name: found + queries.get(name, median) for name, found in passages.items()}


def _num_special(options: retrieval_options.RunRetrievalOptions) -> int:
    if options.model == retrieval_options.BI_ENCODER:
        return NUM_SPECIAL
    return record_module.NUM_SPECIAL_OF_PAIR


def _workload(
    options: retrieval_options.RunRetrievalOptions,
    examples: Sequence[examples_module.RankingExample],
    sequence_lengths: np.ndarray,
) -> estimates.Workload:
    """Returns the amount of work that training on the examples takes."""
    num_negatives = options.negatives_per_query(
        lambda: max(len(example.negatives) for example in examples)
    )
    return estimates.Workload(
        num_examples=len(examples),
        sequence_length=options.sequence_limit,
        sequences_per_example=options.sequences_per_example(num_negatives),
        padded_length=estimates.padded_length(sequence_lengths, options),
        # A bi-encoder's pooling may come from the checkpoint; most read all positions.
        reads_all_positions=(
            options.model == retrieval_options.BI_ENCODER and options.pooling != "cls"
        ),
    )
