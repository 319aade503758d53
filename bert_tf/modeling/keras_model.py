"""What makes every model an ordinary Keras model; docs/keras.md shows what it can do.

This module has what Keras asks of any model: weights without data, a configuration
for saved files, random dropout in `fit`, and which outputs losses and metrics are for.

Shape letters: B batch, S sequence, H hidden, C classes.
"""

import inspect
import random
import sys
import types
from collections.abc import Mapping
from typing import Any
from typing import Self

import keras
from keras import ops
from keras.src.utils import naming

from bert_tf.modeling import config as config_module
from bert_tf.modeling import input_features
from bert_tf.modeling import numerics
from bert_tf.modeling.kernels import dropout_masks

# Keys of a configuration: {path of a layer: its dtype policy} of a quantized model, and
# {path of a layer: whether it is trainable} for the layers that differ in this from the
# layer around them. The path of the model is "".
QUANTIZED_LAYERS = "quantized_layers"
TRAINABLE_LAYERS = "trainable_layers"
# Examples of one replica have indices below this number, so no two examples of a step
# have the same key.
_MAX_EXAMPLES_PER_REPLICA = 1 << 20
_ONLY_REPLICA = types.SimpleNamespace(
    replica_id_in_sync_group=0, num_replicas_in_sync=1
)


