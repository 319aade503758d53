"""Features: the numbers that the model reads, one sequence per ending.

Shape letters: N examples, C endings, S sequence.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tasks.multiple_choice import examples as examples_module

# Large enough for an efficient in-graph tokenizer, small enough for a smooth bar.
EXAMPLES_PER_CALL = 1024


def convert_examples_to_features(
    examples: Sequence[examples_module.ChoiceExample],
    max_seq_length: int,
    tokenizer: Any,
) -> packing.Rows:
    """Returns the features of examples: one sequence per ending.

    A sequence is [CLS] start [SEP] ending [SEP]. The start is segment 0. Long sequences
    are truncated at the end of the longer text.

    Each ending has its own sequence with the start, so self-attention compares it with
    the start exactly as for sentence pairs. The model scores each sequence with one
    vector on [CLS], and a softmax over the C scores chooses (section 4.4). The single
    new vector serves any number of endings, in any order.

    Args:
        examples: N examples with C endings each.
        max_seq_length: S.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [N, C, S]. `label_ids`: int32
        [N], 0 for examples without a label. The lengths are those of each example's
        start and longest ending.
    """
    num_examples, parts = len(examples), []
    lengths: list[int] = []
    for start in range(0, num_examples, EXAMPLES_PER_CALL):
        part = examples[start : start + EXAMPLES_PER_CALL]
        packed = pack_endings(
            tokenizer,
            [example.start for example in part],
            [example.endings for example in part],
            max_seq_length=max_seq_length,
            lengths=lengths,
        )
        parts.append(packed)
        done = start + len(part)
        progress_module.report("tokenize", done, num_examples, unit="examples")
    shape = (num_examples, -1, max_seq_length)  # [N, C, S]
    columns = {
        name: np.concatenate([packed.pop(name) for packed in parts]).reshape(shape)
        for name in packing.ENCODER_COLUMNS
    }
    label_ids = [example.label or 0 for example in examples]
    return packing.Rows(
        columns=columns | {"label_ids": np.array(label_ids, np.int32)},
        lengths=np.max(np.reshape(lengths, (num_examples, -1)), axis=1),
    )


def pack_endings(
    tokenizer: Any,
    starts: Sequence[str],
    endings: Sequence[Sequence[str]],
    *,
    max_seq_length: int,
    lengths: list[int] | None = None,
) -> dict[str, np.ndarray]:
    """Returns the sequences of all endings as rows of one array.

    Args:
        tokenizer: an `InGraphTokenizer` or a `FullTokenizer`.
        starts: N texts.
        endings: N lists of texts. The lists may differ in length.
        max_seq_length: S.
        lengths: a list that collects the number of pieces of each sequence before it
            is cut, without special tokens.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [total number of endings, S].
    """
    start_ids = packing.token_ids(tokenizer, starts)
    ending_ids = packing.token_ids(tokenizer, list(itertools.chain(*endings)))
    repeated = [ids for ids, own in zip(start_ids, endings, strict=True) for _ in own]
    if lengths is not None:
        lengths += [len(a) + len(b) for a, b in zip(repeated, ending_ids, strict=True)]
    return packing.pack_ids(tokenizer.vocabulary, repeated, max_seq_length, ending_ids)
