"""What makes every model an ordinary Keras model; docs/keras.md shows what it can do.

Shape letters: B batch, S sequence, H hidden, C classes, K sequences in a row.
"""

import contextlib
import inspect
import random
import sys
import types
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops
from keras.src.backend.common import symbolic_scope
from keras.src.utils import naming

from bert_tf.modeling import config as config_module
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
from bert_tf.modeling import pretrained_model
from bert_tf.modeling.kernels import cpu
from bert_tf.modeling.kernels import dropout_masks
from bert_tf.modeling.kernels import whole_step

# The features of every sequence, [B, S].
SEQUENCE = ("input_ids", "input_mask", "segment_ids")
# The encoder's features; the last three are for rows that hold several sequences.
ENCODER = (*SEQUENCE, "sequence_ids", "position_ids", "cls_positions")
# Names in Hugging Face's libraries and in KerasHub -> ours.
ALIASES = {
    "attention_mask": "input_mask",
    "padding_mask": "input_mask",
    "token_type_ids": "segment_ids",
    "token_ids": "input_ids",
}
# Hugging Face's name of vectors [B, S, H] in place of those of the words.
EMBEDDINGS = "inputs_embeds"
# The queries of a retrieval batch have the same names with this prefix.
QUERY_PREFIX = "query_"
# Features that losses, metrics and heads read. Every model accepts all of them,
# because the same records serve several models: pretraining records can also be given
# to the left-to-right model or to the encoder alone.
OF_TASKS = (
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "next_sentence_labels",
    "label_ids",
    "label_indicators",
    "label_weights",
    "label_values",
    "teacher_logits",
    "start_positions",
    "end_positions",
    "tag_ids",
    "passage_ids",
    "positive_ids",
    "example_weights",
    "is_real_example",
)
# Keys of a configuration: {path of a layer: its dtype policy} of a quantized model, and
# {path of a layer: whether it is trainable} for the layers that differ in this from the
# layer around them. The path of the model is "".
QUANTIZED_LAYERS = "quantized_layers"
TRAINABLE_LAYERS = "trainable_layers"
PREPROCESSOR = "preprocessor"  # The configuration of the model's.
# Examples of one replica have indices below this number, so no two examples of a step
# have the same key.
_MAX_EXAMPLES_PER_REPLICA = 1 << 20
_MAX_SEED = 10**9  # Keras draws its own seeds from 1 to this number.
_ONLY_REPLICA = types.SimpleNamespace(
    replica_id_in_sync_group=0, num_replicas_in_sync=1
)


