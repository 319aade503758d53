"""The formulas and constants that must equal those of 2018, each in one place.

Softmax, layer normalization and losses run in float32, regardless of the model's dtype.
bfloat16 has 8 significant bits: in a sum over 512 positions or 30,522 word pieces,
small terms would vanish, and a loss would have only two or three significant digits.
"""

import contextlib
import contextvars
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf import islands
from bert_tf.modeling import dropout_bits
from bert_tf.modeling import initial_values

# A tensor of the Keras backend in use, or a NumPy array where Keras accepts one. The
# backends have no common class, so dtype and shape are in the docstrings.
Tensor = Any
# A batch's columns by name, and what a model computes from them.
Features = Mapping[str, Tensor]
Outputs = dict[str, Tensor]

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

# sqrt(2 / pi) and the cubic coefficient of the tanh form (Hendrycks and Gimpel, 2016).
_GELU_SCALE = 0.7978845608028654
_GELU_CUBIC = 0.044715
_in_xla_step = contextvars.ContextVar("in_xla_step", default=False)


@contextlib.contextmanager
def xla_step() -> Iterator[None]:
    """Marks the code of a step that XLA compiles as a whole, backward pass included.

    XLA fuses element-wise operations with each other and with matrix products, so what
    limits a step is what it writes to memory. Some formulas below have a second form
    for XLA, which computes more and writes less. Dropout masks are the same in both
    forms; everything else is the same up to rounding.
    """
    token = _in_xla_step.set(True)
    try:
        yield
    finally:
        _in_xla_step.reset(token)


def is_xla_step() -> bool:
    """Returns whether XLA compiles the step: in `xla_step`, and always on JAX."""
    return _in_xla_step.get() or keras.backend.backend() == "jax"


@islands.island
def gelu(x: Tensor) -> Tensor:
    """Returns the release's GELU: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).

    BERT follows OpenAI's GPT in using GELU instead of ReLU (section A.2 of the paper).
    The tanh form approximates `gelu_erf` to 5e-4. Weights trained with one form give
    visibly different vectors with the other, so the two have different names.

    It is computed as x * sigmoid(u), u = 2 sqrt(2/pi) (x + 0.044715 x^3): the same
    function in fewer passes over x. It runs in float32, which is faster on CPUs than
    bfloat16, and the backward pass needs nothing but x.
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
            return ops.cast(ops.cast(upstream, "float32") * slope, upstream.dtype)

        wide = ops.cast(x, "float32")
        gate = ops.sigmoid(wide * (linear + cubic * ops.square(wide)))
        return ops.cast(wide * gate, x.dtype), gradient

    return compute(x)


@islands.island
def gelu_erf(x: Tensor) -> Tensor:
    """Returns the exact GELU: x times the normal distribution function of x."""
    return ops.gelu(x, approximate=False)


def _linear(x):
    return x


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_new": gelu,  # Hugging Face's names of the tanh form.
    "gelu_pytorch_tanh": gelu,
    "gelu_erf": gelu_erf,
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": _linear,
}


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """Returns the activation named by `hidden_act`.

    Raises:
        ValueError: the name is unknown.
    """
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ValueError(
            f"Unknown activation {name!r} (hidden_act); expected one of "
            f"{', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


def initializer(config: Any) -> keras.initializers.Initializer:
    """Returns the initializer of all kernels, tables and output weights.

    It is a normal distribution with deviation `initializer_range` (0.02, as in OpenAI's
    GPT), redrawn beyond two deviations. Weights this small let a new output layer
    begin with nearly equal probabilities for all classes, and the cut keeps single
    large weights from dominating the first steps.

    Args:
        config: `BertConfig`.
    """
    return initial_values.TruncatedNormal(stddev=config.initializer_range)


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """Returns x normalized over its last axis, computed in float32.

    Args:
        x: [rows, H], any float dtype.
        gamma: [H], any float dtype.
        beta: [H], any float dtype.
        epsilon: added to the variance.

    Returns:
        float32 [rows, H].
    """
    x = ops.cast(x, "float32")
    mean, scale = moments(x, epsilon)
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    return (x - mean) * scale * gamma + beta


def moments(x: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Returns the mean, and 1 / sqrt(variance + epsilon), over the last axis.

    Args:
        x: float32 [rows, H].
        epsilon: added to the variance.

    Returns:
        Two float32 [rows, 1].
    """
    mean = islands.reduce_rows(ops.mean, x)
    variance = islands.reduce_rows(ops.mean, ops.square(x - mean))
    return mean, ops.rsqrt(variance + epsilon)


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
    scores = ops.cast(scores, "float32")
    return _softmax_for_xla(scores) if is_xla_step() else ops.softmax(scores, axis=-1)


