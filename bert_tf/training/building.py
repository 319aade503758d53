"""Builds the model and the optimizer of a run, and the loss scale of float16."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.optimization import create
from bert_tf.training import options as training_options

# Values of keras.mixed_precision and tf.keras.
INITIAL_LOSS_SCALE = 2.0**15
STEPS_TO_GROW = 2000
# With a smaller scale float16 would represent less than without scaling.
MIN_LOSS_SCALE = 1.0
_FACTOR = 2.0


def build_model(
    create_model: Callable[[], Any], *, recompute_layers: bool = False
) -> Any:
    """Returns a built model. Call it in the strategy's scope.

    Args:
        create_model: returns the model, not built.
        recompute_layers: whether the backward pass recomputes the encoder's layers.
    """
    model = create_model()
    model.build()
    model.bert.encoder.recomputes_layers = recompute_layers
    return model


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


def create_optimizer(
    model: Any,
    options: training_options.OptimizerOptions,
    *,
    num_train_steps: int,
    num_warmup_steps: int,
    scale_loss: bool = False,
    schedule: keras.optimizers.schedules.LearningRateSchedule | None = None,
) -> Any:
    """Returns an optimizer that is built for the trainable variables of a model.

    Args:
        model: built model, its frozen layers already frozen.
        options: which optimizer, and its learning rate.
        num_train_steps: the step at which the rate reaches 0.
        num_warmup_steps: steps over which the rate rises.
        scale_loss: whether to give the optimizer a `LossScale`, as float16 needs.
        schedule: learning rates to use instead of warm-up and decay by step.
    """
    optimizer = create.create_optimizer(
        options.learning_rate,
        num_train_steps,
        num_warmup_steps,
        schedule=schedule,
        name=options.optimizer,
        bias_correction=options.bias_correction,
    )
    optimizer.build(model.trainable_variables)
    if scale_loss:
        optimizer.loss_scale = LossScale()
    return optimizer


class LossScale:
    """Dynamic loss scaling: the factor that multiplies a loss before its gradient.

    Small gradients are 0 in float16, so the loss is scaled up as far as gradients stay
    finite. The scale is halved, down to 1, after a gradient that is not finite, and
    doubled after 2,000 steps without one. Both depend on the gradient that is summed
    over all replicas, so all replicas take a step or skip it together.

    Create it in the strategy's scope.

    Attributes:
        scale: float32 variable.
        steps: int32 variable, steps since the scale changed.
    """

    def __init__(self, initial_scale: float = INITIAL_LOSS_SCALE):
        settings = {"trainable": False, "aggregation": "only_first_replica"}
        self.scale = keras.Variable(initial_scale, dtype="float32", **settings)
        self.steps = keras.Variable(0, dtype="int32", **settings)

    def update(self, strategy: tf.distribute.Strategy, is_finite: tf.Tensor) -> None:
        """Sets the scale of the next step. Call it in a merge call.

        Args:
            strategy: the devices.
            is_finite: bool scalar, the same on all replicas.
        """

        def set_scale(scale, is_finite, steps):
            grown = tf.where(steps + 1 >= STEPS_TO_GROW, scale * _FACTOR, scale)
            smaller = tf.maximum(scale / _FACTOR, MIN_LOSS_SCALE)
            scale.assign(tf.where(is_finite, grown, smaller))

        def set_steps(steps, is_finite):
            is_same = tf.logical_and(is_finite, steps + 1 < STEPS_TO_GROW)
            steps.assign(tf.where(is_same, steps + 1, 0))

        scale, steps = self.scale.value, self.steps.value
        update = strategy.extended.update
        update(scale, set_scale, args=(is_finite, steps), group=False)
        update(steps, set_steps, args=(is_finite,), group=False)
