"""Bidirectional LSTMs over the pieces of a text.

The paper uses them twice for comparison: on a left-to-right encoder (Table 5) and on a
frozen one (section 5.3). Keras's own LSTM layer owns a random seed, which would become
part of the model's state and of its checkpoints; hence a cell of our own.

Shape letters: B batch, S sequence, H width of the input, U units per direction.
"""

from typing import Any

import keras
from keras import ops

from bert_tf.modeling import numerics

GATES = 4  # Input, forget, cell and output, in Keras's order.


class BiLSTM(keras.layers.Layer):
    """Layers of two LSTMs, one forward and one backward.

    It computes in float32, regardless of the model's dtype: otherwise the state would
    be rounded at every step.

    Args:
        units: U.
        num_layers: number of layers.
        name: the layer's name.

    Source: Hochreiter and Schmidhuber, 1997.
    """

    def __init__(self, units: int, num_layers: int, *, name: str = "bilstm"):
        super().__init__(name=name, dtype="float32")
        self.units = units
        # The order in which they are created determines their seeds.
        pairs = [
            (
                LSTM(units, name=f"layer_{index}_forward"),
                LSTM(units, go_backwards=True, name=f"layer_{index}_backward"),
            )
            for index in range(num_layers)
        ]
        # Two flat lists: before version 3.15, Keras does not save the weights of layers
        # in nested ones.
        self.forward_layers = [forward for forward, _ in pairs]
        self.backward_layers = [backward for _, backward in pairs]

    def build(self, width: int) -> None:
        """Creates the weights for inputs of this width."""
        for forward, backward in self._layer_pairs():
            forward.build(width)
            backward.build(width)
            width = 2 * self.units
        self.built = True

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of the result, [B, S, 2 U], for `summary`."""
        return (None, None, 2 * self.units)

    def call(
        self, inputs: numerics.Tensor, input_mask: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns float32 [B, S, 2 U]: the forward and the backward outputs.

        Args:
            inputs: float [B, S, H].
            input_mask: integer [B, S], 1 for a real piece; padding is skipped.
        """
        vectors = ops.cast(inputs, "float32")
        is_real = ops.cast(input_mask, "bool")
        for forward, backward in self._layer_pairs():
            both = [forward(vectors, is_real), backward(vectors, is_real)]
            vectors = ops.concatenate(both, axis=-1)  # [B, S, 2 U]
        return vectors

    def _layer_pairs(self):
        return zip(self.forward_layers, self.backward_layers, strict=True)


class LSTM(keras.layers.Layer):
    """One layer in one direction: [B, S, H] to float32 [B, S, U]."""

    def __init__(self, units: int, *, go_backwards: bool = False, name: str = "lstm"):
        super().__init__(name=name, dtype="float32")
        self.units = units
        self.go_backwards = go_backwards
        # One product for all steps; the recurrence only adds the state's part.
        self.input_projection = keras.layers.Dense(
            GATES * units, use_bias=False, name="input", dtype="float32"
        )
        self.recurrence = keras.layers.RNN(
            _Cell(units, name="cell"),
            return_sequences=True,
            go_backwards=go_backwards,
            name="recurrence",
            dtype="float32",
        )

    def build(self, width: int) -> None:
        """Creates the weights for inputs of this width."""
        self.input_projection.build((None, None, width))
        self.recurrence.build((None, None, GATES * self.units))
        self.built = True

    def call(
        self, inputs: numerics.Tensor, is_real: numerics.Tensor
    ) -> numerics.Tensor:
        """Returns the outputs in the order of the pieces, in either direction."""
        outputs = self.recurrence(self.input_projection(inputs), mask=is_real)
        return ops.flip(outputs, axis=1) if self.go_backwards else outputs


class _Cell(keras.layers.Layer):
    """One step: gates from the projected input and the previous output."""

    def __init__(self, units: int, *, name: str):
        super().__init__(name=name, dtype="float32")
        self.units = units
        self.state_size = [units, units]
        self.output_size = units

    def build(self, input_shape: Any = None) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.units, GATES * self.units),
            initializer="orthogonal",
        )
        self.bias = self.add_weight(
            name="bias", shape=(GATES * self.units,), initializer=_bias
        )

    def call(
        self,
        inputs: numerics.Tensor,
        states: list[numerics.Tensor],
        training: bool = False,
    ) -> tuple[numerics.Tensor, list[numerics.Tensor]]:
        del training  # Keras always passes it.
        output, state = states
        gates = inputs + ops.matmul(output, self.kernel) + self.bias  # [B, 4 U]
        enter, keep, candidate, leave = ops.split(gates, GATES, axis=-1)
        state = ops.sigmoid(keep) * state + ops.sigmoid(enter) * ops.tanh(candidate)
        output = ops.sigmoid(leave) * ops.tanh(state)
        return output, [output, state]


def _bias(shape, dtype=None):
    """Zeros, and ones for the forget gate, so that it forgets little at first.

    Source: Jozefowicz et al., 2015, as in Keras's LSTM.
    """
    units = shape[0] // GATES
    parts = [ops.zeros(units), ops.ones(units), ops.zeros(2 * units)]
    return ops.cast(ops.concatenate(parts), dtype or "float32")
