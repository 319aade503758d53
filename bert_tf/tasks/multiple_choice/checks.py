"""Checks of multiple choice data, before training."""

import functools

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from bert_tf.tasks.multiple_choice import run_setup
from bert_tf.training import estimates

NUM_SPECIAL = 3  # [CLS], and [SEP] after the start and after the ending.


def check(
    options: multiple_choice_options.RunSwagOptions,
    start: starting_point.StartingPoint,
    findings: findings_module.Findings,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> estimates.Workload | None:
    """Checks the tables. See `fine_tuning.checks.Check`."""
    parts = _read(options, findings)
    if not parts:
        return None
    items = {part: list(map(_item, examples)) for part, examples in parts.items()}
    text_checks.check_texts(findings, items)
    labels = {
        part: [item.label for item in found]
        for part, found in items.items()
        if part != "test"
    }
    text_checks.check_labels(findings, labels)
    for part, examples in parts.items():
        _check_endings(findings, part, examples)
    texts = [text for found in items.values() for item in found for text in item.texts]
    tokenizer = fine_tuning_checks.checked_tokenizer(findings, start, texts)
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
        sequences_per_example=len(parts["train"][0].endings),
        padded_length=estimates.padded_length(lengths["train"], options),
        reads_all_positions=False,
    )


def _read(options, findings):
    """Returns the examples of all readable sets, without broken rows."""
    columns = run_setup.columns_of(options, examples_module.Columns())
    parts = {}
    num_endings = None
    for part, path in run_setup.paths_of(options).items():
        if path is None or (options.data_dir and not files.exists(path)):
            findings.note("files", f"there is no {part} file")
            continue
        own = columns.without_label() if part == "test" else columns
        read = functools.partial(
            examples_module.read_examples, path, own, part, num_endings=num_endings
        )
        found = fine_tuning_checks.read_file(findings, part, path, read)
        if found:
            parts[part] = found
            num_endings = len(found[0].endings)
    return parts


def _item(example):
    label = None if example.label is None else str(example.label)
    return text_checks.Item(
        texts=(example.start, *example.endings), label=label, place=example.place
    )


def _check_endings(findings, part, examples):
    equal = [
        example.place
        for example in examples
        if len(set(example.endings)) < len(example.endings)
    ]
    findings.judge(
        "endings",
        f"{part}: {len(equal):,} examples contain the same ending twice"
        + (f" ({findings_module.places(equal)})" if equal else ""),
        is_good=not equal,
    )


def _check_pieces(options, findings, part, items, tokenizer, *, progress):
    """Reports truncated texts and [UNK]; returns the longest row of each example."""
    texts = [text for item in items for text in item.texts]
    lengths, unknown = text_checks.count_pieces(tokenizer, texts, progress=progress)
    per_item = len(items[0].texts)
    lengths, unknown = lengths.reshape(-1, per_item), unknown.reshape(-1, per_item)
    rows = lengths[:, :1] + lengths[:, 1:]  # Each ending with its start.
    longest = np.max(rows, axis=1)
    text_checks.check_lengths(
        findings,
        part,
        longest,
        room=options.max_seq_length - NUM_SPECIAL,
        limit=f"--max_seq_length={options.max_seq_length}",
    )
    text_checks.check_unknown(
        findings, part, lengths=lengths.sum(axis=1), num_unknown=unknown.sum(axis=1)
    )
    return longest + NUM_SPECIAL