class KerasModel(pretrained_model.PretrainedModel):
    """A model with a configuration, named features and outputs, and dropout by keys.

    Args:
        config: BertConfig.
        name: the first part of the variables' paths.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; default: the global one.
        preprocessor: `bert_tf.TextPreprocessor`, or what it is created from, so that
            `fit`, `predict` and `export` take texts.

    Attributes:
        seed_generator: `keras.random.SeedGenerator` that dropout uses if a model is
            called with `training=True` and without `dropout_keys`. Its state is not a
            weight: checkpoints and `.keras` files do not contain it.
    """

    # Features that `call` reads, besides those of tasks.
    sequence_features: tuple[str, ...] = ENCODER
    exported_features: tuple[str, ...] = SEQUENCE
    # Names of losses and metrics for which Keras would choose a function for one class
    # per example, and what to pass instead.
    misread_names: Mapping[str, str] = types.MappingProxyType({})
    # Dropout that a task adds to that of the configuration.
    task_dropout_rate = 0.0
    dropout_keys = staticmethod(dropout_masks.keys_of_examples)

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        name: str | None = None,
        dtype: Any = None,
        preprocessor: Any = None,
        **kwargs: Any,
    ):
        if not isinstance(config, config_module.BertConfig):
            model = type(self).__name__
            raise TypeError(
                f"{model} takes a BertConfig, such as that of an encoder, got a "
                f"{type(config).__name__}. For the weights of a checkpoint call "
                f"bert_tf.{model}.from_pretrained(name)."
            )
        # Without a name, Keras would number the models.
        name = name or naming.to_snake_case(type(self).__name__)
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config
        # Not an attribute, because a layer without XLA would slow the model's `fit`.
        self._text = types.SimpleNamespace(preprocessor=preprocessor)
        self._is_created_frozen = not self.trainable
        self.output_shape = (None, None, config.hidden_size)  # For `summary`.
        # `keras.utils.set_random_seed` determines the seed. The state must not change:
        # all later seeds, and with them the initial weights of every model, would.
        state = random.getstate()
        seed = random.randint(1, _MAX_SEED)
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
        """Returns the features of a call under our names, masks and segments as int32.

        A feature that the model does not know is an error: a misspelled `input_mask`
        would otherwise make the model attend to padding.

        Args:
            features: what the model was called with; a tensor alone is `input_ids`.
                Masks may be of any dtype: a position counts if it is not 0.
                `inputs_embeds`, float [B, S, H], replaces the vectors of the words.

        Raises:
            ValueError: a feature is unknown, is given under two names or is missing, or
                `input_ids` are not integers or have one axis.
        """
        model, known = type(self).__name__, self.sequence_features
        if not isinstance(features, Mapping):
            features = {"input_ids": features}
        columns: dict[str, numerics.Tensor] = {}
        for name, column in features.items():
            prefix = QUERY_PREFIX if str(name).startswith(QUERY_PREFIX) else ""
            suffix = str(name).removeprefix(prefix)
            suffix = ALIASES.get(suffix, suffix)
            ours = prefix + suffix
            if ours in columns:
                raise ValueError(f"{ours} has two names, also {name}; pass it once.")
            if ours not in (*known, *OF_TASKS, EMBEDDINGS):
                raise ValueError(
                    f"{model} does not know the input {name}; expected some of "
                    f"{', '.join(known)}, or the names {', '.join(ALIASES)} of other "
                    "libraries."
                )
            if suffix == "input_ids":
                check_integers(ours, column)
            if suffix == "input_mask":
                column = ops.not_equal(column, 0)
            is_cast = suffix in SEQUENCE or (is_building() and ours != EMBEDDINGS)
            columns[ours] = ops.cast(column, "int32") if is_cast else column
        if EMBEDDINGS in columns:
            zeros = ops.zeros_like(columns[EMBEDDINGS][..., 0], "int32")
            columns.setdefault("input_ids", zeros)
        if "input_ids" not in columns:
            raise ValueError(
                f"{model} needs input_ids, got {', '.join(columns) or 'no features'}."
            )
        shape = tuple(columns["input_ids"].shape)
        if len(shape) < 2:
            raise ValueError(
                f"input_ids has the shape {shape}, expected [B, S]; pass a single text "
                "as ids[None, :]."
            )
        return columns

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
        first = replica().replica_id_in_sync_group * _MAX_EXAMPLES_PER_REPLICA
        return self.dropout_keys(seed, step, first + rows)

    def xla_step(self) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step that XLA compiles as a whole."""
        return kernels.use(whole_step.WholeStep())

    def cpu_step(self, num_examples: int) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step on one CPU, with examples of a micro-batch."""
        return kernels.use(cpu.Cpu(has_islands=True, num_examples=num_examples))

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
        bert: Any = getattr(self, "bert", self)
        if len(bert.encoder.encoder_layers) != self.config.num_hidden_layers:
            raise ValueError(
                "The encoder no longer has all its layers, so a saved model would get "
                "new ones; call truncated(num_layers) instead."
            )
        optional = {
            TRAINABLE_LAYERS: trainable,
            QUANTIZED_LAYERS: quantized,
            PREPROCESSOR: self.preprocessor and self.preprocessor.get_config(),
        }
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
        layers = _layers_by_path(model)
        for path, policy in quantized.items():
            layers[path].dtype_policy = keras.dtype_policies.deserialize(policy)
        if not isinstance(trainable, dict):
            raise ValueError(f"{TRAINABLE_LAYERS}: expected a dict, got {trainable!r}.")
        _set_trainable(model, trainable)
        return model

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Updates and returns the compiled metrics, for `fit` and `evaluate`.

        Raises:
            ValueError: a metric or `y` does not fit the model.
        """
        compiled = self._compile_config.config
        both = [compiled[name] for name in ("metrics", "weighted_metrics")]
        both = [metrics for metrics in both if metrics]
        if not both:
            return super().compute_metrics(x, {}, {})
        is_named = isinstance(both[0], Mapping)
        if any(isinstance(metrics, Mapping) != is_named for metrics in both):
            raise ValueError(
                "metrics and weighted_metrics must both be lists, or both be dicts."
            )
        by_output: dict[str, list[Any]] = {}
        for metrics in both:
            for name, items in self.by_output(self.answer_output, metrics).items():
                by_output.setdefault(name, []).append(items)
        y, y_pred, sample_weight = self.compared(by_output, x, y, y_pred, sample_weight)
        if not is_named:
            y, sample_weight = self.scored_labels(y, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def compared(
        self, by_output: Mapping[str, Any], x: Any, y: Any, y_pred: Any, weights: Any
    ) -> tuple[Any, Any, Any]:
        """Returns {output: value} of the labels, outputs and weights to compare.

        Args:
            by_output: {output: losses or metrics}.
            x, y, y_pred, weights: those of `compute_metrics`.

        Raises:
            ValueError: there is no such output, it is of another kind, or `y` does not
                fit the model.
        """
        names = tuple(by_output)
        for name, items in by_output.items():
            if name not in y_pred:
                raise ValueError(
                    f"{type(self).__name__} has no output {name}; its outputs are "
                    f"{', '.join(y_pred)}."
                )
            for item in keras.tree.flatten(items):
                self._check(name, item)
        labels = self.labels_of_outputs(names, x, y)
        if keras.tree.is_nested(weights):
            # From one array of weights, Keras makes a copy for each label in `y`.
            weights = self.labels_of_outputs(names, {}, weights)
        return labels, {name: y_pred[name] for name in names}, weights

    def _check(self, output, item):
        """Checks that a loss or metric is not for a different kind of output."""
        instead = self.misread_names.get(str(item).lower())
        if instead is not None:
            raise ValueError(
                f"{type(self).__name__} does not choose one class per example, but "
                f"Keras would compute {item!r} as if it did; pass {instead!r}."
            )
        for_logits = is_for_logits(item)
        of_logits = None if output == "values" else "logits" in output
        if for_logits not in (None, of_logits):
            raise ValueError(
                f"{getattr(item, 'name', item)!r} with from_logits={for_logits} "
                f"does not fit the output {output!r}."
            )

    def labels_of_outputs(self, names: tuple[str, ...], x: Any, y: Any) -> Any:
        """Returns {output: labels} of a compiled loss or metric, from `x` and `y`."""
        if isinstance(y, Mapping):
            return {name: y[name] for name in names if name in y}
        return dict.fromkeys(names, y)

    def scored_labels(self, labels: Any, weights: Any) -> Any:
        """Returns the labels and weights that metrics get, if they are in a list."""
        return labels, weights


def check_integers(name: str, column: numerics.Tensor) -> None:
    """Raises a ValueError if ids or labels are not integers.

    Keras rounds floats to the compute dtype, which would change large ids.
    """
    dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(column).dtype)
    if "int" not in dtype and not is_building():
        raise ValueError(f"{name} must be integers, got {dtype}.")


def is_building() -> bool:
    """Returns whether Keras only infers shapes, with floats in place of all inputs."""
    return symbolic_scope.in_symbolic_scope()


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


def is_for_logits(item: Any) -> bool | None:
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
