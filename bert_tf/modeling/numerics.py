"""The formulas and constants that must equal those of 2018, each in one place.

Softmax, layer normalization and losses run in float32 whatever the model's dtype.
"""

import keras
import numpy as np
from keras import ops

# modeling.py, 2018: added to the scores of positions that may not be looked at.
ATTENTION_MASK_BIAS = -10000.0
# contrib's layer_norm, which the release called with its default.
LAYER_NORM_EPSILON = 1e-12
# run_pretraining.py, 2018: added to the sum of masked_lm_weights.
MASKED_LM_EPSILON = 1e-5
# run_classifier.py, 2018: its dropout, whatever the configuration says.
TASK_DROPOUT_RATE = 0.1

# sqrt(2 / pi) and the cubic coefficient of the tanh form (Hendrycks and Gimpel, 2016).
_GELU_SCALE = 0.7978845608028654
_GELU_CUBIC = 0.044715


def gelu(x):
    """Returns the release's GELU: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).

    It is computed as x * sigmoid(u), u = 2 sqrt(2/pi) (x + 0.044715 x^3): the same
    function in fewer passes over x. It runs in float32, which is faster on CPUs than
    bfloat16, and of a forward pass nothing but x is kept.
    """
    linear, cubic = 2 * _GELU_SCALE, 2 * _GELU_SCALE * _GELU_CUBIC

    @ops.custom_gradient
    def compute(x):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            wide = ops.cast(x, "float32")
            square = ops.square(wide)
            gate = ops.sigmoid(wide * (linear + cubic * square))
            output = wide * gate
            slope = gate + (output - output * gate) * (linear + 3 * cubic * square)
            return upstream * ops.cast(slope, upstream.dtype)

        wide = ops.cast(x, "float32")
        gate = ops.sigmoid(wide * (linear + cubic * ops.square(wide)))
        return ops.cast(wide * gate, x.dtype), gradient

    return compute(x)


def gelu_erf(x):
    """Returns the exact GELU, x times the normal distribution function of x."""
    return ops.gelu(x, approximate=False)


def _linear(x):
    return x


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_new": gelu,  # Names that Hugging Face gives the tanh form.
    "gelu_pytorch_tanh": gelu,
    "gelu_erf": gelu_erf,
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": _linear,
}


