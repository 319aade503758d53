"""Parts of an encoder that a run leaves as they are.

What is frozen has no gradient, so the backward pass ends above it, it is not in the
gradient's norm, does not decay and has no slots. Dropout acts in it all the same, and
checkpoints hold it.
"""

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.training import options as training_options


def freeze(model, frozen_layers: str | None) -> None:
    """Marks weights of a model as not to be trained.

    Args:
        model: built `heads.TaskModel`; its optimizer is not built yet.
        frozen_layers: "2": the embeddings and the lowest two layers; "0": the
            embeddings; "all": the encoder with its pooler; None: nothing.

    Raises:
        ValueError: the encoder has not so many layers.
    """
    if frozen_layers is None:
        return
    prefixes = _frozen_prefixes(model.config.num_hidden_layers, frozen_layers)
    for name, variable in checkpoint_names.checkpoint_variables(model).items():
        if name.startswith(prefixes):
            variable.trainable = False


def trained_share(model) -> float:
    """Returns the share of the encoder's layers that learn, from 0 to 1."""
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
            f"--frozen_layers={count}, but the model has {num_layers} layers; give at "
            f"most that, or {training_options.ALL_LAYERS}."
        )
    layers = [f"{scope}/encoder/layer_{index}/" for index in range(count)]
    return (f"{scope}/embeddings/", *layers)
