"""BertBiEncoder and BertCrossEncoder: two ways to say how well a passage fits a query.

Shape letters: B batch, C candidates of a query, S sequence, Q sequence of a query,
H hidden, G all examples of the global batch, P right passages of a query.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import numerics
from bert_tf.modeling import pooling as pooling_module

_ENCODER_FEATURES = ("input_ids", "input_mask", "segment_ids")
# Takes a candidate out of a softmax; finite, so that no gradient is not a number.
_EXCLUDED = -1e9
DEFAULT_TEMPERATURE = 0.05
DEFAULT_POOLING = "mean"


@keras.saving.register_keras_serializable("bert_tf")
class BertBiEncoder(heads.TaskModel):
    """One vector of length 1 a text; a passage's score is its vector's cosine.

    One encoder serves queries and passages. Training compares each query with the
    passages of all queries of the global batch. What is the right passage of a query,
    the same text elsewhere in the batch included, is never taken for a wrong one.

    Args:
        config: BertConfig.
        pooling: "mean", "cls" or "max"; see `pooling.pool`.
        temperature: float above 0; the softmax is that of cosine / temperature.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: for vectors of texts `input_ids`, `input_mask` int32 [B, S]. For training
    the passages, `input_ids`, `input_mask` int32 [B, C, S], the right one first; the
    queries, `query_input_ids`, `query_input_mask` int32 [B, Q]; `passage_ids` int32
    [B, C], the same number for the same text, -1 for none; and `positive_ids` int32
    [B, P], numbers of all right passages of the query, filled up with -2.

    Source: section 3 of "Sentence-BERT" (Reimers and Gurevych, 2019) and section 3 of
    "Dense Passage Retrieval" (Karpukhin et al., 2020).
    """

    loss_names = ("ranking_loss",)
    gathered_outputs = ("passage_embeddings", "passage_ids", "passage_weights")

    def __init__(
        self,
        config,
        *,
        pooling=DEFAULT_POOLING,
        temperature=DEFAULT_TEMPERATURE,
        name="bert_bi_encoder",
        dtype=None,
        **kwargs,
    ):
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        pooling_module.check(pooling, config)
        if not temperature > 0:
            raise ValueError(f"temperature: expected more than 0, got {temperature}.")
        self.pooling = pooling
        self.temperature = temperature
        self.bert = bert.BertModel(config, name="bert", dtype=self.dtype_policy)

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()

    def get_config(self):
        """Returns what the constructor takes."""
        own = {"pooling": self.pooling, "temperature": self.temperature}
        return super().get_config() | own

    def call(self, features, training=False, dropout_keys=None):
        """Computes vectors.

        Args:
            features: see the class.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            Of texts a dict: `embeddings`, float32 [B, H]. Of queries and passages:
            `query_embeddings`, float32 [B, H]; `passage_embeddings`, float32
            [B, C, H]; and of the features what the loss compares them by:
            `passage_ids`, and `passage_weights` float32 [B], 0 for padding.

        Raises:
            ValueError: training needs keys and there are none, or a sequence is longer
                than the model's position table.
        """
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        if "query_input_ids" not in features:
            return {"embeddings": self.embed(features, training, keys)}
        _, num_candidates, length = ops.shape(features["input_ids"])
        query_keys = passage_keys = None
        if keys is not None:
            keys = numerics.dropout_keys_of_parts(keys, 1 + num_candidates)
            keys = ops.reshape(keys, (-1, 1 + num_candidates))  # [B, 1 + C]
            query_keys = keys[:, 0]
            passage_keys = ops.reshape(keys[:, 1:], (-1,))  # [B * C]
        queries = {
            name: features[f"query_{name}"] for name in ("input_ids", "input_mask")
        }
        passages = {
            name: ops.reshape(features[name], (-1, length))  # [B * C, S]
            for name in ("input_ids", "input_mask")
        }
        vectors = self.embed(passages, training, passage_keys)  # [B * C, H]
        shape = (-1, num_candidates, self.config.hidden_size)
        return {
            "query_embeddings": self.embed(queries, training, query_keys),
            "passage_embeddings": ops.reshape(vectors, shape),
            "passage_ids": features["passage_ids"],
            "passage_weights": heads.example_weights(features),
        }

    def embed(self, features, training=False, dropout_keys=None):
        """Returns float32 [rows, H], vectors of length 1.

        Args:
            features: dict of int32 [rows, S]: `input_ids` and `input_mask`.
            training: bool, whether to drop out.
            dropout_keys: uint32 [rows], or None without dropout.
        """
        outputs = self.bert(features, training=training, dropout_keys=dropout_keys)
        vectors = pooling_module.pool(outputs, features["input_mask"], self.pooling)
        return pooling_module.normalize(vectors)

    def loss_weights(self, features):
        """Returns the number of queries, as `ranking_loss`, a float32 scalar."""
        return {"ranking_loss": ops.sum(heads.example_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed cross-entropy of the right passages.

        It is no sum over parts of a batch: all passages of the global batch take part.

        Args:
            features: dict with `positive_ids` int32 [B, P]; `is_real_example` float32
                [B] where there is padding.
            outputs: what `call` returned for them; with `all_passage_embeddings`
                [G, C, H], `all_passage_ids` [G, C] and `all_passage_weights` [G]
                where the batch is divided among replicas.

        Returns:
            A dict: `ranking_loss`, float32 scalar.
        """
        right, others = self._scores(features, outputs)  # [B, 1], [B, G * C]
        scores = ops.concatenate([right, others], axis=1)
        losses = ops.logsumexp(scores, axis=1) - right[:, 0]  # [B]
        return {"ranking_loss": ops.sum(losses * heads.example_weights(features))}

    def metric_sums(self, features, outputs):
        """Returns what the share of queries is made of whose passage is the best.

        Args:
            features, outputs: as `loss_sums` takes them.

        Returns:
            A dict: `in_batch_accuracy`, a pair of float32 scalars: hits and queries.
        """
        right, others = self._scores(features, outputs)
        is_best = ops.cast(right[:, 0] > ops.max(others, axis=1), "float32")
        weights = heads.example_weights(features)
        return {"in_batch_accuracy": (ops.sum(is_best * weights), ops.sum(weights))}

    def _scores(self, features, outputs):
        """Returns scores of the right passages [B, 1], and of the wrong [B, G * C]."""
        queries = outputs["query_embeddings"]  # [B, H]
        own = outputs["passage_embeddings"][:, 0]  # [B, H]
        right = ops.sum(queries * own, axis=1, keepdims=True)  # [B, 1]
        vectors, ids, weights = (
            outputs.get(f"all_{name}", outputs[name]) for name in self.gathered_outputs
        )
        num_candidates = ops.shape(ids)[1]
        vectors = ops.reshape(vectors, (-1, self.config.hidden_size))  # [G * C, H]
        scores = ops.matmul(queries, ops.transpose(vectors))  # [B, G * C]
        is_real = ops.repeat(weights, num_candidates) > 0  # [G * C]
        ids = ops.reshape(ids, (-1,))  # [G * C]
        is_right = ops.any(
            ops.equal(features["positive_ids"][:, :, None], ids[None, None, :]), axis=1
        )  # [B, G * C]
        is_wrong = is_real & (ids >= 0) & ops.logical_not(is_right)
        others = ops.where(is_wrong, scores / self.temperature, _EXCLUDED)
        return right / self.temperature, others


