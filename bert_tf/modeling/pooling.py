"""One vector per text from the vectors of its pieces.

Shape letters: B batch, S sequence, H hidden.
"""

from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

# Shorter vectors count as zero and are not scaled to length 1.
_SMALLEST_LENGTH = 1e-12


def pool(
    outputs: numerics.Features, input_mask: numerics.Tensor, kind: str
) -> numerics.Tensor:
    """Returns one vector per sequence, float32 [B, H].

    Padding never counts. A row without real pieces gives zeros (except for "cls").

    Args:
        outputs: what `BertModel` returns; only `sequence_output` [B, S, H], of any
            float dtype, is used.
        input_mask: integer [B, S], 1 for a real piece; [CLS] and [SEP] are real.
        kind: "cls" (the vector of the first piece), "mean" or "max" (of each dimension,
            over the real pieces).

    Raises:
        ValueError: `kind` is unknown.

    Example:
        vectors = pooling.pool(model(features), features["input_mask"], "mean")
        cosines = ops.matmul(normalize(vectors), ops.transpose(normalize(vectors)))

    Source: section 3 of "Sentence-BERT" (Reimers and Gurevych, 2019).
    """
    _check_known(kind)
    vectors = ops.cast(outputs["sequence_output"], "float32")  # [B, S, H]
    return _KINDS[kind](vectors, input_mask)


def check(kind: str, config: config_module.BertConfig) -> None:
    """Raises a ValueError if `kind` is unknown, or is "cls" under causal attention."""
    _check_known(kind)
    if kind == "cls" and config.is_causal:
        raise ValueError(
            "pooling cls: in a left-to-right model, [CLS] attends only to itself; "
            "expected mean or max."
        )


def _check_known(kind):
    if kind not in _KINDS:
        raise ValueError(
            f"Unknown kind of pooling {kind!r}; expected one of {', '.join(KINDS)}."
        )


def normalize(vectors: numerics.Tensor) -> numerics.Tensor:
    """Returns vectors of length 1, float32 [B, H]; zero vectors stay zero.

    Args:
        vectors: [B, H], any float dtype.
    """
    vectors = ops.cast(vectors, "float32")
    square = ops.sum(ops.square(vectors), axis=-1, keepdims=True)  # [B, 1]
    # The limit is inside the square root, whose gradient at 0 is not finite.
    return vectors / ops.sqrt(ops.maximum(square, _SMALLEST_LENGTH**2))


def _cls(vectors, input_mask):
    return vectors[:, 0]  # [B, H]


def _mean(vectors, input_mask):
    weights = ops.expand_dims(ops.cast(input_mask, "float32"), -1)  # [B, S, 1]
    # Selected instead of multiplied, so that non-finite padding has no effect.
    real = ops.where(weights > 0, vectors, 0.0)
    count = ops.maximum(ops.sum(weights, axis=1), 1.0)  # [B, 1]
    return ops.sum(real, axis=1) / count  # [B, H]


def _max(vectors, input_mask):
    is_real = ops.expand_dims(ops.cast(input_mask, "bool"), -1)  # [B, S, 1]
    highest = ops.max(ops.where(is_real, vectors, -float("inf")), axis=1)  # [B, H]
    return ops.where(ops.any(is_real, axis=1), highest, 0.0)


_KINDS = {"cls": _cls, "mean": _mean, "max": _max}
KINDS = tuple(_KINDS)
