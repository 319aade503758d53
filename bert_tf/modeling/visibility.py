"""Which positions see each other, and whose vector represents a sequence.

In the simplest batch, a row is one sequence with padding behind it. Rows may also hold
several sequences, and a model may read from left to right.

Shape letters: B batch, S sequence, F from-sequence, T to-sequence, K sequences per row.
"""

from keras import ops

from bert_tf.modeling import numerics


def visible_positions(
    features: numerics.Features, *, is_causal: bool = False
) -> numerics.Tensor:
    """Returns which positions each position sees, as `plain.Sequences` takes it.

    Args:
        features: those of `BertModel.call`, without aliases. If rows hold several
            sequences, a position sees only its own.
        is_causal: whether a position sees only itself and what precedes it.

    Returns:
        int32 [B, T] if all positions see the same ones, else [B, F, T].
    """
    visible = numerics.input_mask_of(features)
    length = ops.shape(visible)[1]
    if "sequence_ids" in features:
        sequence_ids = features["sequence_ids"]
        is_same = ops.equal(sequence_ids[:, :, None], sequence_ids[:, None, :])
        visible = visible[:, None, :] * ops.cast(is_same, "int32")  # [B, F, T]
    if is_causal:
        position = ops.arange(length, dtype="int32")
        is_before = ops.cast(position[None, :] <= position[:, None], "int32")  # [F, T]
        visible = visible if len(visible.shape) == 3 else visible[:, None, :]
        visible = visible * is_before  # [B, F, T]
    return visible


def pooled_positions(
    features: numerics.Features, *, is_causal: bool = False
) -> numerics.Tensor:
    """Returns int32 [B, K]: [CLS] of each sequence, or the last piece of each.

    Under causal attention, [CLS] comes first and sees only itself, so its vector is the
    same for every text. The last real piece has seen the whole sequence.

    Args:
        features, is_causal: those of `visible_positions`.
    """
    input_mask = numerics.input_mask_of(features)
    first = features.get("cls_positions", ops.zeros_like(input_mask[:, :1]))
    if not is_causal:
        return ops.cast(first, "int32")
    sequence_ids = features.get("sequence_ids", ops.zeros_like(input_mask))
    numbers = ops.take_along_axis(sequence_ids, first, axis=1)  # [B, K]
    is_same = ops.equal(sequence_ids[:, None, :], numbers[:, :, None])
    is_real = ops.cast(input_mask, "bool")[:, None, :]
    position = ops.arange(ops.shape(input_mask)[1], dtype="int32")
    real = ops.where(ops.logical_and(is_same, is_real), position, 0)  # [B, K, S]
    return ops.max(real, axis=-1)
