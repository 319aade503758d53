"""BertSpanPredictor: the encoder with a start and an end score for every piece.

Shape letters: B batch, S sequence, H hidden.
"""

import keras
from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import heads
from bert_tf.modeling import numerics
from bert_tf.modeling import recurrent


class SpanHead(keras.layers.Layer):
    """Scores of "the answer starts here" (0) and "the answer ends here" (1).

    Source: create_model of run_squad.py, 2018.
    """

    def __init__(self, config, *, name="squad", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config

    def build(self, width):
        """Creates the weights, for vectors of width H in the release's shape [2, H]."""
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(2, width),
            initializer=numerics.initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(2,), initializer="zeros"
        )

    def call(self, sequence_output):
        """Returns float32 logits [B, S, 2] for [B, S, H]."""
        logits = ops.einsum("bsh,ch->bsc", sequence_output, self.output_weights)
        return ops.cast(ops.add(logits, self.output_bias), "float32")


class SpanHeads(keras.layers.Layer):
    """The span head under the release's scope `cls`."""

    def __init__(self, config, *, name="cls", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.squad = SpanHead(config, dtype=self.dtype_policy)

    def build(self, width):
        """Creates the weights of the head for vectors of a width."""
        self.squad.build(width)


@keras.saving.register_keras_serializable("bert_tf")
class BertSpanPredictor(heads.TaskModel):
    """Finds where in a text the answer to a question starts and ends.

    Args:
        config: BertConfig.
        bilstm_on_top: whether a BiLSTM of one layer, of width H in each direction,
            stands between encoder and head (Table 5 of the paper).
        name: as for every Keras model.
        dtype: as for every Keras model.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]; `start_positions`
    and `end_positions` int32 [B], the first and the last piece of the answer, 0 (that
    is [CLS]) where the window has none, for losses and metrics only.

    Source: create_model and model_fn_builder of run_squad.py, 2018.
    """

    loss_names = ("span_loss",)

    def __init__(
        self,
        config,
        *,
        bilstm_on_top=False,
        name="bert_span_predictor",
        dtype=None,
        **kwargs,
    ):
        super().__init__(config, name=name, dtype=dtype, **kwargs)
        self.bilstm_on_top = bilstm_on_top
        policy = self.dtype_policy
        self.bert = bert.BertModel(config, name="bert", dtype=policy)
        self.cls = SpanHeads(config, name="cls", dtype=policy)
        if bilstm_on_top:
            self.bilstm = recurrent.BiLSTM(config.hidden_size, 1)

    def build(self, input_shape=None):
        """Creates all weights; needs no data."""
        self.bert.build()
        width = self.config.hidden_size
        if self.bilstm_on_top:
            self.bilstm.build(width)
            width = 2 * width
        self.cls.build(width)

    def call(self, features, training=False, dropout_keys=None):
        """Computes every piece's scores, those of the padding included, as in 2018.

        Args:
            features: dict of int32 [B, S]: `input_ids`, and `input_mask` and
                `segment_ids` where they are not all 1 and all 0.
            training: bool, whether to drop out.
            dropout_keys: uint32 [B] of `numerics.dropout_keys`, or None, in `fit` and
                without training.

        Returns:
            A dict: `start_logits` and `end_logits`, float32 [B, S].

        Raises:
            ValueError: training needs keys and there are none, or S is longer than
                the model's position table.
        """
        keys = self.dropout_keys_in_use(features, training, dropout_keys)
        encoded = self.bert(features, training=training, dropout_keys=keys)
        vectors = encoded["sequence_output"]
        if self.bilstm_on_top:
            input_mask = features.get("input_mask")
            if input_mask is None:
                input_mask = ops.ones_like(features["input_ids"])
            vectors = self.bilstm(vectors, input_mask)  # [B, S, 2 H]
        logits = self.cls.squad(vectors)
        return {"start_logits": logits[:, :, 0], "end_logits": logits[:, :, 1]}

    def loss_weights(self, features):
        """Returns the number of windows.

        Args:
            features: as `loss_sums` takes them; positions are not needed.

        Returns:
            A dict: `span_loss`, float32 scalar.
        """
        return {"span_loss": ops.sum(heads.example_weights(features))}

    def loss_sums(self, features, outputs):
        """Returns the summed mean of both ends' cross-entropy.

        Padding cannot be chosen: its scores are left out, so that the loss does not
        depend on how long the rows were padded. In 2018 they took part.

        Args:
            features: dict with `start_positions` and `end_positions` int32 [B];
                `is_real_example` float32 [B] where there is padding.
            outputs: what `call` returned for them.

        Returns:
            A dict: `span_loss`, float32 scalar.
        """
        bias = 0.0
        if "input_mask" in features:
            bias = numerics.attention_bias(features["input_mask"])[:, 0, 0]  # [B, S]
        start_losses = numerics.cross_entropy(
            outputs["start_logits"] + bias, features["start_positions"]
        )
        end_losses = numerics.cross_entropy(
            outputs["end_logits"] + bias, features["end_positions"]
        )
        losses = (start_losses + end_losses) / 2.0
        return {"span_loss": ops.sum(losses * heads.example_weights(features))}

    def metric_sums(self, features, outputs):
        """Returns what the accuracies of both ends are made of.

        Args:
            features, outputs: as `loss_sums` takes them.

        Returns:
            A dict: `start_accuracy` and `end_accuracy`, each a pair of float32
            scalars: hits and windows.
        """
        weights = heads.example_weights(features)
        return {
            f"{end}_accuracy": (
                heads.weighted_hits(
                    outputs[f"{end}_logits"], features[f"{end}_positions"], weights
                ),
                ops.sum(weights),
            )
            for end in ("start", "end")
        }

    def get_config(self):
        """Returns what the constructor takes."""
        return {**super().get_config(), "bilstm_on_top": self.bilstm_on_top}
