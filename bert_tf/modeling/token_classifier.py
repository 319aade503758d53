"""BertTokenClassifier: the encoder with a tag head on every piece.

The encoder is fine-tuned; or, in the feature-based variant, it stays frozen and a
BiLSTM is trained on its layers.

Shape letters: B batch, S sequence, H hidden, C classes, L layers in use.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling import recurrent

# Table 7 of the paper. Name -> how layers are combined, and which layers: indices into
# the list of the embeddings' output (0) and all layers' outputs; None: all layers.
FEATURE_BASED: dict[str, tuple[str, tuple[int, ...] | None]] = {
    "embeddings": ("concat", (0,)),
    "second_to_last": ("concat", (-2,)),
    "last": ("concat", (-1,)),
    "weighted_sum_last_four": ("weighted_sum", (-4, -3, -2, -1)),
    "concat_last_four": ("concat", (-4, -3, -2, -1)),
    "weighted_sum_all": ("weighted_sum", None),
}
NUM_LSTM_LAYERS = 2
NO_TAG = -1  # The label of a piece without a tag.
_LSTM_DROPOUT_SITE = heads.TASK_DROPOUT_SITE + 1


@keras.saving.register_keras_serializable("bert_tf")
class BertTokenClassifier(heads.TaskModel):
    """Chooses one tag for every piece of a text.

    Args:
        config: BertConfig.
        num_labels: C, the number of tags.
        feature_based: a key of `FEATURE_BASED` freezes the encoder and trains a BiLSTM
            of two layers, of width H in each direction, on its outputs; None fine-tunes
            the encoder.
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]. For losses and
    metrics: `tag_ids` int32 [B, S], -1 for a piece without a tag: [CLS],
    [SEP], padding, and every piece of a word except for its first.

    Raises:
        ValueError: `num_labels` is less than 1, or `feature_based` is unknown.

    Source: section 5.3 of the paper (named entity recognition). The head's weights have
    the names of those in run_classifier.py, 2018.
    """

    config_arguments = ("num_labels", "feature_based")
    loss_names = ("tag_loss",)
    label_features = ("tag_ids",)
    label_axes = 2
    logits_outputs = ("logits",)
    answer_outputs = ("probabilities",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        num_labels: int,
        feature_based: str | None = None,
        **kwargs: Any,
    ):
        if num_labels < 1:
            raise ValueError(f"num_labels must be at least 1, got {num_labels}.")
        super().__init__(config, **kwargs)
        self.num_labels = num_labels
        self.feature_based = feature_based
        if feature_based is not None:
            self.bert.trainable = False
            self.layer_mix = LayerMix(config, feature_based)
            self.bilstm = recurrent.BiLSTM(config.hidden_size, NUM_LSTM_LAYERS)

    def _create_weights(self):
        self.bert.build((None, None))
        width = self.config.hidden_size
        if self.feature_based is not None:
            self.layer_mix.build()
            self.bilstm.build(self.layer_mix.width)
            width = 2 * width
        self.output_weights, self.output_bias = heads.class_weights(
            self, self.num_labels, width
        )

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Returns `logits` and `probabilities`, float32 [B, S, C]."""
        if self.feature_based is None:
            encoded = self.bert(features, training=keys is not None, dropout_keys=keys)
            vectors = encoded["sequence_output"]
        else:
            vectors = self._read_layers(features, keys)
        vectors = self.with_task_dropout(vectors, keys)
        logits = heads.class_scores(vectors, self.output_weights, self.output_bias)
        return {"logits": logits, "probabilities": numerics.softmax(logits)}

    def _read_layers(self, features, keys):
        """Returns the BiLSTM's outputs, float32 [B, S, 2 H]."""
        # The frozen encoder's outputs are fixed features: no dropout, even in training.
        encoded = self.bert(features, training=False)
        layers = [encoded["embedding_output"], *encoded["all_encoder_layers"]]
        vectors = self.layer_mix([ops.stop_gradient(layer) for layer in layers])
        vectors = self.with_task_dropout(vectors, keys, site=_LSTM_DROPOUT_SITE)
        return self.bilstm(vectors, numerics.input_mask_of(features))

    def scored_labels(self, labels: Any, weights: Any) -> Any:
        """Returns the labels and weights that metrics get, without pieces with no tag.

        Raises:
            ValueError: `metrics` ignore weights, and would count such pieces.
        """
        if self._compile_config.config["metrics"]:
            raise ValueError(
                f"metrics would count the label {NO_TAG}, which marks what is not "
                "scored. Pass them as weighted_metrics instead."
            )
        # As in the model's own loss. Hugging Face's ignored label is -100.
        ((name, tags),) = labels.items()
        counts = ops.cast(ops.greater_equal(tags, 0), "float32")  # [B, S]
        for one in keras.tree.flatten(weights):
            if one is not None:
                counts *= one[:, None] if len(one.shape) == 1 else one
        return {name: ops.maximum(tags, 0)}, {name: counts}

    def loss_weights(self, features: numerics.Features) -> numerics.Outputs:
        """Returns the number of pieces with a tag."""
        return {"tag_loss": ops.sum(_tag_weights(features))}

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns the summed cross-entropy of the tags."""
        tag_ids = ops.reshape(_known_tag_ids(features), (-1,))  # [B * S]
        logits = ops.reshape(outputs["logits"], (-1, self.num_labels))
        weights = ops.reshape(_tag_weights(features), (-1,))
        losses = kernels.current().cross_entropy(logits, tag_ids)
        return {"tag_loss": ops.sum(losses * weights)}

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `accuracy`: the numbers of hits and of pieces with a tag."""
        weights = _tag_weights(features)
        tag_ids = _known_tag_ids(features)
        return {"accuracy": heads.accuracy(outputs["logits"], tag_ids, weights)}