class KerasModel(keras.Model):
    """A model with a configuration, named features and outputs, and dropout by keys.

    Args:
        config: BertConfig.
        name: the first part of the variables' paths, which checkpoints leave out;
            default: the class's name in snake case.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; default: the global one.
        **kwargs: those of `keras.Model`.

    Attributes:
        seed_generator: `keras.random.SeedGenerator` that dropout uses if a model is
            called with `training=True` and without `dropout_keys`. Its state is not a
            weight: checkpoints and `.keras` files do not contain it.
    """

    # Arguments of the constructor that are attributes of the same name.
    config_arguments: tuple[str, ...] = ()
    # Features that `call` reads, besides those of tasks.
    sequence_features: tuple[str, ...] = input_features.ENCODER
    # The terms of the model's own loss, in the order in which they are reported.
    loss_names: tuple[str, ...] = ()
    # The features that `y` may hold instead, in the order in which `y` lists them.
    label_features: tuple[str, ...] = ()
    # Number of axes that the model's own loss needs of its labels; None: any.
    label_axes: int | None = 1
    # The outputs that a loss with from_logits=True is applied to, one per label.
    logits_outputs: tuple[str, ...] = ()
    # The output that metrics, and losses with from_logits=False, are applied to.
    answer_outputs: tuple[str, ...] = ()
    # Names of losses and metrics for which Keras would choose a function for one class
    # per example, and what to pass instead.
    misread_names: Mapping[str, str] = types.MappingProxyType({})
    # Dropout that a task adds to that of the configuration.
    task_dropout_rate = 0.0
    _loss_outputs: tuple[str, ...] = ()  # Of the compiled loss.
    _metric_outputs: tuple[str, ...] = ()
    dropout_keys = staticmethod(dropout_masks.keys_of_examples)

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ):
        # Without a name, Keras would number the models.
        name = name or naming.to_snake_case(type(self).__name__)
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        self._is_created_frozen = not self.trainable
        self.output_shape = (None, None, config.hidden_size)  # For `summary`.
        # `keras.utils.set_random_seed` determines the seed. The state must not change:
        # all later seeds, and with them the initial weights of every model, would.
        state = random.getstate()
        seed = random.randint(1, 10**9)  # The range of Keras's own seeds.
        random.setstate(state)
        self.seed_generator = keras.random.SeedGenerator(seed, name="seed_generator")

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights, if there are none yet; needs no data."""
        if self.built:
            return
        self._create_weights()
        if self._is_created_frozen and not self.trainable:
            # `trainable=False` in the constructor came before there were layers. A
            # model around this one would train their variables.
            _set_trainable(self, {"": False})
        self._is_created_frozen = False

    def _create_weights(self):
        for layer in self._layers:
            layer.build((None, None))  # Without a shape, `summary` would show none.

    def checked_features(self, features: Any) -> dict[str, numerics.Tensor]:
        """Returns the features of a call under our names; see `input_features`."""
        known, model = self.sequence_features, type(self).__name__
        return input_features.checked(features, known, model=model)

    def dropout_keys_in_use(
        self,
        features: numerics.Features,
        training: bool,
        dropout_keys: numerics.Tensor | None,
    ) -> numerics.Tensor | None:
        """Returns the keys of a call, uint32 [B], or None if nothing is dropped.

        If `dropout_keys` is None, they are drawn from `seed_generator`.
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
        first = replica().replica_id_in_sync_group * _MAX_EXAMPLES_PER_REPLICA
        return self.dropout_keys(seed, step, first + rows)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shapes of the outputs for those of the features, or of ids."""
        self.build()
        if not isinstance(input_shape, Mapping):
            input_shape = {"input_ids": input_shape}
        features = {
            name: keras.KerasTensor(shape, "int32")
            for name, shape in input_shape.items()
        }
        outputs = self.compute_output_spec(features)
        return keras.tree.map_structure(lambda output: tuple(output.shape), outputs)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Returns symbolic outputs; Keras would guess dtypes from the shapes."""
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    @property
    def _default_save_signature(self):
        # Keras would trace a signature with float inputs and fail, also for a model
        # inside another one. `export` passes the signature.
        return None

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as plain values.

        A model with frozen layers also has `TRAINABLE_LAYERS`, and one that `quantize`
        changed `QUANTIZED_LAYERS`, for `from_config`.
        """
        layers = _layers_by_path(self)
        flags = {path: layer.trainable for path, layer in layers.items()}
        trainable = {
            path: flag
            for path, flag in flags.items()
            if flag != (not path or flags[path.rpartition("/")[0]])
        }
        if self._is_created_frozen and not self.trainable:
            trainable = {"": False}  # Not built yet; see `build`.
        quantized = {
            path: keras.dtype_policies.serialize(layer.dtype_policy)
            for path, layer in layers.items()
            if getattr(layer, "quantization_mode", None)
        }
        optional = {TRAINABLE_LAYERS: trainable, QUANTIZED_LAYERS: quantized}
        return {
            "config": self.config.to_dict(),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **{name: getattr(self, name) for name in self.config_arguments},
            **{name: value for name, value in optional.items() if value},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns the model described by `get_config`."""
        config = dict(config)
        quantized = config.pop(QUANTIZED_LAYERS, {})
        trainable = config.pop(TRAINABLE_LAYERS, {})
        config["config"] = config_module.BertConfig.from_dict(config["config"])
        model = cls(**config)
        layers = _layers_by_path(model)
        for path, policy in quantized.items():
            layers[path].dtype_policy = keras.dtype_policies.deserialize(policy)
        if not isinstance(trainable, dict):
            raise ValueError(f"{TRAINABLE_LAYERS}: expected a dict, got {trainable!r}.")
        _set_trainable(model, trainable)
        return model

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Chooses optimizer, loss and metrics; see `keras.Model.compile`.

        Raises:
            ValueError: it is unclear which output a loss or metric is for, or it is for
                another kind of output.
        """
        super().compile(*args, **kwargs)
        compiled = self._compile_config.config
        loss = compiled["loss"]
        if loss is None and compiled["loss_weights"] is not None:
            raise ValueError(
                "loss_weights has no effect on the model's own loss; pass loss too, or "
                "omit loss_weights."
            )
        both = [compiled[one] for one in ("metrics", "weighted_metrics")]
        both = [metrics for metrics in both if metrics]
        self._has_named_metrics = bool(both) and isinstance(both[0], Mapping)
        if any(isinstance(one, Mapping) != self._has_named_metrics for one in both):
            raise ValueError(
                "metrics and weighted_metrics must both be lists, or both be dicts."
            )
        self._loss_outputs = (
            () if loss is None else self._outputs_of(loss, self._outputs_for(loss))
        )
        outputs = (self._outputs_of(one, self.answer_outputs) for one in both)
        self._metric_outputs = tuple(sorted(set().union(*outputs)))

    def _outputs_for(self, loss):
        """Returns the outputs that a loss without a name is for."""
        if self.answer_outputs == ("values",):  # They go to any loss.
            return self.answer_outputs
        is_list = isinstance(loss, Mapping | list | tuple)
        for_logits = None if is_list else _is_for_logits(loss)
        if for_logits is None:
            return ()
        return self.logits_outputs if for_logits else self.answer_outputs

    def _outputs_of(self, items, default):
        """Returns the names of the outputs of losses or metrics, which it checks."""
        if not isinstance(items, Mapping):
            if not default:
                shown = getattr(items, "name", items)
                raise ValueError(
                    f"{type(self).__name__} cannot tell which output {shown!r} is for. "
                    'Name the output, as in loss={"logits": ...} or '
                    'metrics={"logits": [...]}.'
                )
            items = dict.fromkeys(default, items)
        for output, value in items.items():
            for item in keras.tree.flatten(value):
                self._check_kind(output, item)
        return tuple(items)

    def _check_kind(self, output, item):
        """Checks that a loss or metric is not for a different kind of output."""
        instead = self.misread_names.get(str(item).lower())
        if instead is not None:
            raise ValueError(
                f"{type(self).__name__} does not choose one class per example, but "
                f"Keras would compute {item!r} as if it did; pass {instead!r}."
            )
        for_logits = _is_for_logits(item)
        of_logits = None if output == "values" else "logits" in output
        if for_logits not in (None, of_logits):
            raise ValueError(
                f"{getattr(item, 'name', item)!r} with from_logits={for_logits} "
                f"does not fit the output {output!r}."
            )

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> numerics.Tensor:
        """Returns the compiled loss, or the model's own, for `fit` and `evaluate`.

        Raises:
            ValueError: `y` or `sample_weight` does not fit the model.
        """
        if self.loss_names and not self._loss_outputs:
            return self._own_loss(x, y, y_pred, sample_weight)
        if self._loss_outputs:
            y, y_pred, sample_weight = self._compared(
                self._loss_outputs, x, y, y_pred, sample_weight
            )
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def _own_loss(self, x, y, outputs, sample_weight):
        features = self.checked_features(x)
        for name, label in self._labels(features, y).items():
            features[name] = self._checked_label(name, label)
        try:
            own_loss = self.total_loss(features, outputs, sample_weight)
        except KeyError as error:
            name = error.args[0]
            if name not in input_features.OF_TASKS or name in features:
                raise
            raise ValueError(
                f"{type(self).__name__} has no {name} for its loss: pass it as y, or "
                "put it into the features."
            ) from error
        # Regularizers, and what `add_loss` added. Gradients of replicas are summed.
        num_replicas = replica().num_replicas_in_sync
        loss = own_loss + sum(map(ops.sum, self.losses)) / num_replicas
        if num_replicas == 1:
            return loss
        # Keras shows the mean of the replicas' values, weighted by their rows.
        rows = ops.cast(ops.shape(features["input_ids"])[0], "float32")
        all_rows = replica().all_reduce("SUM", rows)
        shown = ops.divide_no_nan(loss * all_rows, rows * num_replicas)
        return loss + ops.stop_gradient(shown - loss)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Updates and returns the compiled metrics, for `fit` and `evaluate`.

        Raises:
            ValueError: `y` or `sample_weight` does not fit the model.
        """
        if not self._metric_outputs:
            return super().compute_metrics(x, {}, {})
        y, y_pred, sample_weight = self._compared(
            self._metric_outputs, x, y, y_pred, sample_weight
        )
        if not self._has_named_metrics:
            y, sample_weight = self.scored_labels(y, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def scored_labels(self, labels: Any, weights: Any) -> Any:
        """Returns the labels and weights that metrics get, if they are in a list."""
        return labels, weights

    def _compared(self, outputs, x, y, y_pred, weights):
        """Returns {output: value} of labels, predictions and weights."""
        for name in outputs:
            if name not in y_pred:
                raise ValueError(
                    f"{type(self).__name__} has no output {name}; its outputs are "
                    f"{', '.join(y_pred)}."
                )
        labels = self._labels_by_output(outputs, x, y)
        if keras.tree.is_nested(weights):
            # From one array of weights, Keras makes a copy for each label in `y`.
            weights = self._labels_by_output(outputs, {}, weights)
        return labels, {name: y_pred[name] for name in outputs}, weights

    def _labels_by_output(self, outputs, x, y):
        is_one = y is not None and not keras.tree.is_nested(y)
        if is_one and len(self.label_features) <= 1:
            return dict.fromkeys(outputs, y)
        if isinstance(y, Mapping) and set(outputs) <= set(y):
            return {name: y[name] for name in outputs}
        labels = self._labels(x, y)
        if len(labels) == 1:  # Both logits and probabilities are compared with it.
            return dict.fromkeys(outputs, *labels.values())
        label_of = dict(zip(self.logits_outputs, self.label_features, strict=False))
        missing = [name for name in outputs if label_of.get(name) not in labels]
        if missing:
            raise ValueError(
                f"{type(self).__name__} has no labels for {', '.join(missing)}; pass "
                f'y={{"{missing[0]}": ...}}.'
            )
        return {name: labels[label_of[name]] for name in outputs}

    def _labels(self, x, y):
        """Returns {label feature: labels}, from `y` or else from the features."""
        expected = self.label_features
        x = x if isinstance(x, Mapping) else {}  # A tensor alone is `input_ids`.
        if y is None:
            return {name: x[name] for name in expected if name in x}
        if not isinstance(y, Mapping):
            columns = y if isinstance(y, tuple | list) else [y]
            is_complete = len(columns) == len(expected)
            y = dict(zip(expected, columns, strict=False)) if is_complete else {}
        if set(y) & set(x) or not y or not set(y) <= set(expected):
            raise ValueError(
                f"y does not fit {type(self).__name__}, whose labels are "
                f"{', '.join(expected) or 'features'}: expected each of them once, in "
                "y or in the features."
            )
        return dict(y)

    def _checked_label(self, name, label):
        """Returns a label as the model's own loss takes it; [B, 1] becomes [B]."""
        label = ops.convert_to_tensor(label)
        if self.label_axes == 1 and label.shape[1:] == (1,):
            label = label[:, 0]
        if self.label_axes not in (None, len(label.shape)):
            raise ValueError(
                f"{name} has the shape {tuple(label.shape)}, expected "
                f"{self.label_axes} axes. For one-hot labels compile with "
                "keras.losses.CategoricalCrossentropy(from_logits=True)."
            )
        if name.endswith(("_ids", "_positions")):
            input_features.check_integers(name, label)
        return label


def replica() -> Any:
    """Returns the `tf.distribute.ReplicaContext` of a call, or one like it.

    On other backends there is one replica: a call sees the whole global batch.
    """
    if keras.backend.backend() != "tensorflow":
        return _ONLY_REPLICA
    # Keras has no name for it, and models import no backend. This one is loaded.
    return sys.modules["tensorflow"].distribute.get_replica_context() or _ONLY_REPLICA


def _layers_by_path(layer, path=""):
    """Returns {path below the model: layer}, outer layers first; "" is the model."""
    layers = {path: layer}
    for inner in layer._layers:
        layers |= _layers_by_path(inner, f"{path}/{inner.name}".removeprefix("/"))
    return layers


def _set_trainable(model, differing):
    """Sets which layers are trainable, as `TRAINABLE_LAYERS` says it."""
    for path, layer in _layers_by_path(model).items():
        if path in differing:
            # TensorFlow ignores an assignment that does not change the layer's own
            # value, although layers inside may have another one.
            keras.layers.Layer.trainable.fset(layer, differing[path])


def _is_for_logits(item):
    """Returns whether a loss or metric is for logits; None if it does not say so."""
    if item is None or isinstance(item, str):  # None: an output without a loss.
        name = str(item).lower()
        is_for_probabilities = "crossentropy" in name or name in ("ce", "bce", "auc")
        return False if is_for_probabilities else None
    if hasattr(item, "get_config"):
        return item.get_config().get("from_logits")
    parameter = inspect.signature(item).parameters.get("from_logits")
    return None if parameter is None else parameter.default
