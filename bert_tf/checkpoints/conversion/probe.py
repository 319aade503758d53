"""A batch that shows whether two models compute the same.

Shape letters: B batch, S sequence, C choices, M masked positions.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.modeling import config as config_module

# Absolute for outputs up to 1, relative to the largest output above.
TOLERANCE = 1e-5
_MAX_LENGTH = 24
_SIZES = {"B": 3, "C": 2, "M": 4}
# All layers but the last, and outputs derived from other outputs.
_NOT_COMPARED = ("all_encoder_layers", "probabilities")


def features(
    config: config_module.BertConfig, kind: str = "encoder"
) -> dict[str, np.ndarray]:
    """Returns rows of random pieces with two segments each, padded to one length.

    Args:
        config: BertConfig.
        kind: kind of head, which decides on the features and their shapes.

    Returns:
        {name: int32 array}, such as `input_ids`, `input_mask` and `segment_ids` [B, S].
    """
    length = min(_MAX_LENGTH, config.max_position_embeddings)
    sizes = {**_SIZES, "S": length}
    shapes = {
        name: tuple(sizes[letter] for letter in letters)
        for name, letters in checkpoint_heads.HEADS[kind].features.items()
    }
    shape = shapes["input_ids"]
    rng = np.random.default_rng(20181011)
    ids = rng.integers(config.vocab_size, size=shape)
    num_real = length - rng.integers(length // 2 + 1, size=shape[:-1])
    num_real.flat[0] = length  # One row is full; the remaining rows are padded.
    positions = np.arange(length)
    mask = positions < num_real[..., None]
    segments = mask & (positions >= num_real[..., None] // 2)
    if config.type_vocab_size < 2:
        segments = np.zeros_like(segments)
    columns = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments}
    for name in shapes.keys() - columns.keys():  # Positions within the shortest row.
        columns[name] = rng.integers(length // 2, size=shapes[name])
    return {name: column.astype(np.int32) for name, column in columns.items()}


def outputs(model: Any, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns {name: float32 array} of a model's outputs for a batch."""
    computed = model(batch, training=False)
    return {
        name: np.asarray(value, np.float32)
        for name, value in computed.items()
        if name not in _NOT_COMPARED
    }


def difference(expected: np.ndarray, got: np.ndarray) -> float:
    """Returns the largest difference, relative to the largest value if that is above 1.

    NaN if the shapes differ or either array has a NaN.
    """
    if expected.shape != got.shape:
        return float("nan")
    largest = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    return float(np.max(np.abs(expected - got), initial=0.0)) / largest
