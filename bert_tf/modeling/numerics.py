"""The constants of 2018, each in one place, and formulas that have one form only.

`kernels` has the formulas that are computed in different ways on different devices.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

# A tensor of the Keras backend in use, or a NumPy array where Keras accepts one. The
# backends have no common class, so dtype and shape are in the docstrings.
Tensor = Any
# A batch's columns by name, and what a model computes from them.
Features = Mapping[str, Tensor]
Outputs = dict[str, Tensor]
# Each metric as a sum and its weight.
Metrics = dict[str, tuple[Tensor, Tensor]]

# Added to the attention scores of positions that must not be seen (modeling.py, 2018).
# After the softmax it leaves them exactly 0 in float32, as -inf would. But it is
# finite: a row without any visible position, such as the padding of a last batch, gets
# an ordinary softmax instead of 0 / 0, which would turn every gradient into NaN.
# It also fits into float16, whose largest number is 65504.
ATTENTION_MASK_BIAS = -10000.0
# The default of contrib's layer_norm, which the release called. It matters only for
# vectors whose components are nearly equal; released weights were trained with it.
LAYER_NORM_EPSILON = 1e-12
# Added to the number of masked words that the loss is divided by (run_pretraining.py,
# 2018). A batch without masked words then has the loss 0 and not 0 / 0.
MASKED_LM_EPSILON = 1e-5
# Dropout before a task's output layer. "The dropout probability was always kept at 0.1"
# (section A.3 of the paper): run_classifier.py, 2018, does not read the configuration.
TASK_DROPOUT_RATE = 0.1

# sqrt(2 / pi) and the cubic coefficient of GELU's tanh form (Hendrycks and Gimpel,
# 2016).
GELU_SCALE = 0.7978845608028654
GELU_CUBIC = 0.044715

# Names in `hidden_act` -> names of functions.
#
# BERT follows OpenAI's GPT in using GELU instead of ReLU (section A.2 of the paper).
# The release's form is x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). It approximates
# `gelu_erf`, x times the normal distribution function of x, to 5e-4. Weights trained
# with one form give visibly different vectors with the other, so the two have different
# names.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu",  # Hugging Face's names of the tanh form.
    "gelu_pytorch_tanh": "gelu",
    "gelu_erf": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}

# What turns the logit of a head with one output into a score.
IDENTITY, SIGMOID = "identity", "sigmoid"
OUTPUT_ACTIVATIONS = {IDENTITY: lambda logits: logits, SIGMOID: ops.sigmoid}


def activation(name: str) -> str:
    """Returns which function `hidden_act` names.

    Raises:
        ValueError: the name is unknown.
    """
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ValueError(
            f"Unknown activation {name!r} (hidden_act); expected one of "
            f"{', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


def score_of(logits: Tensor, output_activation: str | None) -> Tensor:
    """Returns the scores of logits, float32 of any shape.

    Args:
        logits: float32, any shape.
        output_activation: a key of `OUTPUT_ACTIVATIONS`; None is the identity.
    """
    return OUTPUT_ACTIVATIONS[output_activation or IDENTITY](logits)


def attention_bias(input_mask: Tensor) -> Tensor:
    """Returns what to add to attention scores: 0 or `ATTENTION_MASK_BIAS`.

    Args:
        input_mask: integer [B, T], 1 for positions that are visible to all; or
            [B, F, T], 1 where position F sees position T.

    Returns:
        float32 [B, 1, 1, T] or [B, 1, F, T].
    """
    mask = ops.cast(input_mask, "float32")
    bias = (1.0 - mask) * ATTENTION_MASK_BIAS
    # LiteRT has no slices that add axes to a tensor of unknown size, hence expand_dims.
    return ops.expand_dims(bias, (1, 2) if len(bias.shape) == 2 else 1)


def softmax(scores: Tensor) -> Tensor:
    """Returns the softmax over the last axis, computed in float32."""
    return ops.softmax(ops.cast(scores, "float32"), axis=-1)


def lookup(table: Tensor, ids: Tensor) -> Tensor:
    """Returns rows of a table; the table's gradient is dense.

    The masked-word head also uses the word embeddings, and its gradient is dense. Two
    dense gradients add directly; a sparse one would have to be expanded first.

    Args:
        table: float [V, H].
        ids: int32 [rows].

    Returns:
        [rows, H], the table's dtype.
    """
    # TensorFlow makes a sparse gradient dense when it passes through a reshape.
    return ops.take(ops.reshape(table, table.shape), ids, axis=0)


def input_mask_of(features: Features) -> Tensor:
    """Returns `input_mask`, int32 [..., S]; all 1 if the features lack it.

    Args:
        features: under our names.
    """
    ones = ops.ones_like(features["input_ids"])
    return ops.cast(features.get("input_mask", ones), "int32")
