"""Prepares a model for a run: builds it, sets recomputation, freezes layers."""

from collections.abc import Callable

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.training import options as training_options
from bert_tf.training import protocols


def build_model(
    create_model: Callable[[], protocols.TaskModel], *, recompute_layers: bool = False
) -> protocols.TaskModel:
    """Returns a built model. Call it in the strategy's scope.

    Args:
        create_model: returns the model, not built.
        recompute_layers: whether the backward pass recomputes the encoder's layers.
    """
    model = create_model()
    model.build()
    model.bert.encoder.recomputes_layers = recompute_layers
    return model


def freeze(model: protocols.TaskModel, frozen_layers: str | None) -> None:
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


def trained_share(model: protocols.TaskModel) -> float:
    """Returns the share of the encoder's layers that are trained, from 0 to 1."""
    num_layers = model.config.num_hidden_layers
    scopes = {
        name.split("/")[2]
        for name, variable in checkpoint_names.checkpoint_variables(model).items()
        if name.startswith(f"{checkpoint_names.ENCODER_SCOPE}/encoder/")
        and variable.trainable
    }
    return len(scopes) / num_layers


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
