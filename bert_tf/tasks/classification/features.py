"""Examples to the columns that the model reads."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import windows

# Enough for the in-graph tokenizer to be busy, little enough for a moving bar.
EXAMPLES_PER_CALL = 2048


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows:
    """What a model reads of some examples."""

    # `input_ids`, `input_mask`, `segment_ids`: int32 [rows, S]; those of the labels.
    columns: Mapping[str, np.ndarray]
    # int64 [rows]: which example each row is of; several where texts have windows.
    example_numbers: np.ndarray

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.example_numbers)


def rows_of(
    examples: Sequence[examples_module.InputExample],
    task,
    tokenizer,
    *,
    weights: Mapping[str, float] | None = None,
    progress: progress_module.Progress = progress_module.silent,
) -> Rows:
    """Returns the rows of a task's examples.

    Args:
        examples: N examples, all of single texts or all of pairs.
        task: `task.Task`.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        weights: how much each class counts, by name; None: all the same.
        progress: told how many examples are done.

    Returns:
        The rows. An example's label is in all of its windows; together they count as
        much as an example of one row (`example_weights`), in training.
    """
    if task.doc_stride:
        columns, numbers = _windows(examples, task, tokenizer, progress)
    else:
        columns = _packed(examples, task.max_seq_length, tokenizer, progress)
        numbers = np.arange(len(examples))
    labels = label_columns(examples, task, weights)
    if len(numbers) > len(examples):
        share = 1 / np.bincount(numbers, minlength=len(examples))
        share = share.astype(np.float32) * labels.get("example_weights", np.float32(1))
        labels["example_weights"] = share
    columns |= {name: column[numbers] for name, column in labels.items()}
    return Rows(columns=columns, example_numbers=numbers)


def _windows(examples, task, tokenizer, progress):
    """Returns the encoder's columns of all windows, and the example that each is of."""
    parts, numbers = [], []
    for start in range(0, len(examples), EXAMPLES_PER_CALL):
        part = examples[start : start + EXAMPLES_PER_CALL]
        packed, of_part = windows.pack(
            tokenizer,
            [example.text_a for example in part],
            texts_b=_second_texts(part),
            max_seq_length=task.max_seq_length,
            doc_stride=task.doc_stride,
        )
        parts.append(packed)
        numbers.append(start + of_part)
        progress("tokenize", start + len(part), len(examples), unit="examples")
    columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    return columns, np.concatenate(numbers)


def label_columns(examples, task, weights=None) -> dict[str, np.ndarray]:
    """Returns the columns of the labels, a row an example; see `model`.

    Args:
        examples: N examples.
        task: `task.Task`.
        weights: as for `rows_of`.

    Returns:
        Of one class `label_ids`, int32 [N], 0 for examples without a label, as in
        2018; of several `label_indicators`, int32 [N, C]; of numbers `label_values`,
        float32 [N]. With weights `example_weights`, float32 [N], or of several classes
        `label_weights`, float32 [N, C]: a class's weight where the example has it.
    """
    labels = [example.label for example in examples]
    if task.label_kind == label_kinds.REGRESSION:
        values = [0.0 if x is None else label_kinds.number_in(x) for x in labels]
        return {"label_values": np.array(values, np.float32)}
    number_of = {label: index for index, label in enumerate(task.labels)}
    if task.label_kind == label_kinds.SINGLE_LABEL:
        columns = {"label_ids": _label_ids(examples, task.labels)}
        if weights:
            drawn = [weights.get(label, 1.0) for label in labels]
            columns["example_weights"] = np.array(drawn, np.float32)
        return columns
    indicators = np.zeros((len(labels), len(task.labels)), np.int32)
    for row, text in zip(indicators, labels, strict=True):
        for name in label_kinds.names_in(text or "", task.label_separator):
            row[number_of[name]] = 1
    columns = {"label_indicators": indicators}
    if weights:
        of_class = np.array([weights[name] for name in task.labels], np.float32)
        columns["label_weights"] = np.where(indicators == 1, of_class, np.float32(1))
    return columns


def convert_examples_to_features(
    examples: Sequence[examples_module.InputExample],
    labels: Sequence[str],
    max_seq_length: int,
    tokenizer,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, np.ndarray]:
    """Returns the columns of a task's examples.

    Args:
        examples: N examples, all of single texts or all of pairs.
        labels: names of the classes, in the order of the model's outputs.
        max_seq_length: S; a single text is cut to S - 2 pieces, a pair to S - 3 both
            together, the longer one first.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        progress: told how many examples are done.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [N, S]. `label_ids`: int32 [N];
        0 for examples without a label, as in 2018.

    Source: convert_single_example of run_classifier.py, 2018.
    """
    columns = _packed(examples, max_seq_length, tokenizer, progress)
    return columns | {"label_ids": _label_ids(examples, labels)}


def _packed(examples, max_seq_length, tokenizer, progress):
    """Returns the encoder's columns, a row an example, in memory that is taken once."""
    columns = {
        name: np.zeros((len(examples), max_seq_length), np.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    for start in range(0, len(examples), EXAMPLES_PER_CALL):
        part = examples[start : start + EXAMPLES_PER_CALL]
        packed = packing.pack(
            tokenizer,
            [example.text_a for example in part],
            texts_b=_second_texts(part),
            max_seq_length=max_seq_length,
        )
        for name, column in columns.items():
            column[start : start + len(part)] = packed[name]
        progress("tokenize", start + len(part), len(examples), unit="examples")
    return columns


def _second_texts(examples):
    if examples[0].text_b is None:
        return None
    return [example.text_b for example in examples]


def _label_ids(examples, labels):
    id_of = {label: index for index, label in enumerate(labels)} | {None: 0}
    return np.array([id_of[example.label] for example in examples], np.int32)
