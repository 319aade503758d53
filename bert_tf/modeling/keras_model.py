"""What makes every model an ordinary Keras model; docs/keras.md shows what it can do.

Shape letters: B batch, S sequence, H hidden, C classes.
"""

import contextlib
import inspect
import random
import types
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import input_names
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling import replicas
from bert_tf.modeling import trainable_layers
from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import whole_step

# Key of a quantized model's configuration: {path of a layer: its dtype policy}.
QUANTIZED_LAYERS = "quantized_layers"
# Key of a configuration: {path of a layer: whether it is trainable}, for the layers
# that differ in this from the layer around them. The path of the model is "".
TRAINABLE_LAYERS = "trainable_layers"
# Examples of one replica have indices below this number, so no two examples of a step
# have the same key.
_MAX_EXAMPLES_PER_REPLICA = 1 << 20
_MAX_SEED = 10**9  # Keras draws its own seeds from 1 to this number.


class KerasModel(keras.Model):
    """A model with a configuration, named features and outputs, and dropout by keys.

    Args:
        config: BertConfig.
        name: the first part of the variables' paths.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; default: the global one.

    Attributes:
        seed_generator: `keras.random.SeedGenerator` that dropout uses if a model is
            called with `training=True` and without `dropout_keys`. Its state is not a
            weight: checkpoints and `.keras` files do not contain it.
    """

    # Features that `call` reads, besides those of tasks.
    sequence_features: tuple[str, ...] = input_names.ENCODER
    # Features of an exported model, and the number of their axes.
    exported_features: tuple[str, ...] = input_names.SEQUENCE
    num_exported_axes = 2
    # The features that `y` may hold instead, in the order in which `y` lists them.
    label_features: tuple[str, ...] = ()
    # The outputs that a loss with from_logits=True is applied to, one per label.
    logits_outputs: tuple[str, ...] = ()
    # The output that metrics, and losses with from_logits=False, are applied to.
    answer_output: str | None = None
    # The label of what must not be scored.
    ignored_label: int | None = None
    # Names of losses and metrics for which Keras would choose a function for one class
    # per example, and what to pass instead.
    misread_names: Mapping[str, str] = types.MappingProxyType({})
    # Dropout that a task adds to that of the configuration.
    task_dropout_rate = 0.0
    dropout_keys = staticmethod(dropout_masks.keys_of_examples)
    _is_created_frozen = False

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str,
        dtype: Any = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self._is_created_frozen = not self.trainable
        self.seed_generator = keras.random.SeedGenerator(
            _next_seed(), name="seed_generator"
        )

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights, if there are none yet; needs no data."""
        if not self.built:
            self._create_weights()

    def _create_weights(self):
        for layer in self._layers:
            layer.build((None, None))  # Without a shape, `summary` would show none.

    def checked_features(self, features: Any) -> numerics.Outputs:
        """Returns the features of a call under our names; see `input_names.checked`."""
        return input_names.checked(
            features, self.sequence_features, type(self).__name__
        )

    def dropout_keys_in_use(
        self,
        features: numerics.Features,
        training: bool,
        dropout_keys: numerics.Tensor | None,
    ) -> numerics.Tensor | None:
        """Returns the keys for a call, uint32 [B], or None if nothing is dropped.

        Args:
            features: those of the call.
            training: whether dropout is active.
            dropout_keys: uint32 [B]; None draws keys from `seed_generator`.
        """
        rates = (
            self.config.hidden_dropout_prob,
            self.config.attention_probs_dropout_prob,
            self.task_dropout_rate,
        )
        if not training or not any(rates):
            return None
        if dropout_keys is not None:
            return dropout_keys
        seed, step = ops.unstack(self.seed_generator.next(), num=2)
        rows = ops.arange(ops.shape(features["input_ids"])[0], dtype="int32")
        first = replicas.number() * _MAX_EXAMPLES_PER_REPLICA
        return self.dropout_keys(seed, step, first + rows)

    def xla_step(self) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step that XLA compiles as a whole."""
        return kernels.use(whole_step.WholeStep())

    def cpu_step(self, num_examples: int) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step on one CPU, with examples of a micro-batch."""
        return kernels.use(cpu.Cpu(has_islands=True, num_examples=num_examples))

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of the vectors, [B, S, H], for `summary`."""
        return (None, None, self.config.hidden_size)

    @property
    def _default_save_signature(self):
        # Keras would trace a signature with float inputs and fail, also for a model
        # inside another one. `export` passes the signature.
        return None

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",  # noqa: A002, Keras's name
        verbose: Any = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the model for inference; see `keras.Model.export`.

        The default `input_signature` is a dict of `exported_features`, int32, of any
        size. Formats have no lists of outputs, so the layers of an encoder are
        `all_encoder_layers_0`, ...
        """
        axes = (None,) * self.num_exported_axes
        signature: Any = input_signature or {
            name: keras.InputSpec(shape=axes, dtype="int32", name=name)
            for name in self.exported_features
        }
        if isinstance(signature, list | tuple):
            (signature,) = signature
        if not isinstance(signature, Mapping):
            raise ValueError(
                f"input_signature: expected a dict of features, got {signature!r}."
            )
        inputs: Any = {
            name: keras.Input(batch_shape=tuple(spec.shape), dtype="int32", name=name)
            for name, spec in signature.items()
        }
        outputs = self(inputs)
        for number, layer in enumerate(outputs.pop("all_encoder_layers", [])):
            outputs[f"all_encoder_layers_{number}"] = layer
        keras.Model(inputs, outputs).export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=[signature],
            **kwargs,
        )

    def _post_build(self):
        super()._post_build()
        if self._is_created_frozen and not self.trainable:
            # `trainable=False` in the constructor came before there were layers. A
            # model around this one would train their variables.
            trainable_layers.assign(self, {"": False})
        self._is_created_frozen = False

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as plain values.

        A model with frozen layers also has `TRAINABLE_LAYERS`, and one that `quantize`
        changed `QUANTIZED_LAYERS`, for `from_config`.
        """
        trainable = trainable_layers.differing(self)
        if self._is_created_frozen and not self.trainable:
            trainable = {"": False}  # Not built yet; see `_post_build`.
        quantized = {
            path: keras.dtype_policies.serialize(layer.dtype_policy)
            for path, layer in trainable_layers.by_path(self).items()
            if getattr(layer, "quantization_mode", None)
        }
        optional = {TRAINABLE_LAYERS: trainable, QUANTIZED_LAYERS: quantized}
        return {
            "config": self.config.to_dict(),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **{name: value for name, value in optional.items() if value},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "KerasModel":
        """Returns the model described by `get_config`."""
        config = dict(config)
        quantized = config.pop(QUANTIZED_LAYERS, {})
        trainable = config.pop(TRAINABLE_LAYERS, {})
        config["config"] = config_module.BertConfig.from_dict(config["config"])
        model = cls(**config)
        layers = trainable_layers.by_path(model)
        for path, policy in quantized.items():
            layers[path].dtype_policy = keras.dtype_policies.deserialize(policy)
        if not isinstance(trainable, dict):
            raise ValueError(f"{TRAINABLE_LAYERS}: expected a dict, got {trainable!r}.")
        if trainable:
            trainable_layers.assign(model, trainable)
        return model

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Trains the model; see `keras.Model.fit`. Pass `class_weight` by its name.

        Raises:
            ValueError: `class_weight` for labels that are not one class per example.
        """
        self._check_class_weight(kwargs.get("class_weight"))
        return super().fit(*args, **kwargs)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Trains the model on one batch; see `keras.Model.train_on_batch` and `fit`."""
        self._check_class_weight(class_weight)
        return super().train_on_batch(x, y, sample_weight, class_weight, **kwargs)

    def _check_class_weight(self, class_weight):
        if class_weight and self.label_features != ("label_ids",):
            raise ValueError(
                "class_weight needs one class per example as y, which "
                f"{type(self).__name__} does not have; pass sample_weight."
            )

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> numerics.Tensor:
        """Returns the compiled loss, for `fit` and `evaluate`.

        Raises:
            ValueError: the loss or `y` does not fit the model.
        """
        loss = self._compile_config.config["loss"]
        if loss is not None:
            y, y_pred, sample_weight = self._compared(
                self._outputs_of_loss(loss), loss, x, y, (y_pred, sample_weight)
            )
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Updates and returns the compiled metrics, for `fit` and `evaluate`.

        Raises:
            ValueError: a metric or `y` does not fit the model.
        """
        compiled = self._compile_config.config
        all_metrics = [compiled[name] for name in ("metrics", "weighted_metrics")]
        all_metrics = [metrics for metrics in all_metrics if metrics]
        if not all_metrics:
            return super().compute_metrics(x, {}, {})
        is_named = isinstance(all_metrics[0], Mapping)
        if any(isinstance(metrics, Mapping) != is_named for metrics in all_metrics):
            raise ValueError(
                "metrics and weighted_metrics must both be lists, or both be dicts."
            )
        names = (self.answer_output,) if self.answer_output else ()
        items: Any = all_metrics
        if is_named:
            names = tuple({name: None for metrics in all_metrics for name in metrics})
            items = {name: [one.get(name) for one in all_metrics] for name in names}
        y, y_pred, sample_weight = self._compared(
            names, items, x, y, (y_pred, sample_weight)
        )
        if self.ignored_label is not None and not is_named:
            if compiled["metrics"]:
                raise ValueError(
                    f"metrics would count the label {self.ignored_label}, which marks "
                    f"what is not scored. Pass them as weighted_metrics instead."
                )
            # As in the model's own loss. Hugging Face's ignored label is -100.
            counts = ops.cast(ops.greater_equal(y, 0), "float32")
            if sample_weight is not None:
                is_of_rows = len(sample_weight.shape) == 1
                counts *= sample_weight[:, None] if is_of_rows else sample_weight
            y, sample_weight = ops.maximum(y, 0), counts
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _outputs_of_loss(self, loss):
        if isinstance(loss, Mapping):
            return tuple(loss)
        is_for_logits = None if isinstance(loss, list | tuple) else _from_logits(loss)
        if is_for_logits:
            return self.logits_outputs
        # A regressor's values go to any loss.
        is_clear = is_for_logits is False or self.answer_output == "values"
        return (self.answer_output,) if self.answer_output and is_clear else ()

    def _compared(self, names, items, x, y, outputs_and_weights):
        """Returns the labels, outputs and weights for a compiled loss or metrics."""
        y_pred, sample_weight = outputs_and_weights
        if not names:
            raise ValueError(
                f"{type(self).__name__} cannot tell which output {_shown(items)} is "
                'for. Name the output, as in loss={"logits": ...} or '
                f'metrics={{"logits": [...]}}; the outputs are {", ".join(y_pred)}.'
            )
        is_named = isinstance(items, Mapping)
        for name in names:
            if name not in y_pred:
                raise ValueError(
                    f"{type(self).__name__} has no output {name}; its outputs are "
                    f"{', '.join(y_pred)}."
                )
            for item in keras.tree.flatten(items[name] if is_named else items):
                self._check(name, item)
        labels = self._labels_of_outputs(names, x, y)
        if isinstance(sample_weight, Mapping | tuple | list):
            # From one array of weights, Keras makes a copy for each label in `y`.
            sample_weight = self._labels_of_outputs(names, {}, sample_weight)
        outputs = {name: y_pred[name] for name in names}
        if is_named or len(names) > 1:
            return labels, outputs, sample_weight
        if isinstance(sample_weight, Mapping):
            sample_weight = sample_weight[names[0]]
        return labels[names[0]], outputs[names[0]], sample_weight

    def _check(self, output, item):
        """Checks that a loss or metric is not for a different kind of output."""
        instead = self.misread_names.get(str(item).lower())
        if instead is not None:
            raise ValueError(
                f"{type(self).__name__} does not choose one class per example, but "
                f"Keras would compute {item!r} as if it did; pass {instead!r}."
            )
        is_for_logits = _from_logits(item)
        if is_for_logits is None:
            return
        if output == "values" or is_for_logits != ("logits" in output):
            raise ValueError(
                f"{_shown(item)} with from_logits={is_for_logits} does not fit the "
                f"output {output!r}."
            )

    def _labels_of_outputs(self, names, x, y):
        """Returns {output: labels} for some outputs."""
        if isinstance(y, Mapping) and set(names) <= set(y):
            return {name: y[name] for name in names}
        is_one = y is not None and not isinstance(y, Mapping | tuple | list)
        if is_one and len(self.label_features) <= 1:
            return dict.fromkeys(names, y)
        labels = self.labels(x, y)
        if len(labels) == 1:
            return dict.fromkeys(names, *labels.values())
        label_of = dict(zip(self.logits_outputs, self.label_features, strict=False))
        missing = [name for name in names if label_of.get(name) not in labels]
        if missing:
            raise ValueError(
                f"{type(self).__name__} has no labels for {', '.join(missing)}; pass "
                f'y={{"{missing[0]}": ...}}.'
            )
        return {name: labels[label_of[name]] for name in names}

    def labels(self, x: numerics.Features, y: Any) -> numerics.Outputs:
        """Returns {label feature: labels}, from `y` or else from the features.

        Raises:
            ValueError: `y` does not fit the model.
        """
        expected = self.label_features
        x = x if isinstance(x, Mapping) else {}  # A tensor alone is `input_ids`.
        if y is None:
            return {name: x[name] for name in expected if name in x}
        if not isinstance(y, Mapping):
            columns = y if isinstance(y, tuple | list) else [y]
            is_complete = len(columns) == len(expected)
            y = dict(zip(expected, columns, strict=True)) if is_complete else {}
        twice = set(y) & set(x)
        if twice or not y or not set(y) <= set(expected):
            raise ValueError(
                f"y does not fit {type(self).__name__}, whose labels are "
                f"{', '.join(expected) or 'features'}: expected each of them once, in "
                "y or in the features."
            )
        return dict(y)


def _from_logits(item):
    """Returns whether a loss or metric is for logits; None if it does not say so."""
    if item is None:
        return None
    if isinstance(item, str):
        name = item.lower()
        is_for_probabilities = "crossentropy" in name or name in ("ce", "bce", "auc")
        return False if is_for_probabilities else None
    if hasattr(item, "get_config"):
        return item.get_config().get("from_logits")
    parameter = inspect.signature(item).parameters.get("from_logits")
    return None if parameter is None else parameter.default


def _shown(item):
    return repr(item) if isinstance(item, str) else getattr(item, "name", repr(item))


def _next_seed():
    """Returns the next of the seeds that `keras.utils.set_random_seed` determines.

    The generator's state does not change: otherwise all later seeds, and with them the
    initial weights of every model, would.
    """
    copy = random.Random()
    copy.setstate(random.getstate())
    return copy.randint(1, _MAX_SEED)
