"""Checks of the data of a classifier, before training."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import processors
from bert_tf.training import estimates


def check(
    options: classification_options.RunClassifierOptions,
    start: starting_point.StartingPoint,
    findings: findings_module.Findings,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> estimates.Workload | None:
    """Checks the tables. See `fine_tuning.checks.Check`."""
    data = processors.data_of(options)
    parts = _read(options, data.processor, findings)
    items = {
        part: [_item(example) for example in examples]
        for part, examples in parts.items()
    }
    if not items:
        return None
    text_checks.check_texts(findings, items)
    _check_labels(data.columns, findings, parts)
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
    room = options.max_seq_length - lengths["train"].num_special
    return estimates.Workload(
        num_examples=_num_rows(lengths["train"].pieces, room, options.doc_stride),
        sequence_length=options.max_seq_length,
        padded_length=estimates.padded_length(lengths["train"].places, options),
        reads_all_positions=options.bilstm_on_top,
    )


def _read(options, processor, findings):
    """Returns the examples of all readable sets, without broken rows."""
    processor.broken_rows = []
    paths = processor.get_files(options.data_dir)
    train_files = processor.get_train_files(options.data_dir)
    is_folder = options.task_name is not None
    readers = {
        "train": lambda folder: {"train": processor.get_train_examples(folder)},
        "dev": processor.get_dev_sets,
        "test": processor.get_test_sets,
    }
    parts: dict[str, Sequence[examples_module.InputExample]] = {}
    failures: set[str] = set()
    for part, read in readers.items():
        # The folder of a task may lack some of its files.
        is_there = options.tfds_name is not None or part in paths
        if not is_there or (is_folder and not files.exists(paths[part])):
            findings.note("files", f"there is no {part} file")
            continue
        try:
            found = read(options.data_dir)
        except (OSError, ValueError) as error:
            # Reading dev needs the labels of train, so it may fail in the same way.
            if str(error) in failures:
                findings.note("files", f"{part} is not checked, because train failed")
            else:
                findings.failure(f"reading {part}", error)
            failures.add(str(error))
            found = {}
        findings.broken_rows(f"reading {part}", processor.broken_rows)
        parts |= {name: examples for name, examples in found.items() if examples}
        for name in found:
            path = paths.get(name, paths.get(part, options.tfds_name))
            if len(train_files) > 1 and name == "train":
                path = ", ".join(train_files)
            findings.passed("files", f"{name}: {path}")
    return parts


def _item(example):
    return text_checks.Item(
        texts=example.texts, label=example.label, place=example.place or example.guid
    )


def _check_labels(columns, findings, parts):
    """Reports the balance of the classes, or the range of the numbers."""
    labels = {
        part: [example.label for example in examples]
        for part, examples in parts.items()
        if not part.startswith("test")
    }
    if columns.kind != label_kinds.REGRESSION:
        separator = columns.separator
        named = {
            part: [name for x in of_part for name in label_kinds.names_in(x, separator)]
            for part, of_part in labels.items()
        }
        named = {part: names for part, names in named.items() if names}
        text_checks.check_labels(findings, named)
        return
    for part, texts in labels.items():
        findings.judge(
            "label range",
            f"{part}: {label_kinds.range_of(texts)}",
            is_good=len(set(map(label_kinds.number_in, texts))) > 1,
        )


def _num_rows(pieces, room, doc_stride):
    """Returns the number of rows, where long texts have one row per window."""
    if not doc_stride:
        return len(pieces)
    return int(np.sum(1 + -(-np.maximum(pieces - room, 0) // doc_stride)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Lengths:
    """Lengths of the examples of a set."""

    pieces: np.ndarray  # int64 [N], before truncation, without special tokens.
    num_special: int  # [CLS], and [SEP] after each text.

    @property
    def places(self) -> np.ndarray:
        """int64 [N]: lengths with special tokens."""
        return self.pieces + self.num_special


def _check_pieces(options, findings, part, items, tokenizer, *, progress):
    """Reports truncated texts and [UNK]; returns the lengths."""
    per_item = len(items[0].texts)
    texts = [text for item in items for text in item.texts]
    pieces, unknown = text_checks.count_pieces(tokenizer, texts, progress=progress)
    lengths = _Lengths(
        pieces=pieces.reshape(-1, per_item).sum(axis=1), num_special=1 + per_item
    )
    room = options.max_seq_length - lengths.num_special
    if options.doc_stride:
        share = float(np.mean(lengths.pieces > room))
        findings.passed("length", f"{part}: {share:.1%} are read in several windows")
    else:
        text_checks.check_lengths(
            findings,
            part,
            lengths.pieces,
            room=room,
            limit=f"--max_seq_length={options.max_seq_length}",
        )
    text_checks.check_unknown(
        findings,
        part,
        lengths=lengths.pieces,
        num_unknown=unknown.reshape(-1, per_item).sum(axis=1),
    )
    return lengths
