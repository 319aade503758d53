"""BertBiEncoder and BertCrossEncoder: two ways to score passages for a query.

Shape letters: B batch, C candidates of a query, S sequence, Q sequence of a query,
H hidden, G examples of the global batch, P correct passages of a query.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import input_features
from bert_tf.modeling import multiple_choice
from bert_tf.modeling import numerics
from bert_tf.modeling import pooling as pooling_module
from bert_tf.modeling.kernels import dropout_masks

# The score of a passage that must not take part in a softmax. It is finite, so that no
# gradient becomes NaN, and far below any cosine / temperature.
_EXCLUDED = -1e9
DEFAULT_TEMPERATURE = 0.05
DEFAULT_POOLING = "mean"


@keras.saving.register_keras_serializable("bert_tf")
class BertBiEncoder(heads.TaskModel):
    """One vector per text; a passage's score is the dot product with the query's.

    Vectors usually have length 1, so that the score is a cosine.

    One encoder serves queries and passages. Training compares each query with the
    passages of all queries in the global batch. A correct passage of a query never
    counts as a wrong one, wherever in the batch the same text appears.

    Args:
        config: BertConfig.
        pooling: "mean", "cls" or "max"; see `pooling.pool`.
        temperature: positive; the softmax is over score / temperature.
        normalize: whether vectors have length 1.
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: for vectors of texts `input_ids`, `input_mask` int32 [B, S]. For training
    the passages, `input_ids`, `input_mask` int32 [B, C, S], the correct one first; the
    queries, `query_input_ids`, `query_input_mask` int32 [B, Q]; `passage_ids` int32
    [B, C], the same number for the same text, -1 for none; and `positive_ids` int32
    [B, P], the numbers of all correct passages of the query, padded with -2.

    Source: section 3 of "Sentence-BERT" (Reimers and Gurevych, 2019) and section 3 of
    "Dense Passage Retrieval" (Karpukhin et al., 2020).
    """

    config_arguments = ("pooling", "temperature", "normalize")
    loss_names = ("ranking_loss",)
    sequence_features = (
        *input_features.SEQUENCE,
        *(f"{input_features.QUERY_PREFIX}{name}" for name in input_features.SEQUENCE),
    )
    # The wrong passages of a query are those of all other queries, so a larger batch
    # makes a harder and better task. With several replicas, each would see only its own
    # part; gathering the passages makes the loss that of the global batch.
    gathered_outputs = ("passage_embeddings", "passage_ids", "passage_weights")

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        pooling: str = DEFAULT_POOLING,
        temperature: float = DEFAULT_TEMPERATURE,
        normalize: bool = True,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        pooling_module.check(pooling, config)
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature}.")
        self.pooling = pooling
        self.temperature = temperature
        self.normalize = normalize

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Computes vectors.

        Returns:
            For texts `embeddings`, float32 [B, H]. For queries and passages
            `query_embeddings`, float32 [B, H], and `passage_embeddings`, float32
            [B, C, H]; also, for the loss, `passage_ids` from the features and
            `passage_weights`, float32 [B], 0 for padding.
        """
        if "query_input_ids" not in features:
            return {"embeddings": self.embed(features, keys)}
        _, num_candidates, length = ops.shape(features["input_ids"])
        query_keys = passage_keys = None
        if keys is not None:
            keys = dropout_masks.keys_of_parts(keys, 1 + num_candidates)
            keys = ops.reshape(keys, (-1, 1 + num_candidates))  # [B, 1 + C]
            query_keys = keys[:, 0]
            passage_keys = ops.reshape(keys[:, 1:], (-1,))  # [B * C]
        queries = {
            name: features[f"query_{name}"]
            for name in input_features.SEQUENCE
            if f"query_{name}" in features
        }
        passages = {
            name: ops.reshape(features[name], (-1, length))  # [B * C, S]
            for name in input_features.SEQUENCE
            if name in features
        }
        vectors = self.embed(passages, passage_keys)  # [B * C, H]
        shape = (-1, num_candidates, self.config.hidden_size)
        return {
            "query_embeddings": self.embed(queries, query_keys),
            "passage_embeddings": ops.reshape(vectors, shape),
            "passage_ids": features["passage_ids"],
            "passage_weights": heads.example_weights(features),
        }

    def embed(
        self, features: numerics.Features, keys: numerics.Tensor | None = None
    ) -> numerics.Tensor:
        """Returns the vectors of texts, float32 [rows, H].

        Args:
            features: `input_ids` and `input_mask`, int32 [rows, S].
            keys: uint32 [rows], or None for no dropout.
        """
        positions = None
        if self.pooling == "cls":
            num_rows = ops.shape(features["input_ids"])[0]
            positions = ops.zeros((num_rows, 1), dtype="int32")
        outputs = self.bert(
            features,
            training=keys is not None,
            dropout_keys=keys,
            output_positions=positions,
        )
        input_mask = numerics.input_mask_of(features)
        vectors = pooling_module.pool(outputs, input_mask, self.pooling)
        return pooling_module.normalize(vectors) if self.normalize else vectors

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns the summed cross-entropy of the correct passages.

        It is not a sum over the parts of a batch: all passages of the global batch take
        part. If the batch is divided among replicas, `outputs` also has
        `all_passage_embeddings` [G, C, H], `all_passage_ids` [G, C] and
        `all_passage_weights` [G].
        """
        correct, wrong = self._scores(features, outputs)  # [B, 1], [B, G * C]
        scores = ops.concatenate([correct, wrong], axis=1)
        losses = ops.logsumexp(scores, axis=1) - correct[:, 0]  # [B]
        return {"ranking_loss": ops.sum(losses * heads.example_weights(features))}

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `in_batch_accuracy`: how often the correct passage is the best."""
        correct, wrong = self._scores(features, outputs)
        is_best = correct[:, 0] > ops.max(wrong, axis=1)
        weights = heads.example_weights(features)
        return {"in_batch_accuracy": heads.sum_and_weight(is_best, weights)}

    def _scores(self, features, outputs):
        """Returns scores of the correct passages [B, 1] and of the wrong [B, G * C]."""
        queries = outputs["query_embeddings"]  # [B, H]
        first = outputs["passage_embeddings"][:, 0]  # [B, H]
        correct = ops.sum(queries * first, axis=1, keepdims=True)  # [B, 1]
        vectors, ids, weights = (
            outputs.get(f"all_{name}", outputs[name]) for name in self.gathered_outputs
        )
        num_candidates = ops.shape(ids)[1]
        vectors = ops.reshape(vectors, (-1, self.config.hidden_size))  # [G * C, H]
        scores = ops.matmul(queries, ops.transpose(vectors))  # [B, G * C]
        is_real = ops.repeat(weights, num_candidates) > 0  # [G * C]
        ids = ops.reshape(ids, (-1,))  # [G * C]
        is_correct = ops.any(
            ops.equal(features["positive_ids"][:, :, None], ids[None, None, :]), axis=1
        )  # [B, G * C]
        is_wrong = is_real & (ids >= 0) & ops.logical_not(is_correct)
        wrong = ops.where(is_wrong, scores / self.temperature, _EXCLUDED)
        return correct / self.temperature, wrong


@keras.saving.register_keras_serializable("bert_tf")
class BertCrossEncoder(multiple_choice.SequenceScorer):
    """Reads query and passage as one sequence and scores the passage.

    Args:
        config: BertConfig.
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32, [B, S] for pairs. For
    training [B, C, S]: the pairs of a query with its passages, the correct one first.

    Source: section 3 of "Passage Re-ranking with BERT" (Nogueira and Cho, 2019), with
    a softmax over the candidates of a query.
    """

    loss_names = ("ranking_loss",)

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Returns `logits`: float32 [B] for pairs, [B, C] for queries and passages."""
        return {"logits": self.scores(features, keys)}

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns the summed cross-entropy of the first candidates."""
        return super().loss_sums(self._labeled(features), outputs)

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `accuracy`: how often the correct passage is the best."""
        return super().metric_sums(self._labeled(features), outputs)

    def _labeled(self, features):
        first = ops.zeros((ops.shape(features["input_ids"])[0],), "int32")
        return {**features, "label_ids": first}
