"""BertTokenClassifier: the encoder with a tag head on every piece.

The encoder is fine-tuned; or, feature-based, it is left as it is and a BiLSTM learns to
read its layers.

Shape letters: B batch, S sequence, H hidden, C classes, L layers in use.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import numerics
from bert_tf.modeling import recurrent

# Table 7 of the paper. Name -> how the layers are put together, and which: numbers as
# those of a list, of which 0 is the embeddings' output; None: all but the embeddings'.
FEATURE_BASED = {
    "embeddings": ("concat", (0,)),
    "second_to_last": ("concat", (-2,)),
    "last": ("concat", (-1,)),
    "weighted_sum_last_four": ("weighted_sum", (-4, -3, -2, -1)),
    "concat_last_four": ("concat", (-4, -3, -2, -1)),
    "weighted_sum_all": ("weighted_sum", None),
}
NUM_LSTM_LAYERS = 2
_LSTM_DROPOUT_SITE = heads.TASK_DROPOUT_SITE + 1


@keras.saving.register_keras_serializable("bert_tf")
class BertTokenClassifier(heads.TaskModel):
    """Chooses one tag for every piece of a text.

    Args:
        config: BertConfig.
        num_labels: int, C, the number of tags.
        feature_based: key of `FEATURE_BASED`, to leave the encoder as it is and train
            a BiLSTM of two layers on what it gives, of width H in each direction; None
            to fine-tune the encoder.
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]; `tag_ids` int32
    [B, S], for losses and metrics only: -1 for a piece that has no tag of its own,
    such as [CLS], padding and all pieces of a word but its first.

    Raises:
        ValueError: fewer than one tag, or another `feature_based`.

    Source: section 5.3 of the paper (named entity recognition); the head's weights are
    named as those of run_classifier.py, 2018.
    """

    loss_names = ("tag_loss",)
    task_dropout_rate = numerics.TASK_DROPOUT_RATE

    def __init__(
        self,
        config,
        *,
        num_labels,
        feature_based=None,
        name="bert_token_classifier",
        dtype=None,
        **kwargs,
    ):
        if num_labels < 1:
            raise ValueError(f"num_labels must be at least 1, got {num_labels}.")
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        self.num_labels = num_labels
        self.feature_based = feature_based
        self.bert = bert.BertModel(config, name="bert", dtype=self.dtype_policy)
        if feature_based is not None:
            self.bert.trainable = False
            self.layer_mix = LayerMix(config, feature_based)
            self.bilstm = recurrent.BiLSTM(config.hidden_size, NUM_LSTM_LAYERS)

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()
        width = self.config.hidden_size
        if self.feature_based is not None:
            self.layer_mix.build()
            self.bilstm.build(self.layer_mix.width)
            width = 2 * width
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.num_labels, width),
            initializer=numerics.initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.num_labels,), initializer="zeros"
        )

    def call(self, features, training=False, dropout_keys=None):
        """Computes the tags' scores at every piece.

        Args:
            features: dict of int32 [B, S]: `input_ids`, and `input_mask` and
                `segment_ids` where they are not all 1 and all 0.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            A dict: `logits` and `probabilities`, float32 [B, S, C].

        Raises:
            ValueError: training needs keys and there are none, or S is longer than
                the model's position table.
        """
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        if self.feature_based is None:
            encoded = self.bert(features, training=training, dropout_keys=keys)
            vectors = encoded["sequence_output"]
        else:
            vectors = self._read_layers(features, keys)
        vectors = self._dropped_out(vectors, keys, heads.TASK_DROPOUT_SITE)
        length, width = ops.shape(vectors)[1:]
        vectors = ops.reshape(vectors, (-1, width))  # [B * S, H or 2 H]
        logits = heads.class_scores(vectors, self.output_weights, self.output_bias)
        logits = ops.reshape(logits, (-1, length, self.num_labels))  # [B, S, C]
        return {"logits": logits, "probabilities": numerics.softmax(logits)}

    def _read_layers(self, features, keys):
        """Returns what the BiLSTM makes of the layers, float32 [B, S, 2 H]."""
        # Without dropout, also in training: these are given features.
        encoded = self.bert(features, training=False)
        layers = [encoded["embedding_output"], *encoded["all_encoder_layers"]]
        vectors = self.layer_mix([ops.stop_gradient(layer) for layer in layers])
        input_mask = features.get("input_mask")
        if input_mask is None:
            input_mask = ops.ones_like(features["input_ids"])
        vectors = self._dropped_out(vectors, keys, _LSTM_DROPOUT_SITE)
        return self.bilstm(vectors, input_mask)

    def _dropped_out(self, vectors, keys, site):
        return numerics.dropout(vectors, self.task_dropout_rate, keys, site)

    def loss_weights(self, features):
        """Returns the number of pieces that have a tag.

        Args:
            features: as `loss_sums` takes them.

        Returns:
            A dict: `tag_loss`, float32 scalar.
        """
        return {"tag_loss": ops.sum(_tag_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed cross-entropy of the tags.

        Args:
            features: dict with `tag_ids` int32 [B, S]; `is_real_example` float32 [B]
                where there is padding.
            outputs: what `call` returned for them.

        Returns:
            A dict: `tag_loss`, float32 scalar.
        """
        tag_ids = ops.reshape(_known_tag_ids(features), (-1,))  # [B * S]
        logits = ops.reshape(outputs["logits"], (-1, self.num_labels))
        weights = ops.reshape(_tag_weights(features), (-1,))
        losses = numerics.cross_entropy(logits, tag_ids)
        return {"tag_loss": ops.sum(losses * weights)}

    def metric_sums(self, features, outputs):
        """Returns what the share of right tags is made of.

        Args:
            features, outputs: as `loss_sums` takes them.

        Returns:
            A dict: `accuracy`, a pair of float32 scalars: hits and tagged pieces.
        """
        weights = _tag_weights(features)
        tag_ids = _known_tag_ids(features)
        hits = heads.weighted_hits(outputs["logits"], tag_ids, weights)
        return {"accuracy": (hits, ops.sum(weights))}

    def get_config(self):
        """Returns what the constructor takes."""
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "feature_based": self.feature_based,
        }


