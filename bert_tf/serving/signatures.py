"""What SavedModels of all tasks have in common: a trained model's functions.

Everything is made of ops that model servers know.

Shape letters: B batch, S sequence.
"""

import tensorflow as tf

FEATURES = ("input_ids", "input_mask", "segment_ids")


class TaskSignatures(tf.Module):
    """A trained model with its tokenizer, as TensorFlow functions.

    It holds the model's variables and not the model, so that a SavedModel of it has
    nothing of Keras in it.

    Args:
        trained: the trained model of a run.
        tokenizer: `InGraphTokenizer`.
        **functions: the `tf.function`s of the task by name, all but `ids`.

    Attributes:
        functions: dict of a signature's name to its `tf.function`. All have
            `serving_default`, from text, and `ids`: `input_ids`, `input_mask`,
            `segment_ids`, int32 [B, S], to what the model computes of them.
    """

    def __init__(self, trained, tokenizer, **functions):
        super().__init__()
        self._untracked = _Untracked(trained)
        self._variables = [variable.value for variable in trained.model.variables]
        self._tokenizer = tokenizer
        ids = {
            name: tf.TensorSpec([None, None], tf.int32, name=name) for name in FEATURES
        }
        self.functions = {"ids": signature(self._of_ids, ids), **functions}

    @property
    def trained(self):
        """The trained model."""
        return self._untracked.value

    def outputs(self, features) -> dict:
        """Returns what the `ids` signature gives; a task has its own."""
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
    """Keeps an object out of what `tf.Module` writes into a SavedModel."""

    def __init__(self, value):
        self.value = value


def signature(function, specs):
    """Returns a `tf.function` with one input for each of some `tf.TensorSpec`s."""
    # Keyword arguments of a signature are those of its function, so in this order.
    return tf.function(function, input_signature=list(specs.values()))


def texts(*names) -> dict[str, tf.TensorSpec]:
    """Returns the specs of inputs of texts, string [B] each."""
    return {name: tf.TensorSpec([None], tf.string, name=name) for name in names}
