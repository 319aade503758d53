"""The SavedModels of retrieval: texts to vectors, or pairs to scores.

Shape letters: B batch, H hidden.
"""

from typing import Any

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.modeling import numerics
from bert_tf.serving import signatures


class VectorSignatures(signatures.TaskSignatures):
    """The functions of a trained bi-encoder, or of an exported encoder.

    An exported encoder is a bi-encoder whose queries and passages have the same maximum
    length.

    Args:
        predictor: `BiEncoderPredictor`.

    Attributes:
        functions: `serving_default` takes `text`, passages, string [B], and returns
            `embedding`, float32 [B, H], usually vectors of length 1. `query` does the
            same for queries, whose maximum length and prompt may differ. `ids` returns
            `embedding` and ignores `segment_ids`.
    """

    def __init__(self, predictor: Any):
        super().__init__(predictor, query=(self._of_queries, signatures.texts("text")))

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `embedding`."""
        used = {name: features[name] for name in ("input_ids", "input_mask")}
        return {"embedding": self.predictor.model(used)["embeddings"]}

    def _of_texts(self, text):
        task = self.predictor.task
        return self._vectors(text, task.max_seq_length, task.passage_prompt)

    def _of_queries(self, text):
        task = self.predictor.task
        return self._vectors(text, task.max_query_length, task.query_prompt)

    def _vectors(self, text, max_seq_length, prompt):
        return self.in_parts(
            graph_packing.pack_ragged(
                self._tokenizer.tokenize(_with_prompt(text, prompt)),
                max_seq_length=max_seq_length,
                **self._frame,
            )
        )


class ScoreSignatures(signatures.TaskSignatures):
    """The functions of a trained cross-encoder.

    Args:
        predictor: `CrossEncoderPredictor`.

    Attributes:
        functions: `serving_default` takes `text`, the query, and `text_b`, the passage,
            string [B], and returns `score`, float32 [B]. `ids` returns `score`.
    """

    TEXTS = ("text", "text_b")

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `score`."""
        logits = self.predictor.model(features)["logits"]
        activation = self.predictor.task.output_activation
        return {"score": numerics.score_of(logits, activation)}

    def _of_texts(self, text, text_b):
        task = self.predictor.task
        queries = self._tokenizer.tokenize(_with_prompt(text, task.query_prompt))
        passages = self._tokenizer.tokenize(text_b)
        known = {"max_seq_length": task.max_seq_length, **self._frame}
        pack = graph_packing.pack_ragged
        if task.longer_keeps_more:
            return self.in_parts(
                pack(queries, passages, longer_keeps_more=True, **known)
            )
        queries = queries[:, : task.max_query_length - 2]
        # Only the passage is truncated, even if it is shorter than the query.
        room = task.max_seq_length - task.num_special - queries.row_lengths()
        passages = graph_packing.cut(passages, tf.minimum(passages.row_lengths(), room))
        return self.in_parts(pack(queries, passages, **known))


def _with_prompt(text: tf.Tensor, prompt: str) -> tf.Tensor:
    return tf.strings.join([prompt, text]) if prompt else text


def create(predictor: Any) -> VectorSignatures | ScoreSignatures:
    """Returns the signatures of a trained bi-encoder or cross-encoder."""
    if predictor.task.is_bi_encoder:
        return VectorSignatures(predictor)
    return ScoreSignatures(predictor)
