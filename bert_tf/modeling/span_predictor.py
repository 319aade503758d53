"""BertSpanPredictor: the encoder with a start and an end score for every piece.

Shape letters: B batch, S sequence, H hidden.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import embeddings
from bert_tf.modeling import heads
from bert_tf.modeling import numerics
from bert_tf.modeling import recurrent


class SpanHead(keras.layers.Layer):
    """Scores each position as the start (0) and as the end (1) of the answer.

    Fine-tuning learns a start vector and an end vector; a position's scores are its dot
    products with them, plus two biases (section 4.2 of the paper).

    Source: create_model of run_squad.py, 2018.
    """

    def __init__(self, config: config_module.BertConfig, *, dtype: Any):
        super().__init__(name="squad", dtype=dtype)
        self.config = config
        self.output_shape = (None, None, 2)  # For `summary`.

    def build(self, input_shape: Any) -> None:
        """Creates the weights; for width H they have the release's shape [2, H]."""
        self.output_weights, self.output_bias = heads.class_weights(
            self, 2, input_shape[-1]
        )

    def call(self, sequence_output: numerics.Tensor) -> numerics.Tensor:
        """Returns float32 logits [B, S, 2] for [B, S, H]."""
        logits = ops.einsum("bsh,ch->bsc", sequence_output, self.output_weights)
        return heads.add_class_bias(logits, self.output_bias)


@keras.saving.register_keras_serializable("bert_tf")
class BertSpanPredictor(heads.TaskModel):
    """Finds where in a text the answer to a question starts and ends.

    The score of a span is its start score plus its end score. "No answer" is a span
    too: the one that starts and ends at [CLS] (section 4.3 of the paper). A question is
    left unanswered if that span beats the best other one by more than a threshold,
    which is chosen on the development set.

    Args:
        config: BertConfig.
        bilstm_on_top: whether a BiLSTM of one layer, of width H in each direction,
            is inserted between encoder and head (Table 5 of the paper).
        **kwargs: `name`, `dtype` and so on; see `heads.TaskModel`.

    Features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S]. For losses and
    metrics: `start_positions` and `end_positions` int32 [B], the first and the last
    piece of the answer; 0, which is [CLS], if the window contains none.

    Source: create_model and model_fn_builder of run_squad.py, 2018.
    """

    config_arguments = ("bilstm_on_top",)
    loss_names = ("span_loss",)
    label_features = ("start_positions", "end_positions")
    logits_outputs = ("start_logits", "end_logits")

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        bilstm_on_top: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self.bilstm_on_top = bilstm_on_top
        policy, hidden = self.dtype_policy, config.hidden_size
        width = 2 * hidden if bilstm_on_top else hidden
        head = SpanHead(config, dtype=policy)
        # The release's scope.
        self.cls = embeddings.Scope("cls", width=width, dtype=policy, squad=head)
        self.cls.output_shape = head.output_shape
        if bilstm_on_top:
            self.bilstm = recurrent.BiLSTM(hidden, 1)

    def _create_weights(self):
        self.bert.build((None, None))
        if self.bilstm_on_top:
            self.bilstm.build(self.config.hidden_size)
        self.cls.build((None, None))

    def task_outputs(
        self, features: numerics.Features, keys: numerics.Tensor | None
    ) -> numerics.Outputs:
        """Returns `start_logits` and `end_logits`, float32 [B, S].

        As in 2018, padding has scores too.
        """
        encoded = self.bert(features, training=keys is not None, dropout_keys=keys)
        vectors = encoded["sequence_output"]
        if self.bilstm_on_top:
            input_mask = numerics.input_mask_of(features)
            vectors = self.bilstm(vectors, input_mask)  # [B, S, 2 H]
        logits = self.cls.squad(vectors)
        return {"start_logits": logits[:, :, 0], "end_logits": logits[:, :, 1]}

    def loss_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Outputs:
        """Returns the cross-entropy of start and end, averaged over both, summed.

        The softmax leaves out padding, which no answer can contain. In 2018 padding
        took part; the loss then depends on the length to which rows are padded, and
        rows cut to a length bucket would train differently from full ones.
        """
        bias = _bias_of_padding(features)
        start_losses = heads.class_losses(
            outputs["start_logits"] + bias, features["start_positions"]
        )
        end_losses = heads.class_losses(
            outputs["end_logits"] + bias, features["end_positions"]
        )
        losses = (start_losses + end_losses) / 2.0
        weights = heads.example_weights(features)
        return {"span_loss": heads.weighted_sum(losses, weights)}

    def metric_sums(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Metrics:
        """Returns `start_accuracy` and `end_accuracy`: hits and windows.

        As in the loss, padding does not take part.
        """
        weights = heads.example_weights(features)
        bias = _bias_of_padding(features)
        return {
            f"{end}_accuracy": heads.accuracy(
                outputs[f"{end}_logits"] + bias, features[f"{end}_positions"], weights
            )
            for end in ("start", "end")
        }


def _bias_of_padding(features: numerics.Features) -> numerics.Tensor:
    """Returns what to add to logits, float32 [B, S], so that padding is never best."""
    return numerics.attention_bias(numerics.input_mask_of(features))[:, 0, 0]