def activation(name):
    """Returns the activation that `hidden_act` names.

    Raises:
        ValueError: there is no such activation.
    """
    if name not in ACTIVATIONS:
        raise ValueError(
            f"Unknown activation {name!r} (hidden_act); expected one of "
            f"{', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


def initializer(config):
    """Returns the initializer of all weights: a normal cut at two deviations."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def layer_norm(x, gamma, beta, epsilon):
    """Returns x normalized over its last axis, in float32.

    Args:
        x: [rows, H], any float dtype.
        gamma: float32 [H].
        beta: float32 [H].
        epsilon: added to the variance.

    Returns:
        float32 [rows, H].
    """
    x = ops.cast(x, "float32")
    centered = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
    return centered * ops.rsqrt(variance + epsilon) * gamma + beta


def attention_bias(input_mask):
    """Returns float32 [B, 1, 1, T] or [B, 1, F, T]: 0 where one may look, else -10000.

    Args:
        input_mask: integer [B, T], 1 where all may look; or [B, F, T], 1 where the
            position of the second axis may look at that of the third.
    """
    mask = ops.cast(input_mask, "float32")
    bias = (1.0 - mask) * ATTENTION_MASK_BIAS
    return bias[:, None, None, :] if len(bias.shape) == 2 else bias[:, None]


def softmax(scores):
    """Returns the softmax over the last axis, computed in float32."""
    return ops.softmax(ops.cast(scores, "float32"), axis=-1)


def cross_entropy(logits, labels):
    """Returns minus the log-probability of each label, in float32.

    The gradient is that of the softmax, written out: TensorFlow's own kernel takes
    three times as long for a vocabulary's worth of classes.

    Args:
        logits: [rows, classes].
        labels: integer [rows].

    Returns:
        float32 [rows].
    """
    labels = ops.cast(labels, "int32")

    @ops.custom_gradient
    def minus_log_probability(logits):
        probabilities = ops.softmax(logits, axis=-1)
        # The highest class's probability is no smaller than 1 / classes: its
        # logarithm is safe where the label's would not be.
        highest = ops.log(ops.max(probabilities, axis=-1))
        losses = ops.max(logits, axis=-1) - _entry(logits, labels) - highest

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            rows = ops.arange(ops.shape(labels)[0], dtype="int32")
            return ops.scatter_update(
                probabilities * upstream[:, None],
                ops.stack([rows, labels], axis=1),
                (_entry(probabilities, labels) - 1.0) * upstream,
            )

        return losses, gradient

    return minus_log_probability(ops.cast(logits, "float32"))


def _entry(table, columns):
    """Returns [rows]: the entry of each row of [rows, n] at its column."""
    return ops.take_along_axis(table, columns[:, None], axis=-1)[:, 0]


def lookup(table, ids):
    """Returns rows of a table; the gradient of the table is dense.

    The masked-word head uses the word embeddings too and its gradient is dense:
    two dense gradients add up at once, where a sparse one would first be spread out.

    Args:
        table: float [V, H].
        ids: int32 [rows].

    Returns:
        [rows, H], the table's dtype.
    """
    # TensorFlow spreads a sparse gradient out where it passes a reshape.
    return ops.take(ops.reshape(table, table.shape), ids, axis=0)


def _mix(x):
    """Returns uint32 values stirred so that every bit depends on every bit.

    Source: lowbias32, https://nullprogram.com/blog/2018/07/31/.
    """
    x = x ^ ops.right_shift(x, np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ ops.right_shift(x, np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ ops.right_shift(x, np.uint32(16))


def dropout_keys(seed, step, example_index):
    """Returns one key an example, from which all its dropout masks follow.

    Args:
        seed: integer, of the run.
        step: integer scalar or [B], number of the optimizer step.
        example_index: integer [B], index of the example in the global batch.

    Returns:
        uint32 [B].
    """
    key = _mix(ops.cast(seed, "uint32") ^ np.uint32(0x9E3779B9))
    key = _mix(key ^ ops.cast(step, "uint32"))
    return _mix(key ^ ops.cast(example_index, "uint32"))


def dropout_keys_of_parts(keys, num_parts):
    """Returns a key for each of the sequences that an example is made of.

    Args:
        keys: uint32 [B] of `dropout_keys`.
        num_parts: int, such as the number of endings.

    Returns:
        uint32 [B * num_parts], those of an example next to each other.
    """
    parts = _mix(ops.cast(ops.arange(num_parts), "uint32") + np.uint32(0xC2B2AE35))
    return ops.reshape(_mix(keys[:, None] ^ parts[None, :]), (-1,))


def dropout_keys_in_use(keys, training, rates):
    """Returns the keys, or None where nothing is dropped.

    Args:
        keys: uint32 [B] of `dropout_keys`, or None.
        training: bool.
        rates: all the rates of a model.

    Raises:
        ValueError: something is to be dropped and there are no keys.
    """
    if not training or not any(rates):
        return None
    if keys is None:
        raise ValueError(
            "A model with dropout was called with training=True and without "
            "dropout_keys; give numerics.dropout_keys(seed, step, example_index)."
        )
    return keys


def dropout(x, rate, keys, site):
    """Returns x with a share of its elements set to 0 and the others scaled up.

    The mask is a hash of (key, site, index of the element within the example). So it
    is the same eager, in a graph, under XLA and in recomputation, and does not depend
    on how a batch is divided over micro-batches or replicas.

    Args:
        x: float [B * n, ...] or [B, ...]: equally many elements for every example,
            those of an example next to each other.
        rate: float, the share that is dropped; 0 gives x itself.
        keys: uint32 [B] of `dropout_keys`, or None for no dropout.
        site: int, a number for this place in the model, different for every place.

    Returns:
        As x.
    """
    if keys is None or rate == 0:
        return x
    shape = ops.shape(x)
    num_examples = ops.shape(keys)[0]
    num_elements = _elements_an_example(shape, num_examples)
    num_words = (num_elements + 1) // 2
    # Two decisions of 16 bits each from every word of 32.
    site_key = _mix(_mix(ops.cast(site, "uint32") + np.uint32(0x85EBCA6B)))
    words = _mix(ops.cast(ops.arange(num_words), "uint32") ^ site_key)
    bits = words[None, :] ^ keys[:, None]
    bits = bits * np.uint32(0x7FEB352D)
    bits = bits ^ ops.right_shift(bits, np.uint32(15))
    bits = bits * np.uint32(0x846CA68B)
    bits = bits ^ ops.right_shift(bits, np.uint32(16))
    low = ops.bitwise_and(bits, np.uint32(0xFFFF))
    high = ops.right_shift(bits, np.uint32(16))
    bits = ops.concatenate([low, high], axis=1)[:, :num_elements]
    threshold = round(rate * 65536)
    keep_scale = 65536 / (65536 - threshold)
    mask = ops.where(
        bits >= np.uint32(threshold),
        ops.cast(keep_scale, x.dtype),
        ops.cast(0.0, x.dtype),
    )
    return x * ops.reshape(mask, shape)


def _elements_an_example(shape, num_examples):
    total = 1
    for size in shape:
        total = total * size
    return total // num_examples
