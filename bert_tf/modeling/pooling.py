"""One vector a text from the vectors of its pieces.

Shape letters: B batch, S sequence, H hidden.
"""

from keras import ops

# Below it a vector counts as zero and stays as it is.
_SMALLEST_LENGTH = 1e-12


def pool(outputs, input_mask, kind):
    """Returns one vector for each sequence, float32 [B, H].

    Padding never counts. A row without any real piece gives zeros ("cls" apart).

    Args:
        outputs: what `BertModel` returns; its `sequence_output` [B, S, H] is read, in
            any float dtype.
        input_mask: integer [B, S], 1 for a real piece; [CLS] and [SEP] are real.
        kind: "cls" (the vector of the first piece), "mean" or "max" (of every
            dimension, over the real pieces).

    Raises:
        ValueError: there is no such kind.

    Example:
        vectors = pooling.pool(model(features), features["input_mask"], "mean")
        cosines = ops.matmul(normalize(vectors), ops.transpose(normalize(vectors)))

    Source: section 3 of "Sentence-BERT" (Reimers and Gurevych, 2019).
    """
    if kind not in _KINDS:
        raise ValueError(
            f"Unknown kind of pooling {kind!r}; expected one of {', '.join(KINDS)}."
        )
    vectors = ops.cast(outputs["sequence_output"], "float32")  # [B, S, H]
    return _KINDS[kind](vectors, input_mask)


def check(kind, config):
    """Refuses a kind of pooling that tells nothing about a text.

    Args:
        kind: see `pool`.
        config: `BertConfig` of the encoder.

    Raises:
        ValueError: there is no such kind, or it is "cls" under causal attention.
    """
    if kind not in _KINDS:
        raise ValueError(
            f"Unknown kind of pooling {kind!r}; expected one of {', '.join(KINDS)}."
        )
    if kind == "cls" and config.is_causal:
        raise ValueError(
            "pooling cls: in a left-to-right model [CLS] sees nothing of the text; "
            "expected mean or max."
        )


def normalize(vectors):
    """Returns vectors of length 1, float32 [B, H]; a zero vector stays one.

    Args:
        vectors: [B, H], any float dtype.
    """
    vectors = ops.cast(vectors, "float32")
    square = ops.sum(ops.square(vectors), axis=-1, keepdims=True)  # [B, 1]
    # The limit stands inside the root, whose gradient at 0 is not finite.
    return vectors / ops.sqrt(ops.maximum(square, _SMALLEST_LENGTH**2))


def _cls(vectors, input_mask):
    return vectors[:, 0]  # [B, H]


def _mean(vectors, input_mask):
    weights = ops.cast(input_mask, "float32")[:, :, None]  # [B, S, 1]
    # Chosen, not multiplied: a vector of padding that is not finite leaves no trace.
    real = ops.where(weights > 0, vectors, 0.0)
    count = ops.maximum(ops.sum(weights, axis=1), 1.0)  # [B, 1]
    return ops.sum(real, axis=1) / count  # [B, H]


def _max(vectors, input_mask):
    is_real = ops.cast(input_mask, "bool")[:, :, None]  # [B, S, 1]
    highest = ops.max(ops.where(is_real, vectors, -float("inf")), axis=1)  # [B, H]
    return ops.where(ops.any(is_real, axis=1), highest, 0.0)


_KINDS = {"cls": _cls, "mean": _mean, "max": _max}
KINDS = tuple(_KINDS)
