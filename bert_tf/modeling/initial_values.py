"""Random initial values of weights, drawn quickly."""

import concurrent.futures
import math
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf import machine

# Size of a block, which fits into a core's cache. Changing it changes the values that
# belong to a seed.
_BLOCK = 1 << 17
# Numbers beyond this many standard deviations are drawn again.
_LIMIT = 2.0
# The longest wavelength, divided by 2 pi (Vaswani et al., 2017, section 3.5).
_LONGEST_WAVE = 10000.0


@keras.saving.register_keras_serializable("bert_tf")
class TruncatedNormal(keras.initializers.TruncatedNormal):
    """Keras's initializer, computed on all cores and in half the processor time.

    The distribution is the same, the values are not. They are a function of seed, shape
    and NumPy's version. If the seed is a `keras.random.SeedGenerator`, Keras draws the
    values. Inside a function that is being traced, they become a constant.
    """

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns a tensor of `shape`; its dtype is Keras's `floatx` by default."""
        if not isinstance(self.seed, int):
            return super().__call__(shape, dtype)
        values = np.empty(math.prod(shape), np.float32)
        mean, stddev = float(self.mean), float(self.stddev)

        def fill(start):
            seed = [self.seed % (1 << 32), start]  # NumPy refuses negative numbers.
            block = values[start : start + _BLOCK]
            _fill(block, np.random.Generator(np.random.SFC64(seed)))
            block *= stddev
            block += mean

        starts = range(0, values.size, _BLOCK)
        # NumPy draws without Python's global lock.
        with concurrent.futures.ThreadPoolExecutor(machine.num_cores()) as threads:
            list(threads.map(fill, starts))  # Raises what a thread raised.
        dtype = dtype or keras.config.floatx()
        return ops.convert_to_tensor(values.reshape(shape), dtype=dtype)


def of_weights(config: Any) -> keras.initializers.Initializer:
    """Returns the initializer of all kernels, tables and output weights.

    It is a normal distribution with deviation `initializer_range` (0.02, as in OpenAI's
    GPT), redrawn beyond two deviations. Weights this small let a new output layer
    begin with nearly equal probabilities for all classes, and the cut keeps single
    large weights from dominating the first steps.

    Args:
        config: `BertConfig`.
    """
    return TruncatedNormal(stddev=config.initializer_range)


def of_positions(config: Any) -> Any:
    """Returns the initializer of the position table that `config` names.

    "normal" is the release's: rows are drawn independently, so what one position learns
    about its neighbor does not help any other position. "sinusoidal" starts with waves
    whose mean square is initializer_range ** 2: "the previous piece" is then the same
    linear map at every position, and small models learn sooner to use context. The
    table is trained in both cases.

    Source: Vaswani et al., 2017, section 3.5, where the waves are not trained.
    """
    if config.position_initializer == "normal":
        return of_weights(config)

    def waves(shape, dtype=None):
        num_positions, hidden_size = shape
        columns = np.arange(hidden_size)
        wavelengths = _LONGEST_WAVE ** (columns // 2 * 2 / hidden_size)
        angles = np.arange(num_positions)[:, None] / wavelengths
        table = np.where(columns % 2, np.cos(angles), np.sin(angles))
        # The mean square of a wave is 1/2.
        return ops.convert_to_tensor(
            table * np.sqrt(2) * config.initializer_range, dtype=dtype or "float32"
        )

    return waves


def _fill(values, generator):
    """Replaces `values` by numbers with mean 0 and, before the cut, deviation 1."""
    generator.standard_normal(out=values, dtype=np.float32)
    beyond = np.flatnonzero(np.abs(values) > _LIMIT)
    while beyond.size:
        values[beyond] = generator.standard_normal(beyond.size, dtype=np.float32)
        beyond = beyond[np.abs(values[beyond]) > _LIMIT]
