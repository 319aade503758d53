"""The base class of the encoder and of every task's model: an ordinary Keras model.

Shape letters: B batch, S sequence.
"""

import contextlib
import random
import sys
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import config as config_module
from bert_tf.modeling import input_names
from bert_tf.modeling import kernels
from bert_tf.modeling import numerics
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


class BaseModel(keras.Model):
    """A model with a configuration, dropout by keys, and what Keras needs to know.

    Args:
        config: BertConfig.
        name: the first part of the variables' paths.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; default: the global one.

    Attributes:
        seed_generator: `keras.random.SeedGenerator` that dropout uses if a model is
            called with `training=True` and without `dropout_keys`. Its state is not a
            weight: checkpoints and `.keras` files do not contain it.
    """

    # Features of a sequence that `call` reads. All models also accept labels.
    sequence_features: tuple[str, ...] = input_names.ENCODER
    # Features of an exported model, and the number of their axes.
    exported_features: tuple[str, ...] = input_names.SEQUENCE
    num_exported_axes = 2
    # Dropout that a task adds to that of the configuration.
    task_dropout_rate = 0.0
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

    def checked_features(self, features: numerics.Features) -> numerics.Outputs:
        """Returns the features of a call under our names; see `input_names.checked`."""
        return input_names.checked(
            features, self.sequence_features, type(self).__name__
        )

    def dropout_keys(
        self,
        seed: numerics.Tensor,
        step: numerics.Tensor,
        example_index: numerics.Tensor,
    ) -> numerics.Tensor:
        """Returns a step's keys, uint32 [B]; see `dropout_masks.keys_of_examples`."""
        return dropout_masks.keys_of_examples(seed, step, example_index)

    def xla_step(self) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step that XLA compiles as a whole."""
        return kernels.use(whole_step.WholeStep())

    def cpu_step(self, num_examples: int) -> contextlib.AbstractContextManager[None]:
        """Returns the context of a step on one CPU, with examples of a micro-batch."""
        return kernels.use(cpu.Cpu(has_islands=True, num_examples=num_examples))

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
        first = _replica_number() * _MAX_EXAMPLES_PER_REPLICA
        return self.dropout_keys(seed, step, first + rows)

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

        Formats have no lists of outputs, so the layers of an encoder are
        `all_encoder_layers_0`, ...

        Args:
            filepath: the path to write to.
            format: one of Keras's formats, such as "onnx".
            verbose: see `keras.Model.export`.
            input_signature: default: one dict of `exported_features`, int32 [B, S], of
                any size.
            **kwargs: arguments of the format.
        """
        signature = input_signature or self.input_signature()
        inputs = {
            name: keras.Input(batch_shape=tuple(spec.shape), dtype="int32", name=name)
            for name, spec in signature[0].items()
        }
        outputs = self(inputs)
        for number, layer in enumerate(outputs.pop("all_encoder_layers", [])):
            outputs[f"all_encoder_layers_{number}"] = layer
        keras.Model(inputs, outputs).export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=signature,
            **kwargs,
        )

    def input_signature(self) -> list[dict[str, keras.InputSpec]]:
        """Returns what `export` uses by default: features of any size."""
        axes = (None,) * self.num_exported_axes
        features = {
            name: keras.InputSpec(shape=axes, dtype="int32", name=name)
            for name in self.exported_features
        }
        return [features]

    def _symbolic_build(self, iterator=None, data_batch=None):
        # Under a strategy, Keras builds the model from the mean of the replicas'
        # batches, which has floats as ids.
        if isinstance(data_batch, tuple) and isinstance(data_batch[0], Mapping):
            features = dict(data_batch[0])
            for name in features.keys() - set(input_names.FLOATS):
                features[name] = ops.cast(features[name], "int32")
            data_batch = (features, *data_batch[1:])
        super()._symbolic_build(iterator=iterator, data_batch=data_batch)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "trainable":
            # With TensorFlow, Keras ignores an assignment that does not change the
            # model's own value, although layers inside may have another one.
            for layer in _layers_by_path(self).values():
                if layer.trainable != value:
                    layer.trainable = value

    def _post_build(self):
        super()._post_build()
        if self._is_created_frozen and not self.trainable:
            # `trainable=False` in the constructor came before there were layers. A
            # model around this one would train their variables.
            _set_trainable(self, {"": False})
        self._is_created_frozen = False

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as plain values.

        A model with frozen layers also has `TRAINABLE_LAYERS`, and one that `quantize`
        changed `QUANTIZED_LAYERS`, for `from_config`.
        """
        values = {
            "config": self.config.to_dict(),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }
        quantized = {
            path: keras.dtype_policies.serialize(layer.dtype_policy)
            for path, layer in _layers_by_path(self).items()
            if getattr(layer, "quantization_mode", None)
        }
        trainable = _trainable_layers(self)
        if self._is_created_frozen and not self.trainable:
            trainable = {"": False}  # Not built yet; see `_post_build`.
        optional = {TRAINABLE_LAYERS: trainable, QUANTIZED_LAYERS: quantized}
        return values | {name: value for name, value in optional.items() if value}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "BaseModel":
        """Returns the model described by `get_config`."""
        config = dict(config)
        quantized = config.pop(QUANTIZED_LAYERS, {})
        trainable = config.pop(TRAINABLE_LAYERS, {})
        config["config"] = config_module.BertConfig.from_dict(config["config"])
        model = cls(**config)
        layers = _layers_by_path(model) if quantized else {}
        for path, policy in quantized.items():
            layers[path].dtype_policy = keras.dtype_policies.deserialize(policy)
        if not isinstance(trainable, dict):
            raise ValueError(f"{TRAINABLE_LAYERS}: expected a dict, got {trainable!r}.")
        if trainable:
            _set_trainable(model, trainable)
        return model


def _trainable_layers(model):
    """Returns the value of `TRAINABLE_LAYERS`."""
    flags = {path: layer.trainable for path, layer in _layers_by_path(model).items()}
    around = {"": model.trainable, **flags}
    found = {
        path: flag
        for path, flag in flags.items()
        if flag != around[path.rpartition("/")[0]]
    }
    return found if model.trainable else {"": False, **found}


def _set_trainable(model, trainable):
    """Sets which layers are trainable, given a value of `TRAINABLE_LAYERS`."""
    flags = {"": True}
    for path, layer in {"": model, **_layers_by_path(model)}.items():
        flags[path] = trainable.get(path, flags[path.rpartition("/")[0]])
        # See `BaseModel.__setattr__`.
        layer.trainable = not flags[path]
        layer.trainable = flags[path]


def _layers_by_path(model):
    """Returns {path below the model: layer} of all layers, also before `build`."""
    found = {}

    def visit(layer, path):
        for child in layer._layers:
            name = f"{path}/{child.name}" if path else child.name
            found[name] = child
            visit(child, name)

    visit(model, "")
    return found


def _next_seed():
    """Returns the next of the seeds that `keras.utils.set_random_seed` determines.

    It is not drawn, only looked at: otherwise all later seeds, and with them the
    initial weights of every model, would change.
    """
    copy = random.Random()
    copy.setstate(random.getstate())
    return copy.randint(1, _MAX_SEED)


def num_replicas() -> int:
    """Returns the number of replicas if this is called in one of them, else 1."""
    context = _replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def sum_over_replicas(values: numerics.Outputs) -> numerics.Outputs:
    """Returns {name: sum of a scalar over all replicas}."""
    if num_replicas() == 1:
        return values
    return _replica_context().all_reduce("SUM", values)


def _replica_number():
    context = _replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def _replica_context():
    """Returns the context of a replica of `tf.distribute`; None outside of one.

    On other backends a call sees the whole global batch.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    # Keras has no name for it, and models import no backend. This one is loaded.
    return sys.modules["tensorflow"].distribute.get_replica_context()