class LayerMix(keras.layers.Layer):
    """Some layers of an encoder as one, by a name of Table 7 of the paper.

    A weighted sum has a weight for each layer, made positive with the sum 1, and a
    scale; both are learned.

    Args:
        config: BertConfig.
        feature_based: key of `FEATURE_BASED`.

    Attributes:
        width: int, size of the result: H, or as often H as layers are concatenated.

    Raises:
        ValueError: there is no such name, or the encoder has too few layers.

    Source: section 5.3 of the paper; equation 1 of ELMo (Peters et al., 2018) for the
    weighted sum, which the paper does not give.
    """

    def __init__(self, config, feature_based, *, name="layer_mix"):
        super().__init__(name=name, dtype="float32")
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

    def build(self, input_shape=None):
        """Creates the weights of a weighted sum."""
        if self.kind == "weighted_sum":
            self.weights_of_layers = self.add_weight(
                name="weights", shape=(len(self.numbers),), initializer="zeros"
            )
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

    def call(self, layers):
        """Returns float32 [B, S, width].

        Args:
            layers: the embeddings' output and those of all layers, [B, S, H] each.
        """
        used = [ops.cast(layers[number], "float32") for number in self.numbers]
        if self.kind == "concat":
            return ops.concatenate(used, axis=-1)
        shares = self.scale * ops.softmax(self.weights_of_layers)
        return ops.einsum("lbsh,l->bsh", ops.stack(used), shares)


def _known_tag_ids(features):
    """Returns int32 [B, S], 0 where there is no tag: an index that exists."""
    return ops.maximum(ops.cast(features["tag_ids"], "int32"), 0)


def _tag_weights(features):
    """Returns float32 [B, S]: 1 for a piece with a tag in an example that counts."""
    has_tag = ops.cast(ops.greater_equal(features["tag_ids"], 0), "float32")
    return has_tag * heads.example_weights(features)[:, None]
