"""Activations that turn the logit of a head with one output into a score."""

from keras import ops

from bert_tf.modeling import numerics

IDENTITY = "identity"
SIGMOID = "sigmoid"
_FUNCTIONS = {IDENTITY: lambda logits: logits, SIGMOID: ops.sigmoid}
NAMES = tuple(_FUNCTIONS)


def apply(logits: numerics.Tensor, name: str | None) -> numerics.Tensor:
    """Returns the scores of logits.

    Args:
        logits: float32, any shape.
        name: one of `NAMES`; None is the identity.
    """
    return _FUNCTIONS[name or IDENTITY](logits)
