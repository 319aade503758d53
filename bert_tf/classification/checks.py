"""Checks of a classifier's data, before anyone trains."""

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.classification import inputs
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.tokenization import in_graph
from bert_tf.training import estimates


def check(
    options,
    start,
    findings: findings_module.Findings,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> estimates.Workload | None:
    """Adds what is found in the tables.

    Args:
        options: `RunClassifierOptions`.
        start: `starting_point.StartingPoint`: vocabulary and casing.
        findings: to add to.
        progress: told how many texts are tokenized.

    Returns:
        What training has to do; None where there is nothing to train on.
    """
    parts = _read(options, findings)
    items = {
        part: [_item(example) for example in examples]
        for part, examples in parts.items()
    }
    if not items:
        return None
    text_checks.check_texts(findings, items)
    labels = {
        part: [example.label for example in examples]
        for part, examples in parts.items()
        if part != "test"
    }
    text_checks.check_labels(findings, labels)
    texts = [text for found in items.values() for item in found for text in item.texts]
    text_checks.check_casing(
        findings, texts, start.vocabulary, do_lower_case=start.do_lower_case
    )
    tokenizer = in_graph.InGraphTokenizer(
        start.vocabulary, do_lower_case=start.do_lower_case
    )
    lengths = {
        part: _check_pieces(
            options, findings, part, found, tokenizer, progress=progress
        )
        for part, found in items.items()
    }
    if "train" not in parts:
        return None
    return estimates.Workload(
        num_examples=len(parts["train"]),
        sequence_length=options.max_seq_length,
        padded_length=estimates.padded_length(lengths["train"], options),
    )


def _read(options, findings):
    """Returns the examples of all parts that can be read."""
    processor, _ = inputs.processor_of(options)
    paths = processor.get_files(options.data_dir)
    readers = {
        "train": processor.get_train_examples,
        "dev": processor.get_dev_examples,
        "test": processor.get_test_examples,
    }
    parts = {}
    for part, read in readers.items():
        # GLUE's folders need not hold all three.
        is_there = part in paths and (
            options.task_name is None or files.exists(paths[part])
        )
        if not is_there:
            findings.note("files", f"there is no {part}")
            continue
        try:
            parts[part] = read(options.data_dir)
        except (OSError, ValueError) as error:
            findings.failure(f"reading {part}", error)
        else:
            findings.passed("files", f"{part}: {paths[part]}")
    return parts


def _item(example):
    texts = tuple(text for text in (example.text_a, example.text_b) if text is not None)
    return text_checks.Item(
        texts=texts, label=example.label, place=example.place or example.guid
    )


def _check_pieces(options, findings, part, items, tokenizer, *, progress):
    """Returns the places that each row uses."""
    per_item = len(items[0].texts)
    texts = [text for item in items for text in item.texts]
    lengths, unknown = text_checks.count_pieces(tokenizer, texts, progress=progress)
    lengths = lengths.reshape(-1, per_item).sum(axis=1)
    num_special = 1 + per_item  # [CLS], and [SEP] after each text.
    text_checks.check_lengths(
        findings,
        part,
        lengths,
        room=options.max_seq_length - num_special,
        limit=f"--max_seq_length={options.max_seq_length}",
    )
    text_checks.check_unknown(
        findings,
        part,
        lengths=lengths,
        num_unknown=unknown.reshape(-1, per_item).sum(axis=1),
    )
    return lengths + num_special
