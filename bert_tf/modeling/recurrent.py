"""LSTMs over the pieces of a text, read in both directions.

Keras's own LSTM layer is not used: it owns a seed, which would be a part of the
model's state and of its checkpoints.

Shape letters: B batch, S sequence, H width of the input, U units of a direction.
"""

import keras
from keras import ops

GATES = 4  # Input, forget, cell and output, in Keras's order.


class BiLSTM(keras.layers.Layer):
    """Several layers, each of one LSTM forward and one backward, side by side.

    It computes in float32, whatever the model's dtype: the state is rounded at every
    step otherwise.

    Args:
        units: int, U.
        num_layers: int.
        name: as for every Keras layer.

    Source: Hochreiter and Schmidhuber, 1997; section 5.3 of the paper has one of two
    layers on a frozen encoder, Table 5 one on a left-to-right one.
    """

    def __init__(self, units, num_layers, *, name="bilstm"):
        super().__init__(name=name, dtype="float32")
        self.units = units
        self.directions = [
            (
                LSTM(units, name=f"layer_{index}_forward"),
                LSTM(units, go_backwards=True, name=f"layer_{index}_backward"),
            )
            for index in range(num_layers)
        ]

    def build(self, width):
        """Creates the weights for inputs of a width."""
        for forward, backward in self.directions:
            forward.build(width)
            backward.build(width)
            width = 2 * self.units
        self.built = True

    def call(self, inputs, input_mask):
        """Reads all texts.

        Args:
            inputs: float [B, S, H].
            input_mask: integer [B, S]: 1 for a real piece; others are not read.

        Returns:
            float32 [B, S, 2 U]: at each piece what was read before it and with it,
            then what comes after it and with it.
        """
        vectors = ops.cast(inputs, "float32")
        is_real = ops.cast(input_mask, "bool")
        for forward, backward in self.directions:
            both = [forward(vectors, is_real), backward(vectors, is_real)]
            vectors = ops.concatenate(both, axis=-1)  # [B, S, 2 U]
        return vectors

    def vector_of_text(self, inputs, input_mask=None):
        """Returns one vector a text: what each direction says when it has read it all.

        Args:
            inputs, input_mask: as for `call`; None: every piece is real.

        Returns:
            float32 [B, 2 U]: forward at the last real piece, backward at the first.
        """
        if input_mask is None:
            input_mask = ops.ones(ops.shape(inputs)[:2], dtype="int32")
        outputs = self(inputs, input_mask)  # [B, S, 2 U]
        num_pieces = ops.sum(ops.cast(input_mask, "int32"), axis=1)  # [B]
        last = ops.maximum(num_pieces - 1, 0)[:, None, None]
        forward = ops.take_along_axis(outputs[:, :, : self.units], last, axis=1)
        return ops.concatenate([forward[:, 0], outputs[:, 0, self.units :]], axis=-1)


class LSTM(keras.layers.Layer):
    """One layer in one direction: [B, S, H] to float32 [B, S, U]."""

    def __init__(self, units, *, go_backwards=False, name="lstm"):
        super().__init__(name=name, dtype="float32")
        self.units = units
        self.go_backwards = go_backwards
        # One product for all steps; only what needs the state is done step by step.
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

    def build(self, width):
        """Creates the weights for inputs of a width."""
        self.input_projection.build((None, None, width))
        self.recurrence.build((None, None, GATES * self.units))
        self.built = True

    def call(self, inputs, is_real):
        """Returns the outputs in the order of the pieces, whatever the direction."""
        outputs = self.recurrence(self.input_projection(inputs), mask=is_real)
        return ops.flip(outputs, axis=1) if self.go_backwards else outputs


class _Cell(keras.layers.Layer):
    """One step: gates from the projected input and the output of the step before."""

    def __init__(self, units, *, name):
        super().__init__(name=name, dtype="float32")
        self.units = units
        self.state_size = [units, units]
        self.output_size = units

    def build(self, input_shape=None):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.units, GATES * self.units),
            initializer="orthogonal",
        )
        self.bias = self.add_weight(
            name="bias", shape=(GATES * self.units,), initializer=_bias
        )

    def call(self, inputs, states, training=False):
        del training  # Keras passes it on.
        output, state = states
        gates = inputs + ops.matmul(output, self.kernel) + self.bias  # [B, 4 U]
        enter, keep, candidate, leave = ops.split(gates, GATES, axis=-1)
        state = ops.sigmoid(keep) * state + ops.sigmoid(enter) * ops.tanh(candidate)
        output = ops.sigmoid(leave) * ops.tanh(state)
        return output, [output, state]


def _bias(shape, dtype=None):
    """Zeros, and ones for the forget gate: at first it forgets nothing.

    Source: Jozefowicz et al., 2015, as in Keras's LSTM.
    """
    units = shape[0] // GATES
    parts = [ops.zeros(units), ops.ones(units), ops.zeros(2 * units)]
    return ops.cast(ops.concatenate(parts), dtype or "float32")
