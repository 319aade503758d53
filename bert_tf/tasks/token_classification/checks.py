"""Checks of tagged sentences before training; see `fine_tuning.checks`."""

from typing import Any

import numpy as np

from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import schemes
from bert_tf.training import estimates


def check(
    task: Any,
    start: starting_point.StartingPoint,
    findings: findings_module.Findings,
) -> estimates.Workload | None:
    """Checks the files that the options of a task name; see `Task.check`."""
    fine_tuning_checks.read_sets(task, findings)
    paths, sets = task.paths(), task.examples
    if not sets:
        return None
    items = {
        name: [
            text_checks.Item(
                texts=(" ".join(sentence.words),),
                label=" ".join(sentence.tags or ()),
                place=f"{paths[name]}:{sentence.lines[0]}",
            )
            for sentence in sentences
        ]
        for name, sentences in sets.items()
    }
    text_checks.check_texts(findings, items)
    for name, sentences in sets.items() if task.options.document_context else ():
        if not examples.has_documents(sentences):
            findings.error(
                "documents",
                "there is no line that starts with -DOCSTART-, which "
                "--document_context requires",
                paths[name],
            )
    _check_tags(findings, paths, sets, task.options.tag_scheme)
    tokenizer = fine_tuning_checks.checked_tokenizer(
        findings, start, [item.texts[0] for rows in items.values() for item in rows]
    )
    windowing = features_module.Windowing(
        max_seq_length=task.options.max_seq_length,
        doc_stride=task.options.stride,
        document_context=task.options.document_context,
    )
    lengths = {
        name: _check_pieces(findings, name, sentences, tokenizer, windowing)
        for name, sentences in sets.items()
    }
    if "train" not in sets:
        return None
    return estimates.Workload(
        num_examples=len(lengths["train"]),
        sequence_length=windowing.max_seq_length,
        padded_length=estimates.padded_length(lengths["train"], task.options),
    )


def _check_tags(findings, paths, sets, scheme):
    """Reports the scheme, its breaches and the balance of the types of entities."""
    tagged = {}
    for name, sentences in sets.items():
        if sentences[0].tags is not None:
            tagged[name] = sentences
        elif name != "test":
            findings.error("tags", f"{paths[name]} has no tags")
    if not tagged:
        return
    if scheme == "auto":
        first = next(iter(tagged.values()))
        scheme = schemes.recognize_scheme([sentence.tags for sentence in first])
    findings.note("tag scheme", scheme)
    for name, sentences in tagged.items():
        breaches = list(schemes.breaches(sentences, scheme))
        for line, reason in breaches:
            findings.error("tags", reason, f"{paths[name]}:{line}")
        if not breaches:
            findings.passed("tags", f"{name}: all tags follow their scheme")
    types = {
        name: [kind for sentence in rows for kind in _types(sentence.tags, scheme)]
        for name, rows in tagged.items()
        if name != "test"
    }
    places: dict[str, str] = {}  # Where "dev" first has each type.
    for sentence in tagged.get("dev", ()):
        for tag, line in zip(sentence.tags, sentence.lines, strict=True):
            for kind in _types([tag], scheme):
                places.setdefault(kind, f"{paths['dev']}:{line}")
    types = {name: kinds for name, kinds in types.items() if kinds}
    text_checks.check_labels(findings, types, places=places)


def _types(tags, scheme):
    """Returns the types of the words in entities; all tags, without a scheme."""
    if scheme == schemes.NONE:
        return tags
    return [schemes.split_tag(tag)[1] for tag in tags if tag != schemes.OUTSIDE]


def _check_pieces(findings, name, sentences, tokenizer, windowing):
    """Checks lengths; returns the number of pieces in each row without padding."""
    words = [word for sentence in sentences for word in sentence.words]
    unique, numbers = np.unique(words, return_inverse=True)
    lengths, unknown = text_checks.count_pieces(tokenizer, unique.tolist())
    # As in training, a word without pieces becomes [UNK].
    unknown, lengths = unknown + (lengths == 0), np.maximum(lengths, 1)
    num_pieces = dict(zip(unique.tolist(), lengths, strict=True))
    rows = features_module.row_lengths(sentences, num_pieces, windowing)
    starts = np.cumsum([0, *(len(one.words) for one in sentences)])[:-1]
    lengths = np.add.reduceat(lengths[numbers], starts)
    unknown = np.add.reduceat(unknown[numbers], starts)
    several = float(np.mean(lengths > windowing.capacity))
    findings.judge(
        "length",
        f"{name}: {several:.1%} of the sentences need several windows of "
        f"--max_seq_length={windowing.max_seq_length}; the longest has "
        f"{np.max(lengths)} pieces; {len(rows):,} rows in all",
        is_good=several <= text_checks.TRUNCATED_SHARE,
    )
    text_checks.check_unknown(findings, name, lengths=lengths, num_unknown=unknown)
    return rows
