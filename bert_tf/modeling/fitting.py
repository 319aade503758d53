"""Training a task's model with Keras's own `compile`, `fit` and `evaluate`.

Without a compiled loss, a model trains with its own; the labels are in the features, or
are `y`. A compiled loss or metric gets the output that it asks for, as
`TrainedByKeras.compile` says.

Shape letters: B batch.
"""

import dataclasses
import inspect
import types
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from bert_tf.modeling import base
from bert_tf.modeling import input_names
from bert_tf.modeling import numerics

# Label -> the exact number of axes that a model's own loss requires.
_AXES = {
    "label_ids": 1,
    "label_values": 1,
    "start_positions": 1,
    "end_positions": 1,
    "label_indicators": 2,
    "tag_ids": 2,
}
# The labels that are numbers of classes or of positions.
_INTEGERS = ("label_ids", "start_positions", "end_positions", "tag_ids")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outputs:
    """The outputs of a model that a compiled loss, or the metrics, are applied to."""

    names: tuple[str, ...]
    is_named: bool  # By the user, as in loss={"logits": ...}.

    @property
    def is_only_one(self) -> bool:
        """Whether Keras gets a tensor, and not a dict of tensors."""
        return len(self.names) == 1 and not self.is_named


class TrainedByKeras(base.BaseModel):
    """A model that returns a dict of outputs and has a loss of its own.

    Arguments are those of `base.BaseModel`.
    """

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

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Prepares for `fit` and `evaluate`; see `keras.Model.compile`.

        Without `loss` the model's own is used. A loss with from_logits=True gets the
        logits and one with from_logits=False the probabilities. Metrics get the
        probabilities, or a regressor's values. Anything else has to name the output:
        loss={"logits": ...}, metrics={"logits": [...]}.

        Raises:
            ValueError: a loss or a metric would be applied to the wrong output.
        """
        signature = inspect.signature(keras.Model.compile)
        given = signature.bind(self, *args, **kwargs).arguments
        for name in ("loss", "metrics", "weighted_metrics"):
            self._check_names(given.get(name))
        if given.get("loss") is None and given.get("loss_weights") is not None:
            raise ValueError(
                "loss_weights has no effect on the model's own loss; pass loss too, or "
                "omit loss_weights."
            )
        self._loss_outputs = self._outputs_of_loss(given.get("loss"))
        self._metric_outputs = self._outputs_of_metrics(
            given.get("metrics"), given.get("weighted_metrics")
        )
        super().compile(*args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model as it was compiled when it was saved."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Trains the model; see `keras.Model.fit`.

        With the model's own loss, `sample_weight` [B] weights the examples in the mean.

        Raises:
            ValueError: `class_weight` for labels that are not one class per example, or
                different `sample_weight` for several labels.
        """
        self._check_weights(keras.Model.fit, args, kwargs)
        return super().fit(*args, **kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Takes one step; see `keras.Model.train_on_batch` and `fit`."""
        self._check_weights(keras.Model.train_on_batch, args, kwargs)
        return super().train_on_batch(*args, **kwargs)

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
            ValueError: `y` or `sample_weight` does not fit the model, or labels are
                missing.
        """
        outputs = getattr(self, "_loss_outputs", None)
        if outputs is not None:
            sample_weight = self._weights_of_outputs(outputs, sample_weight)
            y, y_pred = self._labels_and_outputs(outputs, x, y, y_pred)
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        features = self._with_labels(x, y)
        if sample_weight is not None:
            weights = _example_weights(sample_weight)
            real = features.get("is_real_example", ops.ones_like(weights))
            features["is_real_example"] = weights * ops.cast(real, "float32")
        # Regularizers, and what `add_loss` added. Gradients of replicas are summed.
        added = sum(map(ops.sum, self.losses)) / base.num_replicas()
        return self._own_loss(features, y_pred) + added

    def total_loss(
        self, features: numerics.Features, outputs: numerics.Outputs
    ) -> numerics.Tensor:
        """Returns the model's own loss of a whole batch, a float32 scalar.

        Every model with a loss of its own defines this.
        """
        raise NotImplementedError

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Updates and returns the compiled metrics, for `fit` and `evaluate`."""
        outputs = getattr(self, "_metric_outputs", None)
        if outputs is None:
            return self.get_metrics_result()
        sample_weight = self._weights_of_outputs(outputs, sample_weight)
        y, y_pred = self._labels_and_outputs(outputs, x, y, y_pred)
        if self.ignored_label is not None and not outputs.is_named:
            # As in the model's own loss. Hugging Face's ignored label is -100.
            counts = ops.cast(ops.greater_equal(y, 0), "float32")
            if sample_weight is not None:
                counts = counts * _example_weights(sample_weight)[:, None]
            y, sample_weight = ops.maximum(y, 0), counts
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _check_names(self, items):
        for item in keras.tree.flatten(items):
            instead = self.misread_names.get(str(item).lower())
            if instead is not None:
                raise ValueError(
                    f"{type(self).__name__} does not choose one class per example, but "
                    f"Keras would compute {item!r} as if it did; pass {instead!r}."
                )

    def _outputs_of_loss(self, loss):
        if loss is None:
            return None
        if isinstance(loss, Mapping):
            return self._named_outputs(loss)
        if isinstance(loss, list | tuple):
            raise ValueError(
                "A list of losses does not say which outputs they are for: "
                f"{self._how_to_name('loss')}."
            )
        needs_logits = _from_logits(loss, keras.losses.get)
        if self.answer_output == "values":  # Any loss compares numbers.
            _check(self.answer_output, loss, keras.losses.get)
            return Outputs(names=(self.answer_output,), is_named=False)
        if needs_logits is None:
            raise ValueError(
                f"{self._does_not_say('loss', loss)} Without loss, the model uses its "
                "own."
            )
        if self.ignored_label is not None and (
            getattr(loss, "ignore_class", None) != self.ignored_label
        ):
            raise ValueError(
                f"{_shown(loss)} counts the label {self.ignored_label}, which marks "
                f"what {type(self).__name__} must not learn: pass "
                "keras.losses.SparseCategoricalCrossentropy(from_logits=True, "
                f"ignore_class={self.ignored_label}), or no loss, for the model's own."
            )
        names = self.logits_outputs if needs_logits else _tuple(self.answer_output)
        if not names:
            raise ValueError(
                f"{type(self).__name__} has no output for {_shown(loss)} with "
                f"from_logits={needs_logits}: {self._how_to_name('loss')}."
            )
        return Outputs(names=names, is_named=False)

    def _outputs_of_metrics(self, metrics, weighted_metrics):
        given = [value for value in (metrics, weighted_metrics) if value]
        named = [value for value in given if isinstance(value, Mapping)]
        if not given:
            return None
        if len(named) == len(given):
            return self._named_outputs(
                {k: v for value in named for k, v in value.items()}
            )
        if named:
            raise ValueError(
                "metrics and weighted_metrics must both be lists, or both be dicts."
            )
        if self.answer_output is None:
            raise ValueError(
                f"{type(self).__name__} cannot tell which output metrics are for: "
                f"{self._how_to_name('metrics')}."
            )
        if metrics and self.ignored_label is not None:
            raise ValueError(
                f"metrics would count the label {self.ignored_label}, which marks what "
                f"is not scored. Pass weighted_metrics={metrics!r} instead."
            )
        for metric in keras.tree.flatten(given):
            _check(self.answer_output, metric, keras.metrics.get)
        return Outputs(names=(self.answer_output,), is_named=False)

    def _named_outputs(self, items):
        for name, item in items.items():
            for one in keras.tree.flatten(item):
                get = keras.metrics.get if isinstance(one, keras.Metric) else None
                _check(name, one, get or keras.losses.get)
        return Outputs(names=tuple(items), is_named=True)

    def _does_not_say(self, argument, item):
        return (
            f"{_shown(item)} does not say whether it is for logits or for "
            f"probabilities (it has no from_logits): {self._how_to_name(argument)}."
        )

    def _how_to_name(self, argument):
        name = next(iter((*self.logits_outputs, "the name of an output")))
        value = "..." if argument == "loss" else "[...]"
        return f'name the output, as in {argument}={{"{name}": {value}}}'

    def _check_weights(self, method, args, kwargs):
        given = inspect.signature(method).bind(self, *args, **kwargs).arguments
        if given.get("class_weight") and self.label_features != ("label_ids",):
            raise ValueError(
                f"class_weight needs one class per example as y, which "
                f"{type(self).__name__} does not have; pass sample_weight."
            )
        has_no_y = given.get("y") is None and isinstance(given.get("x"), Mapping)
        if given.get("class_weight") and has_no_y:
            raise ValueError("class_weight needs the labels as y, but y is None.")
        weights = given.get("sample_weight")
        if self._loss_outputs is None and isinstance(weights, Mapping | tuple | list):
            first, *others = map(np.asarray, keras.tree.flatten(weights) or [0])
            if any(other.shape == first.shape != () for other in others) and not all(
                np.array_equal(first, other) for other in others
            ):
                raise ValueError(
                    "The labels have different sample_weight; the model's own loss "
                    "needs one array [examples]."
                )

    def _labels_and_outputs(self, outputs, x, y, y_pred):
        """Returns what a compiled loss, or the metrics, compare."""
        unknown = [name for name in outputs.names if name not in y_pred]
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no output {', '.join(unknown)}; its "
                f"outputs are {', '.join(y_pred)}."
            )
        labels = self._labels_of_outputs(outputs.names, x, y)
        if outputs.is_only_one:
            return labels[outputs.names[0]], y_pred[outputs.names[0]]
        return labels, {name: y_pred[name] for name in outputs.names}

    def _weights_of_outputs(self, outputs, sample_weight):
        """Returns sample weights in the structure of what a loss compares.

        From one array of weights, Keras makes a copy for each label in `y`.
        """
        if not isinstance(sample_weight, Mapping | tuple | list):
            return sample_weight
        weights = self._labels_of_outputs(outputs.names, {}, sample_weight)
        return weights[outputs.names[0]] if outputs.is_only_one else weights

    def _labels_of_outputs(self, names, x, y):
        if isinstance(y, Mapping) and set(names) <= set(y):
            return {name: y[name] for name in names}
        is_one = y is not None and not isinstance(y, Mapping | tuple | list)
        if is_one and len(self.label_features) <= 1:
            return dict.fromkeys(names, y)
        labels = self._labels(x, y)
        if len(labels) == 1:
            return dict.fromkeys(names, *labels.values())
        label_of = dict(zip(self.logits_outputs, self.label_features, strict=False))
        if not labels or not set(names) <= set(label_of):
            raise ValueError(
                f"{type(self).__name__} has no labels for {', '.join(names)}; pass "
                f'y={{"{names[0]}": ...}}.'
            )
        return {name: labels[label_of[name]] for name in names}

    def _labels(self, x, y):
        """Returns {label feature: labels}, from `y` or else from the features."""
        expected = self.label_features
        if y is None:
            return {name: x[name] for name in expected if name in x}
        if not isinstance(y, Mapping):
            columns = y if isinstance(y, tuple | list) else [y]
            y = dict(zip(expected, columns, strict=False))
            if len(columns) != len(expected):
                y = None
        if not expected or y is None or not set(y) <= set(expected):
            listed = ", ".join(expected) or "none: they are among the features"
            raise ValueError(
                f"y does not fit the labels of {type(self).__name__} ({listed}). Pass "
                "y with these names, or put the labels into the features and leave y "
                "out."
            )
        twice = [name for name in y if name in x]
        if twice:
            raise ValueError(f"{', '.join(twice)} is in the features and in y.")
        return dict(y)

    def _own_loss(self, features, outputs):
        try:
            return self.total_loss(features, outputs)
        except KeyError as error:
            name = error.args[0]
            if name not in input_names.OF_TASKS or name in features:
                raise
        pass_y = "pass y, or " if name in self.label_features else ""
        raise ValueError(
            f"{type(self).__name__} has no {name} for its loss: {pass_y}put {name} "
            "into the features."
        )

    def _with_labels(self, x, y):
        """Returns features that contain the labels, checked."""
        features = self.checked_features(x)
        for name, label in self._labels(features, y).items():
            features[name] = _checked_label(name, label)
        return features


def _tuple(name):
    return () if name is None else (name,)


def _from_logits(item, get):
    """Returns whether a loss or metric is for logits; None if it does not say so."""
    if str(item).lower() in ("crossentropy", "ce"):
        return False  # Keras chooses one of the cross-entropies by the shapes.
    if isinstance(item, str):
        item = get(item)
    if hasattr(item, "get_config"):
        return item.get_config().get("from_logits")
    parameter = inspect.signature(item).parameters.get("from_logits")
    return None if parameter is None else parameter.default


def _check(output, item, get):
    """Checks that a loss or metric is not for a different kind of output."""
    if item is None or item in ("accuracy", "acc"):
        return
    is_for_logits = _from_logits(item, get)
    if is_for_logits is None:
        return
    if "logits" in output:
        expected = "a loss or metric with from_logits=True"
        is_right = is_for_logits
    elif output == "probabilities":
        expected = "a loss or metric with from_logits=False"
        is_right = not is_for_logits
    else:
        expected, is_right = "one that has no from_logits", False
    if not is_right:
        raise ValueError(
            f"{_shown(item)} with from_logits={is_for_logits} does not fit the output "
            f"{output!r}; expected {expected}."
        )


def _shown(item):
    if isinstance(item, str):
        return repr(item)
    return getattr(item, "__name__", type(item).__name__)


def _checked_label(name, label):
    """Returns a label as a model's own loss takes it; [B, 1] becomes [B]."""
    label = ops.convert_to_tensor(label)
    axes = _AXES.get(name)
    if axes == 1 and len(label.shape) == 2 and label.shape[1] == 1:
        label = label[:, 0]
    if axes is not None and len(label.shape) != axes:
        raise ValueError(
            f"{name} has the shape {tuple(label.shape)}, expected {axes} axes. For "
            "one-hot labels compile with "
            "keras.losses.CategoricalCrossentropy(from_logits=True)."
        )
    dtype = keras.backend.standardize_dtype(label.dtype)
    if name in _INTEGERS and "float" in dtype:
        raise ValueError(f"{name} must be integers, got {dtype}.")
    return label


def _example_weights(weights):
    """Returns sample weights as float32 [B]; [B, 1] becomes [B].

    Keras gives every label in `y` a copy of an array of weights. Where the weights of
    the labels differ, the result is NaN.
    """
    weights, *others = [ops.cast(one, "float32") for one in keras.tree.flatten(weights)]
    for other in others:
        weights = ops.where(ops.equal(weights, other), weights, float("nan"))
    if len(weights.shape) == 2 and weights.shape[1] == 1:
        weights = weights[:, 0]
    if len(weights.shape) != 1:
        raise ValueError(
            f"sample_weight has the shape {tuple(weights.shape)}; expected one weight "
            "per example."
        )
    return weights