@keras.saving.register_keras_serializable("bert_tf")
class BertCrossEncoder(heads.TaskModel):
    """Reads query and passage together and gives the passage a score.

    Args:
        config: BertConfig.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32, of pairs [B, S], or for
    training [B, C, S]: the pairs of a query with its passages, the right one first.

    Source: section 3 of "Passage Re-ranking with BERT" (Nogueira and Cho, 2019), with
    a softmax over the candidates of a query.
    """

    loss_names = ("ranking_loss",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(self, config, *, name="bert_cross_encoder", dtype=None, **kwargs):
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        self.bert = bert.BertModel(config, name="bert", dtype=self.dtype_policy)

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()
        # In the layout of the release's class heads, with one class.
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(1, self.config.hidden_size),
            initializer=numerics.initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(1,), initializer="zeros"
        )

    def call(self, features, training=False, dropout_keys=None):
        """Computes scores.

        Args:
            features: see the class.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            A dict: `logits`, float32 [B] of pairs, [B, C] of queries with candidates.

        Raises:
            ValueError: training needs keys and there are none, or S is longer than the
                model's position table.
        """
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        shape = ops.shape(features["input_ids"])
        if len(shape) == 3 and keys is not None:
            keys = numerics.dropout_keys_of_parts(keys, shape[1])  # [B * C]
        flat = {
            name: ops.reshape(features[name], (-1, shape[-1]))  # [rows, S]
            for name in _ENCODER_FEATURES
            if name in features
        }
        encoded = self.bert(flat, training=training, dropout_keys=keys)
        pooled = numerics.dropout(
            encoded["pooled_output"],
            self.task_dropout_rate,
            keys,
            heads.TASK_DROPOUT_SITE,
        )  # [rows, H]
        scores = heads.class_scores(pooled, self.output_weights, self.output_bias)
        return {"logits": ops.reshape(scores, (-1, *shape[1:-1]))}

    def loss_weights(self, features):
        """Returns the number of queries, as `ranking_loss`, a float32 scalar."""
        return {"ranking_loss": ops.sum(heads.example_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed cross-entropy of the first candidates.

        Args:
            features: as `call` takes them, [B, C, S]; `is_real_example` float32 [B]
                where there is padding.
            outputs: what `call` returned for them.

        Returns:
            A dict: `ranking_loss`, float32 scalar.
        """
        losses = numerics.cross_entropy(outputs["logits"], self._first(features))
        return {"ranking_loss": ops.sum(losses * heads.example_weights(features))}

    def metric_sums(self, features, outputs):
        """Returns what the share of queries is made of whose passage is the best.

        Returns:
            A dict: `accuracy`, a pair of float32 scalars: hits and queries.
        """
        weights = heads.example_weights(features)
        labels = self._first(features)
        hits = heads.weighted_hits(outputs["logits"], labels, weights)
        return {"accuracy": (hits, ops.sum(weights))}

    def _first(self, features):
        return ops.zeros((ops.shape(features["input_ids"])[0],), "int32")
