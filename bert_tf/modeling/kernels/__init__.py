"""How the equations of the model are computed.

`plain.Plain` says what each kernel computes, in as many operations as its formula has.
The others compute the same in less time:

* `cpu.Cpu`: gradients that are written out, chains of operations that XLA compiles on
  a CPU, and rows without padding. It is the default, and also serves GPUs without XLA.
* `whole_step.WholeStep`: a step that XLA compiles as a whole, on any device. It is the
  default on JAX.
* `inference.Inference`: the forms that oneDNN and OpenVINO recognize and fuse.

Dropout masks are equal bit for bit, everything else up to rounding. `BertModel.call`
and each head read `current()` once. Whoever trains, predicts or exports chooses with
`use`.
"""

import contextlib
import contextvars
from collections.abc import Iterator

import keras

from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import plain
from bert_tf.modeling.kernels import whole_step

_current: contextvars.ContextVar[plain.Plain | None] = contextvars.ContextVar(
    "kernels", default=None
)


def current() -> plain.Plain:
    """Returns the kernels of the innermost `use`, or the backend's default."""
    chosen = _current.get()
    if chosen is not None:
        return chosen
    is_jax = keras.backend.backend() == "jax"
    return whole_step.WholeStep() if is_jax else cpu.Cpu()


@contextlib.contextmanager
def use(kernels: plain.Plain) -> Iterator[None]:
    """Makes models use these kernels within the block, or in a decorated function."""
    token = _current.set(kernels)
    try:
        yield
    finally:
        _current.reset(token)
