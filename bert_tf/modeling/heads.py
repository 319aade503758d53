"""The base class of every task's model, its losses and its output weights.

Shape letters: B batch, S sequence, H hidden, C classes.
"""

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
from bert_tf.modeling.kernels import dropout_masks

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
    """Returns float32 logits [B, C] of vectors [B, H] and weights [C, H]."""
    logits = ops.einsum("bh,ch->bc", vectors, output_weights)
    return add_class_bias(logits, output_bias)


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


class TaskModel(keras_model.KerasModel):
    """The base of every task's model, which defines the model's losses and metrics.

    Each loss term is a sum over examples divided by a weight that depends only on the
    features. Sums and weights of the parts of a batch add up, so the loss does not
    depend on how a batch is divided over micro-batches and replicas.

    `call(features, training=False, dropout_keys=None)` of every model takes the
    features that its class documents; `input_mask` (default: all 1) and `segment_ids`
    (default: all 0) are optional, and the names in `keras_model.ALIASES` are also
    accepted. `dropout_keys`, uint32 [B], come from `dropout_masks.keys_of_examples`; by
    default they are drawn from `seed_generator`. A ValueError is raised if a feature is
    unknown or if S exceeds the position table.

    The features may contain `is_real_example`, float32 [B]: 0 excludes an example from
    all sums and weights (the padding of a last batch).

    Args:
        config: BertConfig.
        name: the first part of the variables' paths, which checkpoints leave out;
            default: the class's name in snake case.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; default: the global one.
        dropout: rate of the dropout before the output layer; default: 0.1, as in 2018.
            Models without such a layer refuse it.
    """

    # Loss term -> what is added once to its weight over the global batch.
    loss_epsilons: Mapping[str, float] = types.MappingProxyType({})
    # Outputs [B, ...] that a loss compares across all examples of the global batch.
    # With several replicas, `loss_sums` finds those of all replicas as `all_NAME`.
    gathered_outputs: tuple[str, ...] = ()
    # The logit of a position that does not exist, such as one that a length bucket
    # cut off: it cannot win and its probability is 0.
    padding_logit = numerics.ATTENTION_MASK_BIAS
    # Number of axes that the model's own loss needs of its labels; None: any.
    label_axes: int | None = 1
    # Whether a training step, or any call of a classifier, needs the last layer's
    # vectors at all positions, and not only at masked ones and where the pooler reads.
    reads_all_positions = True

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str | None = None,
        dtype: Any = None,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(config, name=name, dtype=dtype, **kwargs)
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

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Names of the loss terms, in the order in which they are reported."""
        return ()

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
    ) -> dict[str, tuple[numerics.Tensor, numerics.Tensor]]:
        """Returns each metric as a pair of float32 scalars: its sum and its weight.

        Args:
            features: those of `call`, with labels.
            outputs: what `call` returned for them.
        """
        weights = self.example_weights(features)
        hits = weighted_hits(outputs["logits"], features["label_ids"], weights)
        return {"accuracy": (hits, ops.sum(weights))}

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
            sample_weight: float32 [B], factors of the examples' losses. As in Keras,
                the number of examples that the sum is divided by does not change.

        Raises:
            ValueError: the loss compares all examples, and there are several replicas.
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
            features["is_real_example"] = sample_weight * example_weights(features)
        sums = self.loss_sums(features, outputs)
        # A batch in which nothing counts, such as one without tags, has the loss 0.
        return sum(
            ops.divide_no_nan(
                sums[term], weights[term] + self.loss_epsilons.get(term, 0.0)
            )
            for term in sums
        )

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> numerics.Tensor:
        """Returns the compiled loss, or the model's own, for `fit` and `evaluate`.

        Raises:
            ValueError: the loss, `y` or `sample_weight` does not fit the model.
        """
        compiled = self._compile_config.config
        if compiled["loss"] is not None:
            by_output = self._losses_by_output(compiled["loss"])
            y, y_pred, sample_weight = self.compared(
                by_output, x, y, y_pred, sample_weight
            )
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if compiled["loss_weights"] is not None:
            raise ValueError(
                "loss_weights has no effect on the model's own loss; pass loss too, or "
                "omit loss_weights."
            )
        features = self.checked_features(x)
        for name, label in self.labels(features, y).items():
            features[name] = self._checked_label(name, label)
        if sample_weight is not None:
            sample_weight = _weights_of_examples(sample_weight)
        try:
            own_loss = self.total_loss(features, y_pred, sample_weight)
        except KeyError as error:
            name = error.args[0]
            if name not in keras_model.OF_TASKS or name in features:
                raise
            raise ValueError(
                f"{type(self).__name__} has no {name} for its loss: pass it as y, or "
                "put it into the features."
            ) from error
        # Regularizers, and what `add_loss` added. Gradients of replicas are summed.
        replica = keras_model.replica()
        num_replicas = replica.num_replicas_in_sync
        loss = own_loss + sum(map(ops.sum, self.losses)) / num_replicas
        if num_replicas == 1:
            return loss
        # Keras shows the mean of the replicas' values, weighted by their rows.
        rows = ops.cast(ops.shape(features["input_ids"])[0], "float32")
        all_rows = replica.all_reduce("SUM", rows)
        shown = ops.divide_no_nan(loss * all_rows, rows * num_replicas)
        return loss + ops.stop_gradient(shown - loss)

    def _losses_by_output(self, loss):
        is_nested = isinstance(loss, Mapping | list | tuple)
        is_for_logits = None if is_nested else keras_model.is_for_logits(loss)
        if is_for_logits and self.logits_outputs:
            return dict.fromkeys(self.logits_outputs, loss)
        # A regressor's values go to any loss.
        is_clear = is_for_logits is False or self.answer_output == "values"
        return self.by_output(self.answer_output if is_clear else None, loss)

    def labels_of_outputs(self, names: tuple[str, ...], x: Any, y: Any) -> Any:
        """Returns {output: labels} of a compiled loss or metric, from `x` and `y`.

        Raises:
            ValueError: `y` does not fit the model.
        """
        is_one = y is not None and not keras.tree.is_nested(y)
        is_by_output = isinstance(y, Mapping) and set(names) <= set(y)
        if is_by_output or (is_one and len(self.label_features) <= 1):
            return super().labels_of_outputs(names, x, y)
        labels = self.labels(x, y)
        if len(labels) == 1:  # Both logits and probabilities are compared with it.
            return dict.fromkeys(names, *labels.values())
        label_of = dict(zip(self.logits_outputs, self.label_features, strict=False))
        missing = [name for name in names if label_of.get(name) not in labels]
        if missing:
            raise ValueError(
                f"{type(self).__name__} has no labels for {', '.join(missing)}; pass "
                f'y={{"{missing[0]}": ...}}.'
            )
        return {name: labels[label_of[name]] for name in names}

    def labels(self, x: numerics.Features, y: Any) -> numerics.Outputs:
        """Returns {label feature: labels}, from `y` or else from the features.

        Raises:
            ValueError: `y` does not fit the model.
        """
        expected = self.label_features
        x = x if isinstance(x, Mapping) else {}  # A tensor alone is `input_ids`.
        if y is None:
            return {name: x[name] for name in expected if name in x}
        if not isinstance(y, Mapping):
            columns = y if isinstance(y, tuple | list) else [y]
            is_complete = len(columns) == len(expected)
            y = dict(zip(expected, columns, strict=True)) if is_complete else {}
        twice = set(y) & set(x)
        if twice or not y or not set(y) <= set(expected):
            raise ValueError(
                f"y does not fit {type(self).__name__}, whose labels are "
                f"{', '.join(expected) or 'features'}: expected each of them once, in "
                "y or in the features."
            )
        return dict(y)

    def _checked_label(self, name, label):
        """Returns a label as the model's own loss takes it; [B, 1] becomes [B]."""
        label = ops.convert_to_tensor(label)
        if self.label_axes == 1 and label.shape[1:] == (1,):
            label = label[:, 0]
        if self.label_axes not in (None, len(label.shape)):
            raise ValueError(
                f"{name} has the shape {tuple(label.shape)}, expected "
                f"{self.label_axes} axes. For one-hot labels compile with "
                "keras.losses.CategoricalCrossentropy(from_logits=True)."
            )
        if name.endswith(("_ids", "_positions")):
            keras_model.check_integers(name, label)
        return label


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


def weighted_hits(
    logits: numerics.Tensor, labels: numerics.Tensor, weights: numerics.Tensor
) -> numerics.Tensor:
    """Returns the summed weights of all rows whose highest logit is the label's.

    Args:
        logits: [..., C].
        labels: integer [...].
        weights: float32 [...].
    """
    hits = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
    return ops.sum(ops.cast(hits, "float32") * weights)


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
