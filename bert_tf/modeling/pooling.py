"""One vector per text from the vectors of its pieces.

Shape letters: B batch, S sequence, H hidden.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

# Shorter vectors count as zero and are not scaled to length 1.
_SMALLEST_LENGTH = 1e-12


@keras.saving.register_keras_serializable("bert_tf")
class Pooling(keras.layers.Layer):
    """Makes one vector per text of the vectors of its pieces; see `pool`.

    Args:
        kind: that of `pool`.
        normalize: whether the vectors get the length 1.
        **kwargs: `name` and so on, as for every Keras layer.

    Example:
        vectors = bert_tf.Pooling("mean")(encoder(features), features["input_mask"])
    """

    def __init__(self, kind: str = "mean", *, normalize: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        _check_known(kind)
        self.kind = kind
        self.normalize = normalize
        self.built = True  # There are no weights.

    def call(
        self, outputs: numerics.Features, input_mask: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns float32 [B, H] for the outputs of a `BertModel`."""
        vectors = pool(outputs, input_mask, self.kind)
        return normalize(vectors) if self.normalize else vectors

    def compute_output_spec(self, outputs: Any, input_mask: Any) -> keras.KerasTensor:
        """Returns the shape and dtype of the vectors."""
        batch, _, width = outputs["sequence_output"].shape
        return keras.KerasTensor((batch, width), "float32")

    def compute_output_shape(self, outputs_shape: Any, input_mask_shape: Any) -> Any:
        """Returns (B, H)."""
        batch, _, width = outputs_shape["sequence_output"]
        return (batch, width)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as plain values."""
        arguments = {"kind": self.kind, "normalize": self.normalize}
        return {**super().get_config(), **arguments}


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
