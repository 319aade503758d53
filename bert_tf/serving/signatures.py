"""The base of the SavedModels of all tasks: a trained model's functions.

All functions consist of ops that model servers support. Outputs are dense, because the
signatures of a SavedModel cannot return ragged tensors.

Shape letters: B batch, S sequence.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import input_names
from bert_tf.tokenization import in_graph


class TaskSignatures(tf.Module):
    """A trained model with its tokenizer, as TensorFlow functions.

    It refers to the model's variables and not to the model, so that a SavedModel of it
    contains nothing of Keras.

    Args:
        predictor: the predictor of a run, with `model`, `task` and `vocabulary`.
        tokenizer: the tokenizer that the functions use.
        **functions: the task's `tf.function`s by name, except for `ids`.

    Attributes:
        functions: signature name -> `tf.function`. Every task has `serving_default`,
            which takes text, and `ids`, which takes `input_ids`, `input_mask` and
            `segment_ids`, int32 [B, S], and returns the model's outputs.
    """

    def __init__(
        self,
        predictor: Any,
        tokenizer: in_graph.InGraphTokenizer,
        **functions: Callable,
    ):
        super().__init__()
        in_graph.check_ops()
        self._untracked = _Untracked(predictor)
        self._variables = [variable.value for variable in predictor.model.weights]
        self._tokenizer = tokenizer
        ids = {
            name: tf.TensorSpec([None, None], tf.int32, name=name)
            for name in input_names.SEQUENCE
        }
        self.functions = {"ids": signature(self._of_ids, ids), **functions}

    @property
    def predictor(self) -> Any:
        """The predictor of the run."""
        return self._untracked.value

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the outputs of the `ids` signature; every task defines its own."""
        raise NotImplementedError

    def _of_ids(self, input_ids, input_mask, segment_ids):
        return self.outputs(
            {
                "input_ids": input_ids,
                "input_mask": input_mask,
                "segment_ids": segment_ids,
            }
        )


class _Untracked:
    """Hides an object from `tf.Module`, which would write it into the SavedModel."""

    def __init__(self, value: Any):
        self.value = value


def signature(
    function: Callable[..., dict[str, tf.Tensor]], specs: dict[str, tf.TensorSpec]
) -> Callable:
    """Returns a `tf.function` with one input per `tf.TensorSpec`, in their order."""
    return tf.function(function, input_signature=list(specs.values()), autograph=False)


def texts(*names: str) -> dict[str, tf.TensorSpec]:
    """Returns the specs of text inputs, string [B] each."""
    return {name: tf.TensorSpec([None], tf.string, name=name) for name in names}


def in_parts(
    function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
    features: dict[str, tf.Tensor],
    *,
    rank: int,
) -> tf.Tensor:
    """Applies a function to a limited number of rows at a time, to bound memory.

    Args:
        function: takes features of R rows and returns float32 [R, ...].
        features: int32 [B, S]; B is at least 1.
        rank: rank of the function's result.

    Returns:
        float32 [B, ...].
    """
    num_rows = tf.shape(features["input_ids"])[0]
    num_parts = -(-num_rows // fine_tuning_predictor.ROWS_PER_CALL)
    # Parts of equal height, so that the last one needs the fewest rows of padding.
    height = -(-num_rows // tf.maximum(num_parts, 1))
    padding = [[0, num_parts * height - num_rows], [0, 0]]
    shape = [num_parts, height, tf.shape(features["input_ids"])[1]]
    found = tf.map_fn(
        function,
        {
            name: tf.reshape(tf.pad(column, padding), shape)
            for name, column in features.items()
        },
        parallel_iterations=1,
        fn_output_signature=tf.TensorSpec([None] * rank, tf.float32),
    )
    whole = tf.concat([[num_parts * height], tf.shape(found)[2:]], axis=0)
    return tf.reshape(found, whole)[:num_rows]