class LayerMix(keras.layers.Layer):
    """Combines some layers of an encoder, in one of the ways of the paper's Table 7.

    A weighted sum learns one weight per layer, which a softmax normalizes, and a scale.

    Args:
        config: BertConfig.
        feature_based: a key of `FEATURE_BASED`.

    Attributes:
        width: size of the result: H for a sum, H times the number of layers for a
            concatenation.

    Raises:
        ValueError: `feature_based` is unknown, or the encoder has too few layers.

    Source: section 5.3 of the paper; for the weighted sum, which the paper does not
    define, equation 1 of ELMo (Peters et al., 2018).
    """

    def __init__(self, config: config_module.BertConfig, feature_based: str):
        super().__init__(name="layer_mix", dtype="float32")
        if feature_based not in FEATURE_BASED:
            raise ValueError(
                f"Unknown feature_based {feature_based!r}; expected one of "
                f"{', '.join(FEATURE_BASED)}."
            )
        self.kind, numbers = FEATURE_BASED[feature_based]
        num_layers = config.num_hidden_layers
        self.numbers = numbers or tuple(range(1, num_layers + 1))
        if -min(self.numbers) > num_layers:
            raise ValueError(
                f"feature_based={feature_based} needs {-min(self.numbers)} layers, but "
                f"the encoder has {num_layers}."
            )
        count = len(self.numbers) if self.kind == "concat" else 1
        self.width = count * config.hidden_size

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of a weighted sum."""
        if self.kind == "weighted_sum":
            self.weights_of_layers = self.add_weight(
                name="weights", shape=(len(self.numbers),), initializer="zeros"
            )
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

    def call(self, layers: list[numerics.Tensor]) -> numerics.Tensor:
        """Returns float32 [B, S, width].

        Args:
            layers: the embeddings' output and all layers' outputs, [B, S, H].
        """
        used = [ops.cast(layers[number], "float32") for number in self.numbers]
        if self.kind == "concat":
            return ops.concatenate(used, axis=-1)
        shares = self.scale * ops.softmax(self.weights_of_layers)
        return ops.einsum("lbsh,l->bsh", ops.stack(used), shares)


def _known_tag_ids(features):
    """Returns int32 [B, S]; 0, a valid index, for pieces without a tag."""
    return ops.maximum(ops.cast(features["tag_ids"], "int32"), 0)


def _tag_weights(features):
    """Returns float32 [B, S]: 1 for the pieces with a tag in real examples."""
    has_tag = ops.cast(ops.greater_equal(features["tag_ids"], 0), "float32")
    return has_tag * heads.example_weights(features)[:, None]
