"""Activations in the form that inference libraries recognize.

TensorFlow's graph optimizer and OpenVINO fuse an activation with the product before it
if they find the formula exactly as it is usually written. `numerics` has faster forms
for training.
"""

from typing import Any

from keras import ops

from bert_tf.modeling import numerics


def _gelu(x: numerics.Tensor) -> numerics.Tensor:
    return ops.gelu(x, approximate=True)


def _gelu_erf(x: numerics.Tensor) -> numerics.Tensor:
    # Keras's `gelu` uses erfc, which OpenVINO does not recognize.
    return x * 0.5 * (1.0 + ops.erf(x * 0.5**0.5))


_FORMS = {numerics.gelu: _gelu, numerics.gelu_erf: _gelu_erf}


def use_fusible_activations(model: Any) -> None:
    """Changes the activations of a built model's encoder to their usual forms.

    The results differ by rounding only.

    Args:
        model: a `BertModel`, or a task's model.
    """
    encoder = getattr(model, "bert", model).encoder
    for layer in encoder.encoder_layers:
        activation = layer.intermediate.activation
        layer.intermediate.activation = _FORMS.get(activation, activation)