@ops.custom_gradient
def _softmax_for_xla(scores):
    # Dividing exponentials by their sum would keep all of them in memory until the sum
    # is known. Here they are computed twice.
    highest, log_total = log_sum_parts(scores)
    weights = ops.exp(scores - highest - log_total)

    def gradient(*args, upstream=None):
        upstream = args[0] if upstream is None else upstream
        product = weights * upstream
        return product - weights * ops.sum(product, axis=-1, keepdims=True)

    return weights, gradient


def log_sum_parts(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what a softmax over the last axis needs, as two parts.

    The softmax is exp(logits - highest - log_total). The sum of both parts would lose
    digits of the second one if logits are large.

    Args:
        logits: [..., n], any float dtype.

    Returns:
        highest: float32 [..., 1], the largest logit.
        log_total: float32 [..., 1], the logarithm of the sum of exp(logits - highest).
    """
    # In a single island, XLA would write all logits to memory as float32.
    highest = _highest(logits)
    return highest, _log_total(logits, highest)


@islands.inner_island
def _highest(logits):
    # For the same reason, the maximum comes before the cast (in steps under XLA).
    return ops.cast(islands.reduce_rows(ops.max, logits), "float32")


@islands.inner_island
def _log_total(logits, highest):
    total = islands.reduce_rows(
        ops.sum, logits, lambda part: ops.exp(ops.cast(part, "float32") - highest)
    )
    return ops.log(total)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Returns the negative log-probability of each label, computed in float32.

    The gradient of the softmax is written out: TensorFlow's own kernel takes three
    times as long for as many classes as a vocabulary has. Only the logits and two
    numbers per row are kept for it.

    Args:
        logits: [rows, classes].
        labels: integer [rows].

    Returns:
        float32 [rows].
    """
    labels = ops.cast(labels, "int32")

    @ops.custom_gradient
    def minus_log_probability(logits):
        highest, log_total = log_sum_parts(logits)  # [rows, 1]

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return _cross_entropy_gradient(logits, highest, log_total, labels, upstream)

        below = highest[:, 0] - _label_logits(logits, labels)
        return below + log_total[:, 0], gradient

    return minus_log_probability(logits)


@islands.inner_island
def _cross_entropy_gradient(logits, highest, log_total, labels, upstream):
    probabilities = ops.exp(ops.cast(logits, "float32") - highest - log_total)
    errors = probabilities - ops.cast(_is_label(logits, labels), "float32")
    return ops.cast(errors * upstream[:, None], logits.dtype)


def _label_logits(logits, labels):
    """Returns float32 [rows]: the logit of each row's label."""
    if is_xla_step():  # XLA fuses sums, but not gathers.
        wide = ops.cast(logits, "float32")
        return ops.sum(ops.where(_is_label(logits, labels), wide, 0.0), axis=-1)
    entries = ops.take_along_axis(logits, labels[:, None], axis=-1)
    return ops.cast(entries[:, 0], "float32")


def _is_label(logits, labels):
    classes = ops.arange(ops.shape(logits)[-1], dtype="int32")
    return ops.equal(classes[None, :], labels[:, None])


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


def dropout_keys(seed: Tensor, step: Tensor, example_index: Tensor) -> Tensor:
    """Returns one key per example, which determines all of its dropout masks.

    Randomness is therefore a function of (seed, step, example, dropout site), not of a
    generator's state. A run that is killed and resumed draws the same masks,
    and so does one that divides its batches over a different number of devices.

    Args:
        seed: integer, the seed of the run.
        step: integer scalar or [B], the number of the optimizer step.
        example_index: integer [B], the example's index in the global batch.

    Returns:
        uint32 [B].
    """
    key = dropout_bits.mix(ops.cast(seed, "uint32") ^ np.uint32(0x9E3779B9))
    key = dropout_bits.mix(key ^ ops.cast(step, "uint32"))
    return dropout_bits.mix(key ^ ops.cast(example_index, "uint32"))


def dropout_keys_of_parts(keys: Tensor, num_parts: int) -> Tensor:
    """Returns one key for each of several sequences that form an example.

    Args:
        keys: uint32 [B], from `dropout_keys`.
        num_parts: sequences per example, such as the number of endings.

    Returns:
        uint32 [B * num_parts]; the keys of an example are adjacent.
    """
    parts = dropout_bits.mix(
        ops.cast(ops.arange(num_parts), "uint32") + np.uint32(0xC2B2AE35)
    )
    return ops.reshape(dropout_bits.mix(keys[:, None] ^ parts[None, :]), (-1,))


def dropout_keys_of_rows(keys: Tensor, rows: Tensor, length: Tensor) -> Tensor:
    """Returns what `dropout` needs for some rows of all examples.

    Args:
        keys: uint32 [B], from `dropout_keys`.
        rows: int32 [rows], indices of the rows among B * S.
        length: S, integer.

    Returns:
        uint32 [rows, 3]: the example's key, the position within it, and S.
    """
    lengths = ops.ones_like(rows) * length
    parts = (ops.take(keys, rows // length, axis=0), rows % length, lengths)
    return ops.stack([ops.cast(part, "uint32") for part in parts], axis=1)


def dropout(x: Tensor, rate: float, keys: Tensor | None, site: int) -> Tensor:
    """Returns x with some elements set to 0 and the remaining ones scaled up.

    The mask is a hash of (key, site, index of the element within the example). It is
    therefore the same in eager code, in a graph, under XLA and in recomputation, and
    does not depend on how a batch is divided over micro-batches or replicas.

    Args:
        x: float [B * n, ...] or [B, ...]: the same number of elements for every
            example, and the elements of an example are adjacent.
        rate: the share to drop, rounded to a multiple of 1 / 65536; 0 returns x itself.
        keys: uint32 [B], from `dropout_keys`, or None for no dropout. For x [rows, H]
            with only some rows of the examples: uint32 [rows, 3], from
            `dropout_keys_of_rows`; the mask is the same.
        site: number of this place in the model; every place has its own.

    Returns:
        The same shape and dtype as x.
    """
    if keys is None or rate == 0:
        return x
    return ops.cast(wide_dropout(x, rate, keys, site), x.dtype)


def wide_dropout(x: Tensor, rate: float, keys: Tensor | None, site: int) -> Tensor:
    """Returns `dropout` in at least float32, not yet rounded to the dtype of x."""
    wide = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
    if keys is None or rate == 0:
        return wide
    # Each hash of 32 bits decides about two elements: an element is dropped if its 16
    # bits, as a number, are below rate * 65536. The lower bits decide about the first
    # half of an example's elements. They move to the top, where the other bits do not
    # affect the comparison.
    threshold = round(rate * 65536)
    keep_scale = 65536 / (65536 - threshold)
    site_key = dropout_bits.mix(
        dropout_bits.mix(ops.cast(site, "uint32") + np.uint32(0x85EBCA6B))
    )
    bits = dropout_bits.for_xla if is_xla_step() else dropout_bits.plain
    if len(keys.shape) == 2:
        bits = dropout_bits.of_rows
    is_kept = bits(ops.shape(x), keys, site_key) >= np.uint32(threshold << 16)
    return ops.where(is_kept, wide * keep_scale, 0.0)
