"""Features: the numbers that the model reads, and the weights of classes in its loss.

Shape letters: S sequence, C classes.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import label_names
from bert_tf.data import packing
from bert_tf.tasks.classification import examples as examples_module

# Large enough for an efficient in-graph tokenizer, small enough for a smooth bar.
EXAMPLES_PER_CALL = 2048
BALANCED = "balanced"  # Class weights that follow from the training examples.


def rows_of(
    examples: Sequence[examples_module.InputExample],
    record: Any,
    tokenizer: Any,
    *,
    weights: Mapping[str, float] | None = None,
) -> packing.Rows:
    """Returns the features of examples, `input_ids` and so on and `label_columns`.

    Args:
        examples: N examples, all with one text or all with two.
        record: of the run.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        weights: weight of each class in the loss. None: all weights are 1.
    """
    lengths: list[int] = []
    columns = _packed(
        examples,
        tokenizer,
        progress_module.report,
        max_seq_length=record.max_seq_length,
        truncate_pair=record.truncate_pair,
        lengths=lengths,
    )
    columns |= label_columns(examples, record, weights)
    return packing.Rows(columns=columns, lengths=np.array(lengths, np.int64))


def convert_examples_to_features(
    examples: Sequence[examples_module.InputExample],
    labels: Sequence[str],
    max_seq_length: int,
    tokenizer: Any,
    *,
    progress: progress_module.Progress = progress_module.report,
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
    columns = _packed(examples, tokenizer, progress, max_seq_length=max_seq_length)
    return columns | {"label_ids": _label_ids(examples, labels)}


def _packed(examples, tokenizer, progress, **settings):
    """Returns the encoder's columns; `settings` are those of `packing.pack`.

    A pair is one sequence, [CLS] A [SEP] B [SEP], rather than two encoded separately:
    self-attention then compares both texts in every layer, which replaces the extra
    cross-attention of earlier pair models (section 3.2 of the paper). Segment ids mark
    the second text. Both texts share S positions, so the longer one is truncated first:
    a word piece of the shorter text is likely to say more.
    """
    parts = []
    for start in range(0, len(examples), EXAMPLES_PER_CALL):
        part = examples[start : start + EXAMPLES_PER_CALL]
        is_pair = part[0].text_b is not None
        texts_b = [example.text_b for example in part] if is_pair else None
        texts = [example.text_a for example in part]
        parts.append(packing.pack(tokenizer, texts, texts_b=texts_b, **settings))
        progress("tokenize", start + len(part), len(examples), unit="examples")
    # One column at a time, so that only one of them is in memory twice.
    return {
        name: np.concatenate([packed.pop(name) for packed in parts])
        for name in packing.ENCODER_COLUMNS
    }


def label_columns(
    examples: Sequence[examples_module.InputExample],
    record: Any,
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
        record: of the run.
        weights: as in `rows_of`.
    """
    labels = [example.label for example in examples]
    if record.label_kind == checkpoint_heads.REGRESSION:
        values = [0.0 if x is None else label_names.number_in(x) for x in labels]
        return {"label_values": np.array(values, np.float32)}
    if record.label_kind == checkpoint_heads.SINGLE_LABEL:
        columns = {"label_ids": _label_ids(examples, record.labels)}
        if weights:
            drawn = [weights.get(label or "", 1.0) for label in labels]
            columns["example_weights"] = np.array(drawn, np.float32)
        return columns
    number_of = {label: index for index, label in enumerate(record.labels)}
    indicators = np.zeros((len(labels), len(record.labels)), np.int32)
    for row, text in zip(indicators, labels, strict=True):
        for name in label_names.names_in(text or "", record.label_separator):
            row[number_of[name]] = 1
    columns = {"label_indicators": indicators}
    if weights:
        of_class = np.array([weights[name] for name in record.labels], np.float32)
        columns["label_weights"] = np.where(indicators == 1, of_class, np.float32(1))
    return columns


def _label_ids(examples, labels):
    id_of = {label: index for index, label in enumerate(labels)} | {None: 0}
    return np.array([id_of[example.label] for example in examples], np.int32)


def class_weights(
    items: Sequence[str],
    record: Any,
    examples: Sequence[examples_module.InputExample],
) -> Mapping[str, float] | None:
    """Returns the weight of each class in the loss, or None if no weights are given.

    The weight of a class is that of the examples that have it. The loss is already a
    weighted sum divided by the sum of the weights (padding rows have weight 0), so the
    result does not depend on how a batch is divided among devices.

    `balanced` derives the weights from the training examples. Among N examples and C
    classes, a class with n examples has the weight N / (C n), so that all classes have
    the same total weight. If an example can have several classes, the weight is
    (N - n) / n, so that the examples with the class weigh as much as those without.

    Args:
        items: values of --class_weights: `NAME=WEIGHT`, or `balanced` alone. Classes
            that they do not name have weight 1.
        record: of the run.
        examples: the training examples.

    Raises:
        ValueError: an item has another form, the task does not have a class, or
            `balanced` is given and a class has no training examples.
    """
    if not items:
        return None
    if tuple(items) == (BALANCED,):
        return _balanced(record, examples)
    weights = dict.fromkeys(record.labels, 1.0)
    for item in items:
        name, separator, text = item.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not (separator and 0 < weight < float("inf")):
            raise ValueError(
                f"--class_weights: expected {BALANCED!r}, or NAME=WEIGHT with a "
                f"positive weight, got {item!r}."
            )
        if name not in weights:
            raise ValueError(
                f"--class_weights: unknown class {name!r}; the classes are "
                f"{', '.join(record.labels)}."
            )
        weights[name] = weight
    return weights


def _balanced(record, examples):
    is_multi = record.label_kind == checkpoint_heads.MULTI_LABEL
    columns = label_columns(examples, record)
    if is_multi:
        counts = np.sum(columns["label_indicators"], axis=0)
    else:
        counts = np.bincount(columns["label_ids"], minlength=len(record.labels))
    weights = {}
    for name, count in zip(record.labels, counts.tolist(), strict=True):
        num_without = len(examples) - count
        if count == 0 or (is_multi and num_without == 0):
            which = "no" if count == 0 else "every"
            raise ValueError(
                f"--class_weights={BALANCED}: {which} training example has the class "
                f"{name!r}; pass the weights by name, as in {name}=1."
            )
        balanced = len(examples) / (len(record.labels) * count)
        weights[name] = num_without / count if is_multi else balanced
    return weights
