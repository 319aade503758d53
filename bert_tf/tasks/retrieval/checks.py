"""Checks of the data of retrieval, before anyone trains."""

import collections
import functools

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import options as retrieval_options
from bert_tf.tasks.retrieval import run_setup
from bert_tf.tasks.retrieval import source as retrieval_source
from bert_tf.training import estimates

NUM_SPECIAL = 2  # [CLS] and [SEP].


def check(
    options: retrieval_options.RunRetrievalOptions,
    start: starting_point.StartingPoint,
    findings: findings_module.Findings,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> estimates.Workload | None:
    """Adds what is found in queries and passages; see `fine_tuning.checks.Check`."""
    parts, corpus = _read(options, findings)
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
        f"passages of {part}": [example.passage for example in examples]
        for part, examples in parts.items()
        if part != "test"
    }
    if corpus is not None:
        texts["corpus"] = corpus.passages
    if not texts:
        return None
    tokenizer = fine_tuning_checks.checked_tokenizer(
        findings, start, [text for found in texts.values() for text in found]
    )

    lengths = {}
    for name, found in texts.items():
        lengths[name], unknown = text_checks.count_pieces(
            tokenizer, found, progress=progress
        )
        text_checks.check_unknown(
            findings, name, lengths=lengths[name], num_unknown=unknown
        )
    sequences = _check_lengths(options, findings, lengths)
    if "train" not in parts:
        return None
    places = sequences["passages of train"] + _num_special(options)
    return _workload(options, parts["train"], places)


def _read(options, findings):
    """Returns the examples of all parts, and the corpus, as far as they can be read."""
    parts = {}
    for part, path in run_setup.paths_of(options).items():
        if path is None:
            findings.note("files", f"there is no {part}")
            continue
        read = functools.partial(
            examples_module.read_examples, path, part, with_passages=part != "test"
        )
        found = fine_tuning_checks.read_file(findings, part, path, read)
        if found:
            parts[part] = found
    corpus = None
    if options.corpus_file is not None:
        path = options.corpus_file
        read = functools.partial(corpus_module.read_corpus, path)
        corpus = fine_tuning_checks.read_file(findings, "corpus", path, read)
    return parts, corpus


def _item(example):
    texts = [text for text in (example.query, example.passage) if text is not None]
    return text_checks.Item(texts=tuple(texts), label=None, place=example.place)


def _check_answers(findings, part, examples):
    """Adds how many queries share a passage: in one batch none is a wrong one."""
    counts = collections.Counter(corpus_module.key(e.passage) for e in examples)
    most = max(counts.values())
    queries = {corpus_module.key(example.query) for example in examples}
    findings.passed(
        "answers",
        f"{part}: {len(queries):,} queries, {len(counts):,} passages; one answers up "
        f"to {most:,} queries",
    )


def _check_corpus(findings, corpus, examples):
    repeated = len(corpus) - len(corpus.number_of)
    findings.judge(
        "corpus",
        f"{len(corpus):,} passages, of which {repeated:,} occurred before",
        is_good=not repeated,
    )
    for example in examples:
        if corpus_module.key(example.passage) not in corpus.number_of:
            findings.error(
                "corpus",
                f"the passage of {example.guid!r} is not in {corpus.path}",
                example.place,
            )


def _check_lengths(options, findings, lengths):
    """Adds what is cut; returns the pieces of what the model reads, by its name."""
    for name, found in lengths.items():
        if name.startswith("queries"):
            text_checks.check_lengths(
                findings,
                name,
                found,
                room=options.max_query_length - NUM_SPECIAL,
                limit=f"--max_query_length={options.max_query_length}",
            )
    sequences = _sequences(options, lengths)
    beside = "" if options.model == retrieval_options.BI_ENCODER else " with a query"
    for name, found in sequences.items():
        text_checks.check_lengths(
            findings,
            name + beside,
            found,
            room=options.max_seq_length - _num_special(options),
            limit=f"--max_seq_length={options.max_seq_length}",
        )
    return sequences


def _sequences(options, lengths):
    """Returns the pieces of passages; for a cross-encoder with their queries'.

    A passage of the corpus has a query of usual length there.
    """
    passages = {n: v for n, v in lengths.items() if not n.startswith("queries")}
    if options.model == retrieval_options.BI_ENCODER:
        return passages
    queries = {
        name.replace("queries", "passages"): np.minimum(
            found, options.max_query_length - NUM_SPECIAL
        )
        for name, found in lengths.items()
        if name not in passages
    }
    usual = 0
    if queries:
        usual = int(np.median(np.concatenate(list(queries.values()))))
    return {name: found + queries.get(name, usual) for name, found in passages.items()}


def _num_special(options):
    if options.model == retrieval_options.BI_ENCODER:
        return NUM_SPECIAL
    return retrieval_source.NUM_SPECIAL_OF_PAIR


def _workload(options, examples, places):
    """Returns what training on examples has to do; places are those of sequences."""
    num_negatives = options.negatives_per_query(
        lambda: max(len(example.negatives) for example in examples)
    )
    return estimates.Workload(
        num_examples=len(examples),
        sequence_length=options.max_seq_length,
        sequences_per_example=options.sequences_per_example(num_negatives),
        padded_length=estimates.padded_length(places, options),
    )
