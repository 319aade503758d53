"""The base class of every task's model, its losses and its output weights.

Shape letters: B batch, S sequence, H hidden, C classes.
"""

import contextlib
import types
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module
from bert_tf.modeling import initial_values
from bert_tf.modeling import keras_model
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling import pretrained_model
from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import whole_step

# Dropout site of a task's own dropout, beyond the sites of any number of layers.
TASK_DROPOUT_SITE = 1 << 20


def class_weights(layer: Any, num_classes: int, width: int) -> tuple[Any, Any]:
    """Returns new variables of a layer: `output_weights` [C, width], `output_bias` [C].

    Args:
        layer: a Keras layer or model with a `config`.
        num_classes: C.
        width: of the vectors that are scored; H in the release.
    """
    kernel = layer.add_weight(
        name="output_weights",
        shape=(num_classes, width),
        initializer=initial_values.of_weights(layer.config),
    )
    bias = layer.add_weight(
        name="output_bias", shape=(num_classes,), initializer="zeros"
    )
    return kernel, bias


def class_scores(
    vectors: numerics.Tensor,
    output_weights: numerics.Tensor,
    output_bias: numerics.Tensor,
) -> numerics.Tensor:
    """Returns float32 logits [..., C] of vectors [..., H] and weights [C, H]."""
    rows = ops.reshape(vectors, (-1, vectors.shape[-1]))
    logits = ops.einsum("bh,ch->bc", rows, output_weights)
    logits = add_class_bias(logits, output_bias)
    return ops.reshape(logits, (*ops.shape(vectors)[:-1], logits.shape[-1]))


def add_class_bias(
    logits: numerics.Tensor, output_bias: numerics.Tensor
) -> numerics.Tensor:
    """Returns float32 [..., C] of logits [..., C] and biases [C] of any float dtype."""
    # In bfloat16, TensorFlow would sum the gradient of the bias in bfloat16; see
    # `cpu.Cpu.dense`.
    return ops.add(ops.cast(logits, "float32"), ops.cast(output_bias, "float32"))


def no_positions(features: numerics.Features) -> numerics.Tensor:
    """Returns int32 [B, 0], the `output_positions` if only `pooled_output` is read."""
    return ops.zeros((ops.shape(features["input_ids"])[0], 0), dtype="int32")


