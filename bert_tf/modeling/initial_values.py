"""Random initial values of weights, drawn quickly."""

import concurrent.futures
import math
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf import cores

# Numbers drawn at a time, which fit into a core's cache. Other sizes draw other values.
_BLOCK = 1 << 17
# Normal numbers beyond this many deviations are drawn again.
_LIMIT = 2.0


@keras.saving.register_keras_serializable("bert_tf")
class TruncatedNormal(keras.initializers.TruncatedNormal):
    """Draws from the same distribution as Keras's initializer, in half of the time.

    Values are a function of seed and shape, regardless of the number of cores. With a
    `keras.random.SeedGenerator` as seed, they are those of Keras.
    """

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns a tensor of `shape`; its dtype is Keras's `floatx` by default."""
        if not isinstance(self.seed, int):
            return super().__call__(shape, dtype)
        values = np.empty(math.prod(shape), np.float32)

        def fill(start):
            block = values[start : start + _BLOCK]
            _fill(block, np.random.Generator(np.random.SFC64([self.seed, start])))
            block *= self.stddev
            block += self.mean

        starts = range(0, values.size, _BLOCK)
        # NumPy draws without Python's global lock.
        with concurrent.futures.ThreadPoolExecutor(cores.num_available()) as threads:
            for _ in threads.map(fill, starts):
                pass
        dtype = dtype or keras.config.floatx()
        return ops.convert_to_tensor(values.reshape(shape), dtype=dtype)


def _fill(values, generator):
    generator.standard_normal(out=values, dtype=np.float32)
    beyond = np.flatnonzero(np.abs(values) > _LIMIT)
    while beyond.size:
        values[beyond] = generator.standard_normal(beyond.size, dtype=np.float32)
        beyond = beyond[np.abs(values[beyond]) > _LIMIT]
