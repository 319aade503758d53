"""Freezes layers of the encoder."""

from typing import Any

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.training import options as training_options


def freeze(model: Any, frozen_layers: str | None) -> None:
    """Makes weights of the encoder untrainable.

    Frozen weights get no gradient, so the backward pass ends above them. They do not
    count in the gradient's norm, do not decay and have no slots. Dropout still acts in
    frozen layers, and checkpoints contain them.

    Args:
        model: built model whose optimizer is not built yet.
        frozen_layers: "2": the embeddings and the lowest two layers; "0": the
            embeddings; "all": the encoder with its pooler; None: nothing.

    Raises:
        ValueError: the encoder has fewer layers.
    """
    if frozen_layers is None:
        return
    prefixes = _frozen_prefixes(model.config.num_hidden_layers, frozen_layers)
    for name, variable in checkpoint_names.checkpoint_variables(model).items():
        if name.startswith(prefixes):
            variable.trainable = False


def _frozen_prefixes(num_layers, frozen_layers):
    scope = checkpoint_names.ENCODER_SCOPE
    if frozen_layers == training_options.ALL_LAYERS:
        return (f"{scope}/",)
    count = int(frozen_layers)
    if count > num_layers:
        raise ValueError(
            f"--frozen_layers={count}, but the model has only {num_layers} layers; "
            f"pass a number up to {num_layers}, or {training_options.ALL_LAYERS}."
        )
    layers = [f"{scope}/encoder/layer_{index}/" for index in range(count)]
    return (f"{scope}/embeddings/", *layers)