class TaskModel(pretrained_model.PretrainedModel):
    """The base of every task's model, which defines the model's losses and metrics.

    Each loss term is a sum over examples divided by a weight that depends only on the
    features. Sums and weights of the parts of a batch add up, so the loss does not
    depend on how a batch is divided over micro-batches and replicas.

    `call(features, training=False, dropout_keys=None)` of every model takes the
    features that its class documents; `input_mask` (default: all 1) and `segment_ids`
    (default: all 0) are optional, and the names in `input_features.ALIASES` are also
    accepted. `dropout_keys`, uint32 [B], come from `dropout_masks.keys_of_examples`; by
    default they are drawn from `seed_generator`. A ValueError is raised if a feature is
    unknown or if S exceeds the position table.

    The features may contain `is_real_example`, float32 [B]: 0 excludes an example from
    all sums and weights (the padding of a last batch).

    Args:
        config: BertConfig.
        dropout: rate of the dropout before the output layer; default: 0.1, as in 2018.
            Models without such a layer refuse it.
        **kwargs: `name`, `dtype` and `preprocessor`; see
            `pretrained_model.PretrainedModel`.
    """

    # Loss term -> what is added once to its weight over the global batch.
    loss_epsilons: Mapping[str, float] = types.MappingProxyType({})
    # Outputs [B, ...] that a loss compares across all examples of the global batch.
    # With several replicas, `loss_sums` finds those of all replicas as `all_NAME`.
    gathered_outputs: tuple[str, ...] = ()
    # The logit of a position that does not exist, such as one that a length bucket
    # cut off: it cannot win and its probability is 0.
    padding_logit = numerics.ATTENTION_MASK_BIAS

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        if dropout is not None:
            if not self.task_dropout_rate or not 0 <= dropout < 1:
                raise ValueError(
                    f"dropout={dropout}: expected a rate from 0 to below 1, and a "
                    "model with dropout before its output layer. Dropout in the "
                    "encoder is hidden_dropout_prob of its configuration."
                )
            self.task_dropout_rate = dropout
        self.bert = bert.BertModel(config, name="bert", dtype=self.dtype_policy)

    @property
    def encoder(self) -> bert.BertModel:
        """The `BertModel` below the head."""
        return self.bert

    def xla_step(self) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step that XLA compiles as a whole."""
        return kernels.use(whole_step.WholeStep())

    def cpu_step(self, num_examples: int) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step on one CPU, with examples of a micro-batch."""
        return kernels.use(cpu.Cpu(has_islands=True, num_examples=num_examples))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as plain values."""
        rate = self.task_dropout_rate
        is_default = rate == type(self).task_dropout_rate
        return super().get_config() | ({} if is_default else {"dropout": rate})

    def with_task_dropout(
        self,
        vectors: numerics.Tensor,
        keys: numerics.Tensor | None,
        *,
        site: int = TASK_DROPOUT_SITE,
    ) -> numerics.Tensor:
        """Returns vectors [B * n, H] with the dropout before an output layer.

        Args:
            vectors: float [B * n, H] or [B, n, H].
            keys: uint32 [B], or None for no dropout.
            site: number of this place in the model.
        """
        dropout = dropout_masks.at(keys, site, self.task_dropout_rate)
        return kernels.current().dropout(vectors, dropout)

    def call(
        self,
        features: numerics.Features,
        training: bool = False,
        dropout_keys: numerics.Tensor | None = None,
    ) -> numerics.Outputs:
        """Returns the outputs of `task_outputs`; see the class for the arguments."""
        features = self.checked_features(features)
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        return self.task_outputs(features, keys)

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Computes the outputs of a task's model.

        Args:
            features: those of `call`, under our names.
            keys: uint32 [B], the keys of dropout; None: nothing is dropped.
        """
        raise NotImplementedError

    def training_outputs(
        self, features: numerics.Features, dropout_keys: numerics.Tensor | None = None
    ) -> numerics.Outputs:
        """Returns the outputs of `call` in training that losses and metrics need.

        Args:
            features: those of `call`.
            dropout_keys: that of `call`.
        """
        return self(features, training=True, dropout_keys=dropout_keys)

    def loss_weights(self, features: numerics.Features) -> numerics.Outputs:
        """Returns each loss term's weight, a float32 scalar: the number of examples.

        Args:
            features: those of `call`; labels are not needed.
        """
        count = ops.sum(self.example_weights(features))
        return dict.fromkeys(self.loss_names, count)

    def example_weights(self, features: numerics.Features) -> numerics.Tensor:
        """Returns the weight of each example, float32 [B]; 0 for padding."""
        return example_weights(features)

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns each loss term's sum over the examples, a float32 scalar.

        Args:
            features: those of `call`, with labels.
            outputs: what `call` returned for them.
        """
        losses = self.example_losses(features, outputs["logits"])
        weights = self.example_weights(features)
        return {self.loss_names[0]: weighted_sum(losses, weights)}

    @staticmethod
    def example_losses(
        features: numerics.Features, logits: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns the cross-entropy of each example's class, float32 [B].

        Args:
            features: `label_ids` int32 [B].
            logits: float32 [B, C].
        """
        return class_losses(logits, features["label_ids"])

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns each metric as a pair of float32 scalars: its sum and its weight.

        Args:
            features: those of `call`, with labels.
            outputs: what `call` returned for them.
        """
        weights = self.example_weights(features)
        return {"accuracy": accuracy(outputs["logits"], features["label_ids"], weights)}

    def total_loss(
        self,
        features: numerics.Features,
        outputs: numerics.Outputs,
        sample_weight: numerics.Tensor | None = None,
    ) -> numerics.Tensor:
        """Returns the loss of a whole batch, a float32 scalar.

        In a replica of a `tf.distribute` strategy, it is the replica's part of the loss
        of the global batch.

        Args:
            features: those of `call`, with labels.
            outputs: what `call` returned for them.
            sample_weight: [B] or [B, 1], factors of the examples' losses; or an equal
                one for each label in `y`. As in Keras, the number of examples that the
                sum is divided by does not change.

        Raises:
            ValueError: the weights have another shape, or the loss compares all
                examples and there are several replicas.
        """
        replica = keras_model.replica()
        is_one = replica.num_replicas_in_sync == 1
        if self.gathered_outputs and not is_one:
            raise ValueError(
                f"{type(self).__name__} compares the examples of all replicas, which "
                "Keras's fit cannot do; use one device or the command bert_tf retrieve."
            )
        features = self.checked_features(features)
        weights = self.loss_weights(features)
        weights = weights if is_one else replica.all_reduce("SUM", weights)
        if sample_weight is not None:
            factors = _weights_of_examples(sample_weight)
            features["is_real_example"] = factors * example_weights(features)
        sums = self.loss_sums(features, outputs)
        # A batch in which nothing counts, such as one without tags, has the loss 0.
        return sum(
            ops.divide_no_nan(
                sums[term], weights[term] + self.loss_epsilons.get(term, 0.0)
            )
            for term in sums
        )


def example_weights(features: numerics.Features) -> numerics.Tensor:
    """Returns float32 [B]: 1 for every example that counts, 0 for padding."""
    weights = features.get("is_real_example")
    if weights is None:
        return ops.ones((ops.shape(features["input_ids"])[0],), dtype="float32")
    return ops.cast(weights, "float32")


def class_losses(logits: numerics.Tensor, labels: numerics.Tensor) -> numerics.Tensor:
    """Returns the cross-entropy, but NaN for a label that is not a class.

    Otherwise a negative label, such as that of a test set without labels, would count
    from the last class, and one that is too large as 0 on accelerators. On CPUs,
    TensorFlow refuses the latter.

    Args:
        logits: [B, C].
        labels: integer [B].
    """
    labels = ops.cast(labels, "int32")
    losses = kernels.current().cross_entropy(logits, ops.maximum(labels, 0))
    is_class = ops.logical_and(labels >= 0, labels < ops.shape(logits)[-1])
    return ops.where(is_class, losses, float("nan"))


def weighted_sum(losses: numerics.Tensor, weights: numerics.Tensor) -> numerics.Tensor:
    """Returns the sum of losses times weights, without the losses with weight 0."""
    return ops.sum(ops.where(ops.equal(weights, 0), 0.0, losses * weights))


def accuracy(
    logits: numerics.Tensor, labels: numerics.Tensor, weights: numerics.Tensor
) -> tuple[numerics.Tensor, numerics.Tensor]:
    """Returns the summed weights of the rows classified correctly, and of all rows.

    Labels and weights are [...], logits [..., C].
    """
    hits = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
    return sum_and_weight(hits, weights)


def sum_and_weight(
    values: numerics.Tensor, weights: numerics.Tensor
) -> tuple[numerics.Tensor, numerics.Tensor]:
    """Returns two float32 scalars: the weighted sum of values, and the sum of weights.

    The weights, float32, have the shape of the values.
    """
    return ops.sum(ops.cast(values, "float32") * weights), ops.sum(weights)


def _weights_of_examples(weights):
    """Returns sample weights as float32 [B]; [B, 1] becomes [B].

    Keras gives every label in `y` a copy of an array of weights. Where the weights of
    the labels differ, the result is NaN.
    """
    weights, *others = [ops.cast(one, "float32") for one in keras.tree.flatten(weights)]
    for other in others:
        weights = ops.where(ops.equal(weights, other), weights, float("nan"))
    if weights.shape[1:] == (1,):
        weights = weights[:, 0]
    if len(weights.shape) != 1:
        raise ValueError(
            f"sample_weight has the shape {tuple(weights.shape)}; expected one weight "
            "per example."
        )
    return weights
