"""A batch that shows whether two models compute the same.

Shape letters: B batch, S sequence, C endings, M masked positions.
"""

import numpy as np

# Of outputs that are at most 1; larger ones are measured in parts of the largest.
TOLERANCE = 1e-5
_NUM_ROWS = 3
_MAX_LENGTH = 24
_NUM_MASKED = 4
_NUM_ENDINGS = 2
# The layers before the last one, and what follows from other outputs.
_NOT_COMPARED = ("all_encoder_layers", "probabilities")


def features(config, kind="encoder"):
    """Returns rows of random pieces, padded to one length, of two segments each.

    Args:
        config: BertConfig.
        kind: of the head; for multiple choice there is an axis of endings.

    Returns:
        A dict: `input_ids`, `input_mask`, `segment_ids` int32 [B, S] or [B, C, S], and
        `masked_lm_positions` int32 [B, M].
    """
    length = min(_MAX_LENGTH, config.max_position_embeddings)
    shape = (_NUM_ROWS, length)
    if kind == "multiple_choice":
        shape = (_NUM_ROWS, _NUM_ENDINGS, length)
    rng = np.random.default_rng(20181011)
    ids = rng.integers(config.vocab_size, size=shape)
    num_real = length - rng.integers(length // 2 + 1, size=shape[:-1])
    num_real.flat[0] = length  # One row is full, the others are padded.
    positions = np.arange(length)
    mask = positions < num_real[..., None]
    segments = mask & (positions >= num_real[..., None] // 2)
    if config.type_vocab_size < 2:
        segments = np.zeros_like(segments)
    masked = rng.integers(length // 2, size=(_NUM_ROWS, _NUM_MASKED))
    columns = {
        "input_ids": ids * mask,
        "input_mask": mask,
        "segment_ids": segments,
        "masked_lm_positions": masked,
    }
    return {name: column.astype(np.int32) for name, column in columns.items()}


def outputs(model, batch):
    """Returns {name: float32 array} of what a model computes for a batch."""
    computed = model(batch, training=False)
    return {
        name: np.asarray(value, np.float32)
        for name, value in computed.items()
        if name not in _NOT_COMPARED
    }


def difference(expected, got):
    """Returns the largest difference; of values above 1, in parts of the largest.

    NaN where either has one, which is no difference of any size.
    """
    if expected.shape != got.shape:
        return float("nan")
    largest = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    return float(np.max(np.abs(expected - got), initial=0.0)) / largest
