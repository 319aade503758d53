"""What the training loop requires of a model and of a source of examples.

The loop imports neither `modeling` nor `data`. Any model and any source with these
methods can be trained; `heads.TaskModel` and `batching.Source` are the usual ones.
"""

import contextlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import numpy as np
import tensorflow as tf

Tensors = dict[str, tf.Tensor]


class TaskModel(Protocol):
    """A model with its losses: `heads.TaskModel` describes each member."""

    config: Any
    loss_names: Sequence[str]
    loss_epsilons: Mapping[str, float]
    gathered_outputs: Sequence[str]
    padding_logit: float
    reads_all_positions: bool
    trainable_variables: Sequence[Any]
    bert: Any  # The encoder, a `BertModel`.

    def build(self) -> None:
        """Creates the weights."""

    def count_params(self) -> int:
        """Returns the number of weights."""
        ...

    def __call__(
        self, features: Tensors, *, training: bool, dropout_keys: Any = None
    ) -> Tensors:
        """Returns the outputs by name."""
        ...

    def training_outputs(self, features: Tensors, dropout_keys: Any = None) -> Tensors:
        """Returns the outputs that the losses and metrics of a step need."""
        ...

    def dropout_keys(self, seed: int, step: tf.Tensor, example_index: tf.Tensor) -> Any:
        """Returns the keys that fix dropout for each example of a step."""

    def xla_step(self) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step that XLA compiles as a whole."""
        ...

    def cpu_step(self, num_examples: int) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step on one CPU, with examples of a micro-batch."""
        ...

    def loss_weights(self, features: Tensors) -> Tensors:
        """Returns each loss term's weight, a scalar."""
        ...

    def loss_sums(self, features: Tensors, outputs: Tensors) -> Tensors:
        """Returns each loss term's sum over the examples, a scalar."""
        ...

    def metric_sums(
        self, features: Tensors, outputs: Tensors
    ) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        """Returns each metric's sum and weight, scalars."""
        ...


class ExampleSource(Protocol):
    """Examples that can be read as batches: `batching.Source` describes each member."""

    num_examples: int

    @property
    def columns(self) -> Sequence[Any]:
        """The columns of a batch."""

    def training_batches(self, **arguments: Any) -> tf.data.Dataset:
        """Returns the batches of the steps that remain."""
        ...

    def evaluation_batches(self, **arguments: Any) -> tf.data.Dataset:
        """Returns all examples in batches; in the given `order`, if there is one."""
        ...

    def row_lengths(self) -> np.ndarray | None:
        """Returns the length of each example without padding; None: unknown.

        If they are known, `evaluation_batches` takes an `order`.
        """
        ...

    def clear_errors(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context that turns TensorFlow's reading errors into clear ones."""
        ...
