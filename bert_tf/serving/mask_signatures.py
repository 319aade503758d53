"""The SavedModels of masked-word models: texts with [MASK] to the likeliest words.

Shape letters: B batch, S sequence, M masks, K candidates per mask, V vocabulary.
"""

from typing import Any

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.pretraining import predictor as mask_predictor
from bert_tf.serving import signatures

OK = "ok"
NO_MASK = "no_mask"
TOO_LONG = "too_long"
# The logits of a [MASK] have one value per piece of the vocabulary, so they need as
# much memory as several positions.
_COST_OF_MASK = 4


class MaskSignatures(signatures.TaskSignatures):
    """The functions of a masked-word model.

    Args:
        predictor: `MaskPredictor`.

    Attributes:
        functions: `serving_default` takes `text`, string [B], and returns `tokens`,
            string [B, M, K], and `probabilities`, float32 [B, M, K], the likeliest
            piece first. M is the largest number of masks in a text, at least 1; shorter
            rows are padded with "" and 0. `num_masks`, int32 [B], is the number of
            masks in each text. `status`, string [B], is "ok", "no_mask", or "too_long":
            such a text is not truncated, because a mask could be lost, and has no
            candidates. `ids` returns the same without `status`, for the positions that
            hold the id of [MASK], and `positions`, int32 [B, M], padded with -1.
    """

    def __init__(self, predictor: Any):
        vocabulary = predictor.vocabulary
        self._top_k = min(predictor.task.top_k, len(vocabulary))
        self._mask_id = vocabulary[mask_predictor.MASK]
        with tf.init_scope(), tf.device("/CPU:0"):
            self._tokens = tf.constant(vocabulary.tokens)  # [V]
        super().__init__(predictor)

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the likeliest pieces of every [MASK]."""
        is_mask = self._is_mask(features)
        counts = tf.reduce_sum(is_mask, axis=1)  # [B]
        num_masks = _most(counts)
        is_real = tf.sequence_mask(counts, num_masks)  # [B, M]
        # The stable sort puts the masks first, in their order.
        order = tf.argsort(is_mask, 1, "DESCENDING", stable=True)
        positions = order[:, :num_masks]  # [B, M]
        likeliest = self.predictor.likeliest(
            {**features, "masked_lm_positions": positions}, self._top_k
        )
        tokens = tf.gather(self._tokens, likeliest.indices)
        is_candidate = is_real[:, :, tf.newaxis]
        return {
            "tokens": tf.where(is_candidate, tokens, ""),
            "probabilities": tf.where(is_candidate, likeliest.values, 0.0),
            "positions": tf.where(is_real, positions, -1),
            "num_masks": counts,
        }

    def of_features(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the outputs of the `ids` signature."""
        counts = tf.reduce_sum(self._is_mask(features), axis=1)  # [B]
        return self.in_parts(
            features,
            width=_most(counts),
            costs=_COST_OF_MASK * counts,
            padding={"positions": -1},
        )

    def _is_mask(self, features):
        """Returns 1 for the positions of [MASK], otherwise 0: int32 [B, S]."""
        is_mask = features["input_ids"] == self._mask_id
        return tf.cast(is_mask & (features["input_mask"] != 0), tf.int32)

    def _of_texts(self, text):
        pieces = self._tokenizer.tokenize(text)
        is_mask = tf.cast(pieces == self._mask_id, tf.int32)
        num_masks = tf.reduce_sum(is_mask, axis=1)  # [B]
        lengths = pieces.row_lengths()
        is_too_long = lengths > self.predictor.task.max_seq_length - 2
        pieces = graph_packing.cut(
            pieces, tf.where(is_too_long, tf.zeros_like(lengths), lengths)
        )
        outputs = self.of_features(graph_packing.framed(pieces, **self._frame))
        status = tf.where(num_masks == 0, NO_MASK, OK)
        del outputs["positions"]
        return outputs | {
            "num_masks": num_masks,
            "status": tf.where(is_too_long, TOO_LONG, status),
        }


def _most(counts):
    """Returns M, the largest number of masks in a row, at least 1."""
    return tf.reduce_max(tf.concat([counts, [1]], axis=0))
