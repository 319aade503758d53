"""What a model attends to.

Shape letters: B batch, S sequence, N heads, D = H / N, F from-sequence, T to-sequence.
"""

from typing import Any

from keras import ops

from bert_tf.modeling import bert
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import plain


def attention_weights(
    model: Any,
    features: numerics.Features,
    outputs: numerics.Outputs | None = None,
) -> list[numerics.Tensor]:
    """Returns the attention weights of every layer, lowest first.

    Args:
        model: a `BertModel`, or a task's model with an encoder `bert`.
        features: those of `BertModel.call`.
        outputs: what the encoder returned for them; None: it is called.

    Returns:
        L tensors, float32 [B, N, S, S]: for each head and piece (third axis) the
        weights of all pieces (fourth axis), which sum to 1.

    Example:
        weights = inspection.attention_weights(model, tokenizer(["The cat sat."]))
        weights[-1][0, 2, 5]  # What the sixth piece attends to, in the third head.
    """
    encoder: bert.BertModel = getattr(model, "bert", model)
    outputs = encoder(features) if outputs is None else outputs
    visible = bert.visible_positions(
        encoder.checked_features(features), is_causal=encoder.config.is_causal
    )
    bias = numerics.attention_bias(visible)
    inputs = [outputs["embedding_output"], *outputs["all_encoder_layers"][:-1]]
    return [
        _attention_weights(layer.attention.self_attention, x, bias, encoder.config)
        for layer, x in zip(encoder.encoder.encoder_layers, inputs, strict=True)
    ]


def _attention_weights(scope, x, bias, config):
    """Returns softmax(q k^T / sqrt(D) + bias), [B, N, F, T], for x [B, S, H]."""
    length, num_heads = ops.shape(x)[1], config.num_attention_heads
    rows = ops.reshape(x, (-1, config.hidden_size))
    query = plain.split_heads(scope.query(rows), length, num_heads)  # [B, N, F, D]
    key = plain.split_heads(scope.key(rows), length, num_heads)  # [B, N, T, D]
    scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
    return numerics.softmax(
        ops.cast(scores, "float32") * query.shape[-1] ** -0.5 + bias
    )
