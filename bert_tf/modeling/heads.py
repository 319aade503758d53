"""What stands on the encoder: heads, and the base of every task's model.

Shape letters: B batch, S sequence, H hidden, M masked positions, V vocabulary.
"""

import types

import keras
from keras import ops

from bert_tf.modeling import attention
from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import numerics

# Seed of the dropout masks in `model.fit`; training tools give their own keys.
_FIT_DROPOUT_SEED = 12345
# Dropout site of a task's own dropout, beyond those of any number of layers.
TASK_DROPOUT_SITE = 1 << 20


class Transform(keras.layers.Layer):
    """Dense, activation and normalization before masked words are predicted."""

    def __init__(self, config, *, name="transform", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.activation = numerics.activation(config.hidden_act)
        policy = self.dtype_policy
        self.dense = attention.dense(
            config.hidden_size, config, name="dense", dtype=policy
        )
        self.normalization = embeddings.LayerNorm(
            config.layer_norm_epsilon, dtype=policy
        )

    def build(self, input_shape=None):
        """Creates the weights."""
        self.dense.build((None, self.config.hidden_size))
        self.normalization.build((None, self.config.hidden_size))

    def call(self, inputs):
        """Returns [rows, H] for [rows, H]."""
        return self.normalization(self.activation(self.dense(inputs)))


class MaskedLanguageModelHead(keras.layers.Layer):
    """Scores of all word pieces at some positions; the words' table is the kernel.

    Source: get_masked_lm_output of run_pretraining.py, 2018.
    """

    def __init__(self, config, *, name="predictions", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.transform = Transform(config, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        """Creates the weights, the words' table apart."""
        self.transform.build()
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.config.vocab_size,), initializer="zeros"
        )

    def call(self, sequence_output, positions, word_embeddings):
        """Returns float32 logits [B, M, V].

        Args:
            sequence_output: [B, S, H].
            positions: int32 [B, M], each from 0 to S - 1.
            word_embeddings: [V, H], or more rows, whose scores are left out.
        """
        gathered = gather_positions(sequence_output, positions)  # [B * M, H]
        hidden = self.transform(gathered)
        logits = ops.einsum("mh,vh->mv", hidden, word_embeddings)  # [B * M, V]
        if word_embeddings.shape[0] > self.config.vocab_size:
            logits = logits[:, : self.config.vocab_size]
        # `ops.add`, not `+`: TensorFlow then adds the bias within the product.
        logits = ops.cast(ops.add(logits, self.output_bias), "float32")
        shape = (-1, ops.shape(positions)[1], self.config.vocab_size)
        return ops.reshape(logits, shape)


class NextSentenceHead(keras.layers.Layer):
    """Scores of "is the next sentence" (0) and "is a random one" (1).

    Source: get_next_sentence_output of run_pretraining.py, 2018.
    """

    def __init__(self, config, *, name="seq_relationship", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config

    def build(self, input_shape=None):
        """Creates the weights, in the release's shape [2, H]."""
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(2, self.config.hidden_size),
            initializer=numerics.initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(2,), initializer="zeros"
        )

    def call(self, pooled_output):
        """Returns float32 logits [B, 2] for [B, H]."""
        return class_scores(pooled_output, self.output_weights, self.output_bias)


def class_scores(vectors, output_weights, output_bias):
    """Returns float32 logits [B, C] of vectors [B, H] and weights [C, H]."""
    logits = ops.einsum("bh,ch->bc", vectors, output_weights)
    return ops.cast(ops.add(logits, output_bias), "float32")


def gather_positions(sequence_output, positions):
    """Returns the vectors [B * M, H] at int32 positions [B, M] of [B, S, H]."""
    num_examples, length, hidden_size = ops.shape(sequence_output)
    offsets = ops.arange(num_examples, dtype="int32")[:, None] * length
    rows = ops.reshape(ops.cast(positions, "int32") + offsets, (-1,))
    return ops.take(ops.reshape(sequence_output, (-1, hidden_size)), rows, axis=0)


class TaskModel(keras.Model):
    """The base of every task's model: what its loss and its metrics are made of.

    A loss term is a sum over examples, divided by a weight that depends on the
    features alone. Sums and weights of parts of a batch simply add, so the loss does
    not depend on how a batch is divided.

    Features may have `is_real_example`, float32 [B]: 0 takes an example out of all
    sums and weights (padding of the last batch).

    Args:
        config: BertConfig.
        name: the first part of its variables' paths; checkpoints leave it out.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; default the global one.
    """

    # Loss term -> what is added to its weight, summed over the global batch, once.
    loss_epsilons = types.MappingProxyType({})
    # Names of the loss terms, in the order in which they are reported.
    loss_names = ()
    # Names of outputs, each [B, ...], that a loss compares with those of the examples
    # on all other replicas; with several, `loss_sums` finds them as `all_NAME`.
    gathered_outputs = ()
    # The rate of dropout that the task adds to that of the configuration.
    task_dropout_rate = 0.0
    # The logit of a position that does not exist, such as one that a length bucket
    # cut off: it cannot win and its probability is 0.
    padding_logit = numerics.ATTENTION_MASK_BIAS

    def __init__(self, config, *, name, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config

    def loss_weights(self, features):
        """Returns each loss term's weight, float32 scalars; needs the features only."""
        raise NotImplementedError

    def loss_sums(self, features, outputs):
        """Returns each loss term's sum over the examples, float32 scalars."""
        raise NotImplementedError

    def metric_sums(self, features, outputs):
        """Returns each metric as a pair of float32 scalars: its sum and its weight."""
        raise NotImplementedError

    def total_loss(self, features, outputs):
        """Returns the loss of a whole batch, a float32 scalar."""
        weights = self.loss_weights(features)
        sums = self.loss_sums(features, outputs)
        return sum(
            sums[term] / (weights[term] + self.loss_epsilons.get(term, 0.0))
            for term in sums
        )

    def compute_loss(self, x=None, y=None, y_pred=None, *args, **kwargs):
        """Returns the loss for `fit` and `evaluate`; labels stand in the features.

        Raises:
            ValueError: labels came as `y`, or the model was compiled with a loss.
        """
        if y is not None:
            raise ValueError(
                f"Labels of {type(self).__name__} belong in the features, but y was "
                'given; call fit({"input_ids": ..., "label_ids": ...}), with the names '
                "that the class documents as its Features, and no y."
            )
        if getattr(self, "loss", None) is not None:
            raise ValueError(
                f"{type(self).__name__} has its own loss, but it was compiled with "
                f"loss={self.loss!r}; call compile(optimizer=...) without loss."
            )
        return self.total_loss(x, y_pred)

    def dropout_keys(self, seed, step, example_index):
        """Returns uint32 [B], the keys of a step; see `numerics.dropout_keys`."""
        return numerics.dropout_keys(seed, step, example_index)

    def dropout_keys_in_use(self, features, training, dropout_keys):
        """Returns the keys for a call: those given, those of `fit`, or None.

        Raises:
            ValueError: the model drops something and there are no keys: it is neither
                in `fit` on the TensorFlow backend, nor were any given.
        """
        rates = (
            self.config.hidden_dropout_prob,
            self.config.attention_probs_dropout_prob,
            self.task_dropout_rate,
        )
        if training and dropout_keys is None:
            dropout_keys = self._dropout_keys_of_fit(features)
        return numerics.dropout_keys_in_use(dropout_keys, training, rates)

    def _dropout_keys_of_fit(self, features):
        optimizer = getattr(self, "optimizer", None)
        # On other backends a model's call does not see its optimizer's variables.
        if optimizer is None or keras.backend.backend() != "tensorflow":
            return None
        rows = ops.arange(ops.shape(features["input_ids"])[0], dtype="int32")
        return numerics.dropout_keys(_FIT_DROPOUT_SEED, optimizer.iterations, rows)

    def get_config(self):
        """Returns what the constructor takes."""
        return {
            "config": self.config.to_dict(),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config):
        """Returns the model that `get_config` described."""
        config = dict(config)
        config["config"] = config_module.BertConfig.from_dict(config["config"])
        return cls(**config)


def example_weights(features):
    """Returns float32 [B]: 1 for every example that counts."""
    weights = features.get("is_real_example")
    if weights is None:
        return ops.ones((ops.shape(features["input_ids"])[0],), dtype="float32")
    return ops.cast(weights, "float32")


def weighted_hits(logits, labels, weights):
    """Returns the weights of those rows whose highest logit is the label's, summed.

    Args:
        logits: [..., C].
        labels: integer [...].
        weights: float32 [...].
    """
    hits = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
    return ops.sum(ops.cast(hits, "float32") * weights)
