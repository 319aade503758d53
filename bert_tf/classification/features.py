"""Examples to the columns that the model reads."""

from collections.abc import Sequence

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.classification import examples as examples_module
from bert_tf.data import packing

# Enough for the in-graph tokenizer to be busy, little enough for a moving bar.
ROWS_PER_CALL = 2048


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
    columns = {
        name: np.zeros((len(examples), max_seq_length), np.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    for start in range(0, len(examples), ROWS_PER_CALL):
        part = examples[start : start + ROWS_PER_CALL]
        packed = packing.pack(
            tokenizer,
            [example.text_a for example in part],
            texts_b=_second_texts(part),
            max_seq_length=max_seq_length,
        )
        for name, column in columns.items():
            column[start : start + len(part)] = packed[name]
        progress("tokenize", start + len(part), len(examples), unit="examples")
    return columns | {"label_ids": _label_ids(examples, labels)}


def _second_texts(examples):
    if examples[0].text_b is None:
        return None
    return [example.text_b for example in examples]


def _label_ids(examples, labels):
    id_of = {label: index for index, label in enumerate(labels)} | {None: 0}
    return np.array([id_of[example.label] for example in examples], np.int32)
