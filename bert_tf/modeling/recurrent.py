"""Bidirectional LSTMs over the pieces of a text.

The paper uses them twice for comparison: on a left-to-right encoder (Table 5) and on a
frozen one (section 5.3).

Shape letters: B batch, S sequence, H width of the input, U units per direction.
"""

import keras
from keras import ops

from bert_tf.modeling import numerics


class BiLSTM(keras.layers.Layer):
    """Layers of two LSTMs, one forward and one backward.

    It computes in float32, regardless of the model's dtype: otherwise the state would
    be rounded at every step.

    Args:
        units: U.
        num_layers: number of layers.

    Source: Hochreiter and Schmidhuber, 1997.
    """

    def __init__(self, units: int, num_layers: int):
        super().__init__(name="bilstm", dtype="float32")
        self.bidirectional_layers = [
            keras.layers.Bidirectional(
                # XLA has no form of cuDNN's LSTM.
                keras.layers.LSTM(
                    units,
                    return_sequences=True,
                    use_cudnn=False,
                    name="lstm",
                    dtype="float32",
                ),
                name=f"layer_{index}",
                dtype="float32",
            )
            for index in range(num_layers)
        ]
        self.output_shape = (None, None, 2 * units)  # For `summary`.

    def build(self, width: int) -> None:
        """Creates the weights for inputs of this width."""
        for layer in self.bidirectional_layers:
            layer.build((None, None, width))
            width = self.output_shape[-1]

    def call(
        self, inputs: numerics.Tensor, input_mask: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns float32 [B, S, 2 U]: the forward and the backward outputs, or 0.

        Args:
            inputs: float [B, S, H].
            input_mask: integer [B, S], 1 for a real piece; padding is skipped.
        """
        vectors = ops.cast(inputs, "float32")
        is_real = ops.cast(input_mask, "bool")
        for layer in self.bidirectional_layers:
            vectors = layer(vectors, mask=is_real)
        # A new tensor, without the mask that Keras attached: heads do not take it.
        return ops.where(ops.expand_dims(is_real, -1), vectors, 0.0)
