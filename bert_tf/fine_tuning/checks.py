"""Checks of the data of a task before training: `--check` of each tool."""

import abc
import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.data import text_checks
from bert_tf.optimization import schedules
from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph


def run(declaration: Any, options: Any) -> text_checks.Findings:
    """Checks all data that the options of a task name; returns the findings."""
    task = declaration(options.reading_all())
    task.find_start()
    if task.trained is not None:
        values = {name: getattr(task.trained, name) for name in declaration.FIXED}
        task.options = dataclasses.replace(task.options, **values)
    findings = text_checks.Findings()
    for warning in task.start.warnings:
        findings.warning("vocabulary", warning)
    if (source := task.start.source) is not None:
        for sentence in source.warnings:
            findings.warning("checkpoint", f"{source.path}: {sentence}")
    # The number of steps, on which further advice depends, is not known yet.
    advice = schedules.advice_on_rate(options.learning_rate, 0, 0, is_corrected=True)
    if advice is not None:
        findings.warning("learning rate", advice)
    task.read_for_check(findings)
    if task.examples:
        _check_examples(task, findings)
    return findings


def warn_of_training_data(task: Any) -> None:
    """Logs what --check finds about the texts of a run, at the cost of a moment.

    [UNK] is counted in a sample of the training texts.
    """
    findings = text_checks.Findings()
    items = {
        name: list(map(task.item, rows))
        for name, rows in task.examples.items()
        if not name.startswith("test")
    }
    text_checks.check_texts(findings, items)
    train = items["train"]
    sample = train[:: 1 + len(train) // text_checks.TEXTS_PER_CALL]
    # TensorFlow must not start before the strategy divides the CPU or finds workers.
    tokenizer = full.FullTokenizer(task.vocabulary, **task.record.tokenizer_arguments())
    with progress_module.reporting_to(None):
        lengths, unknown = _count_pieces(sample, tokenizer)
    text_checks.check_unknown(
        findings, "train", lengths=lengths.sum(axis=1), num_unknown=unknown.sum(axis=1)
    )
    findings.log_warnings()


def _check_examples(task, findings):
    examples = task.examples
    items = {name: list(map(task.item, rows)) for name, rows in examples.items()}
    text_checks.check_texts(findings, items)
    task.check_items(findings, items)
    arguments = task.start.tokenizer_arguments()
    text_checks.check_casing(
        findings,
        task.vocabulary,
        do_lower_case=task.start.do_lower_case,
        never_split=arguments["never_split"],
    )
    tokenizer = in_graph.InGraphTokenizer(task.vocabulary, **arguments)
    for name, rows in items.items():
        _check_pieces(task, findings, name, rows, tokenizer)
    try:
        task.start.config.check_sequence_length(task.options.max_seq_length)
    except ValueError as error:
        findings.error("length", error)


def _count_pieces(items, tokenizer):
    """Returns the pieces and [UNK] of each text: int64 [N, texts of an item] twice."""
    texts = [text for item in items for text in item.texts]
    index = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    counts = text_checks.count_pieces(tokenizer, list(index))
    rows = np.array([index[text] for text in texts]).reshape(-1, len(items[0].texts))
    return [count[rows] for count in counts]


def _check_pieces(task, findings, name, items, tokenizer):
    """Reports truncated texts and [UNK]."""
    lengths, unknown = _count_pieces(items, tokenizer)
    longest = task.row_lengths(lengths)
    windows = task.num_windows(longest)
    if windows is not None:
        share = float(np.mean(windows > 1))
        findings.passed(
            "length",
            f"{name}: {share:.1%} are read in several windows of "
            f"--max_seq_length={task.options.max_seq_length}",
        )
    else:
        for values, limits in task.limits(lengths):
            text_checks.check_lengths(findings, name, values, **limits)
    text_checks.check_unknown(
        findings, name, lengths=lengths.sum(axis=1), num_unknown=unknown.sum(axis=1)
    )


class CheckedTask(abc.ABC):
    """The part of `task.Task` that says how its data is checked."""

    options: Any
    examples: dict[str, Any]

    def read_for_check(self: Any, findings: text_checks.Findings) -> None:
        """Reads the `examples` of all sets, and reports what cannot be read."""
        may_lack = getattr(self.options, "data_dir", None) is not None
        for name, path in self.paths().items():
            # A folder may lack some of its files.
            if path is None or (may_lack and not files.exists(path)):
                findings.passed("files", f"there is no {name} file")
                continue
            read = functools.partial(self.read_set, name, path)
            examples = read_file(findings, name, path, read)
            if examples:
                self.examples[name] = examples

    def item(self, example: Any) -> text_checks.Item:
        """Returns the texts, the label and the place of an example."""
        raise NotImplementedError

    def check_items(
        self,
        findings: text_checks.Findings,
        items: Mapping[str, Sequence[text_checks.Item]],
    ) -> None:
        """Checks what this task's examples contain. The default checks the labels.

        Args:
            findings: the list to extend.
            items: `item` of each of the `examples`.
        """
        labels = {
            name: [item.label for item in rows if item.label is not None]
            for name, rows in items.items()
            if not name.startswith("test")
        }
        text_checks.check_labels(findings, labels)

    def row_lengths(self, lengths: np.ndarray) -> np.ndarray:
        """Returns the pieces of the longest sequence of each example, [N].

        Args:
            lengths: int64 [N, texts of an `item`], pieces of each text.
        """
        return lengths.sum(axis=1)

    def limits(
        self: Any, lengths: np.ndarray
    ) -> Sequence[tuple[np.ndarray, dict[str, Any]]]:
        """Returns lengths [N] that are limited, each with its `text_limits`.

        Args:
            lengths: as for `row_lengths`.
        """
        return [(self.row_lengths(lengths), self.text_limits(self.options))]

    def num_windows(self, lengths: np.ndarray) -> np.ndarray | None:
        """Returns the number of windows of each example; None if texts are truncated.

        Args:
            lengths: int64 [N], returned by `row_lengths`.
        """
        return None


def read_file(
    findings: text_checks.Findings,
    name: str,
    path: str,
    read: Callable[..., Any],
) -> Any:
    """Reads a file, and reports its errors and broken rows.

    Args:
        findings: the list to extend.
        name: of the set, such as "train".
        path: of the file, for the report.
        read: called with an empty list `broken_rows`. It skips broken rows, appends
            their errors to the list, and returns the rest.

    Returns:
        The result of `read`. None if the file cannot be read.
    """
    broken: list[str] = []
    examples = None
    try:
        examples = read(broken_rows=broken)
        findings.passed("files", f"{name}: {path}")
    except (OSError, ValueError) as error:
        findings.error(f"reading {name}", error)
    for fault in broken:
        findings.error(f"reading {name}", fault)
    return examples
