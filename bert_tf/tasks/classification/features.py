"""Features: the numbers that the model reads, one row per example or window.

Shape letters: S sequence, C classes.
"""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import task as task_module
from bert_tf.tasks.classification import windows

# Large enough for an efficient in-graph tokenizer, small enough for a smooth bar.
EXAMPLES_PER_CALL = 2048


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows:
    """The features of a list of examples."""

    # `input_ids`, `input_mask`, `segment_ids`: int32 [rows, S], and `label_columns`.
    columns: Mapping[str, np.ndarray]
    # int64 [rows]: index of each row's example. Long texts can have several rows.
    example_numbers: np.ndarray
    # int64 [N]: pieces of each example before truncation, without [CLS] and [SEP].
    # None for windows, which keep the whole text.
    lengths: np.ndarray | None = None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.example_numbers)


def rows_of(
    examples: Sequence[examples_module.InputExample],
    task: task_module.Task,
    tokenizer: Any,
    *,
    weights: Mapping[str, float] | None = None,
    progress: progress_module.Progress = progress_module.silent,
) -> Rows:
    """Returns the features of examples, in windows if the task has a `doc_stride`.

    All windows of an example have its label. Their weights in the training loss add up
    to the weight of an example with one row (`example_weights`).

    Args:
        examples: N examples, all with one text or all with two.
        task: of the run.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        weights: weight of each class in the loss. None: all weights are 1.
        progress: reports the number of tokenized examples.
    """
    lengths: list[int] = []
    if task.doc_stride:
        columns, numbers = _windows(examples, task, tokenizer, progress)
    else:
        columns = _packed(
            examples,
            task.max_seq_length,
            tokenizer,
            progress,
            lengths=lengths,
            truncate_pair=task.truncate_pair,
        )
        numbers = np.arange(len(examples))
    labels = label_columns(examples, task, weights)
    if len(numbers) > len(examples):
        share = 1 / np.bincount(numbers, minlength=len(examples))
        share = share.astype(np.float32) * labels.get("example_weights", np.float32(1))
        labels["example_weights"] = share
    columns |= {name: column[numbers] for name, column in labels.items()}
    return Rows(
        columns=columns,
        example_numbers=numbers,
        lengths=np.array(lengths, np.int64) if lengths else None,
    )


def _windows(examples, task, tokenizer, progress):
    """Returns the encoder's columns of all windows, and the example of each window."""
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


def label_columns(
    examples: Sequence[examples_module.InputExample],
    task: task_module.Task,
    weights: Mapping[str, float] | None = None,
) -> dict[str, np.ndarray]:
    """Returns the columns of the labels, one row per example.

    The models in `modeling.classifier` read them:

    | kind of label | labels                         | weights, if given               |
    |---------------|--------------------------------|---------------------------------|
    | single_label  | `label_ids` int32 [N]          | `example_weights` float32 [N]   |
    | multi_label   | `label_indicators` int32 [N, C]| `label_weights` float32 [N, C]  |
    | regression    | `label_values` float32 [N]     |                                 |

    Examples without a label have `label_ids` 0, as in the release. `label_weights` is
    the weight of the class if the example has it, and 1 otherwise.

    Args:
        examples: N examples.
        task: of the run.
        weights: as in `rows_of`.
    """
    labels = [example.label for example in examples]
    if task.label_kind == label_kinds.REGRESSION:
        values = [0.0 if x is None else label_kinds.number_in(x) for x in labels]
        return {"label_values": np.array(values, np.float32)}
    number_of = {label: index for index, label in enumerate(task.labels)}
    if task.label_kind == label_kinds.SINGLE_LABEL:
        columns = {"label_ids": _label_ids(examples, task.labels)}
        if weights:
            drawn = [weights.get(label or "", 1.0) for label in labels]
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
    tokenizer: Any,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> dict[str, np.ndarray]:
    """Returns the features of examples with one class each.

    Args:
        examples: N examples, all with one text or all with two.
        labels: class names, in the order of the model's outputs.
        max_seq_length: S. A single text is truncated to S - 2 word pieces, a pair to
            S - 3 together, the longer text first.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        progress: reports the number of tokenized examples.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [N, S]. `label_ids`: int32 [N],
        0 for examples without a label, as in the release.

    Source: convert_single_example of run_classifier.py, 2018.
    """
    columns = _packed(examples, max_seq_length, tokenizer, progress)
    return columns | {"label_ids": _label_ids(examples, labels)}


def _packed(
    examples,
    max_seq_length,
    tokenizer,
    progress,
    *,
    lengths=None,
    truncate_pair=packing.truncate_pair,
):
    """Returns the encoder's columns, one row per example.

    A pair is one sequence, [CLS] A [SEP] B [SEP], rather than two encoded separately:
    self-attention then compares both texts in every layer, which replaces the extra
    cross-attention of earlier pair models (section 3.2 of the paper). Segment ids mark
    the second text. Both texts share S positions, so the longer one is truncated first:
    a word piece of the shorter text is likely to say more.
    """
    # Allocated once: joining parts at the end would need twice the memory.
    columns = {
        name: np.zeros((len(examples), max_seq_length), np.int32)
        for name in packing.ENCODER_COLUMNS
    }
    for start in range(0, len(examples), EXAMPLES_PER_CALL):
        part = examples[start : start + EXAMPLES_PER_CALL]
        packed = packing.pack(
            tokenizer,
            [example.text_a for example in part],
            texts_b=_second_texts(part),
            max_seq_length=max_seq_length,
            lengths=lengths,
            truncate_pair=truncate_pair,
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
