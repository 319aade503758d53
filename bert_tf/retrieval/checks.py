"""Checks of the data of retrieval, before anyone trains."""

import collections

from bert_tf import progress as progress_module
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.retrieval import corpus as corpus_module
from bert_tf.retrieval import examples as examples_module
from bert_tf.retrieval import inputs
from bert_tf.tokenization import in_graph
from bert_tf.training import estimates

NUM_SPECIAL = 2  # [CLS] and [SEP].


def check(
    options,
    start,
    findings: findings_module.Findings,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> estimates.Workload | None:
    """Adds what is found in queries, passages and corpus.

    Args:
        options: `RunRetrievalOptions`.
        start: `starting_point.StartingPoint`: vocabulary and casing.
        findings: to add to.
        progress: told how many texts are tokenized.

    Returns:
        What training has to do; None where there is nothing to train on.
    """
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
    text_checks.check_casing(
        findings,
        [text for found in texts.values() for text in found],
        start.vocabulary,
        do_lower_case=start.do_lower_case,
    )
    tokenizer = in_graph.InGraphTokenizer(
        start.vocabulary, do_lower_case=start.do_lower_case
    )

    def count(texts):
        return text_checks.count_pieces(tokenizer, texts, progress=progress)

    lengths = {
        name: _check_pieces(options, findings, name, found, count)
        for name, found in texts.items()
    }
    if "train" not in parts:
        return None
    return estimates.Workload(
        num_examples=len(parts["train"]),
        sequence_length=options.max_seq_length,
        sequences_per_example=1 + (options.num_negatives or 0),
        padded_length=estimates.padded_length(
            lengths["passages of train"] + NUM_SPECIAL, options
        ),
    )


def _read(options, findings):
    """Returns the examples of all parts, and the corpus, as far as they can be read."""
    parts, corpus, broken = {}, None, []
    for part, path in inputs.paths_of(options).items():
        if path is None:
            findings.note("files", f"there is no {part}")
            continue
        try:
            found = examples_module.read_examples(
                path, part, with_passages=part != "test", broken_rows=broken
            )
        except (OSError, ValueError) as error:
            findings.failure(f"reading {part}", error)
            found = []
        else:
            findings.passed("files", f"{part}: {path}")
        findings.broken_rows(f"reading {part}", broken)
        if found:
            parts[part] = found
    if options.corpus_file is not None:
        try:
            corpus = corpus_module.read_corpus(options.corpus_file, broken_rows=broken)
        except (OSError, ValueError) as error:
            findings.failure("reading corpus", error)
        else:
            findings.passed("files", f"corpus: {options.corpus_file}")
        findings.broken_rows("reading corpus", broken)
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


def _check_pieces(options, findings, name, texts, count):
    """Returns the pieces of each text."""
    flag = "max_query_length" if name.startswith("queries") else "max_seq_length"
    limit = getattr(options, flag)
    lengths, unknown = count(texts)
    text_checks.check_lengths(
        findings,
        name,
        lengths,
        room=limit - NUM_SPECIAL,
        limit=f"--{flag}={limit}",
    )
    text_checks.check_unknown(findings, name, lengths=lengths, num_unknown=unknown)
    return lengths
