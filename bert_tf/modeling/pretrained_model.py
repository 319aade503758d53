"""What users of a pretrained model expect: weights by name, any inputs, exports.

Shape letters: B batch, S sequence.
"""

import inspect
import logging
import types
from collections.abc import Mapping
from typing import Any
from typing import Self

import keras
import numpy as np

from bert_tf.modeling import config as config_module
from bert_tf.modeling import input_features
from bert_tf.modeling import keras_model

logger = logging.getLogger(__name__)

# The default optimizer, as in the release; its schedule before `fit` knows the steps.
_RATE, _CLIP_NORM, _NUM_WARMUP_STEPS, _ENDLESS = 5e-5, 1.0, 100, 1 << 40
_TEXTS = ("text", "text_b")  # Names of inputs that are strings.
_RUINOUS_RATE = 1e-3  # Keras's default for Adam.
PREPROCESSOR = "preprocessor"  # The key of its configuration in that of the model.


class PretrainedModel(keras_model.KerasModel):
    """A Keras model of features that also takes ids, lists and texts.

    Args:
        config: BertConfig.
        preprocessor: `bert_tf.TextPreprocessor`, or what it is created from, so that
            `fit`, `predict` and `export` take texts.
        **kwargs: `name`, `dtype` and so on; see `keras_model.KerasModel`.
    """

    # Names of the inputs of an exported model, and the number of their axes.
    exported_features: tuple[str, ...] = input_features.SEQUENCE
    num_exported_axes = 2
    # Whether weights of a checkpoint were loaded.
    is_pretrained = False
    # Names of the classes, if the head is that of a checkpoint with names.
    label_names: tuple[str, ...] = ()
    _has_default_optimizer = False
    _has_lora = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuses anything but a BertConfig before Python reports missing arguments."""
        # The constructor of a user's subclass may take other arguments.
        if args and cls.__init__.__module__.startswith("bert_tf."):
            cls._check_config(args[0])
        return super().__new__(cls, *args, **kwargs)

    def __init__(
        self,
        config: config_module.BertConfig,
        *,
        preprocessor: Any = None,
        **kwargs: Any,
    ):
        self._check_config(config)
        super().__init__(config, **kwargs)
        # Not an attribute, because a layer without XLA would slow the model's `fit`.
        self._text = types.SimpleNamespace(preprocessor=preprocessor)

    @classmethod
    def _check_config(cls, config):
        if not isinstance(config, config_module.BertConfig):
            raise TypeError(
                f"{cls.__name__} takes a BertConfig, such as that of an encoder, got a "
                f"{type(config).__name__}. For the weights of a checkpoint call "
                f"bert_tf.{cls.__name__}.from_pretrained(name)."
            )

    @classmethod
    def from_pretrained(
        cls,
        path: Any,
        *,
        num_labels: int | None = None,
        dropout: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Returns the model with a checkpoint's weights.

        Args:
            path: a checkpoint of any format, or the name of a model, as for
                `bert_tf.load_checkpoint`.
            num_labels: number of classes. If the checkpoint has no head of this kind
                and size, the head is new, which a warning says.
            dropout: rate of the dropout before the output layer.
            **kwargs: further arguments of the class. The default `preprocessor` has the
                checkpoint's tokenizer.

        Raises:
            OSError, ValueError, ImportError: as for `bert_tf.from_pretrained`.

        Example:
            model = bert_tf.BertClassifier.from_pretrained("bert-tf-mini", num_labels=2)
            model.compile()
            model.fit(["Great.", "Dull."], [1, 0], epochs=3)
            model.predict(["A great film."])["probabilities"]
        """
        import bert_tf  # Loads what models may not depend on.

        if num_labels is not None:
            kwargs["num_labels"] = num_labels
        if dropout is not None:
            kwargs["dropout"] = dropout
        return bert_tf.from_pretrained(path, head=cls, **kwargs)[0]

    @property
    def preprocessor(self) -> Any:
        """The `bert_tf.TextPreprocessor` of texts, or None; created on first use."""
        value = self._text.preprocessor
        if value is not None and not isinstance(value, keras.layers.Layer):
            import bert_tf

            create = bert_tf.TextPreprocessor
            is_config = isinstance(value, Mapping)
            self._text.preprocessor = (create.from_config if is_config else create)(
                value
            )
        if (text := self._text.preprocessor) is not None:
            last_id = len(text.tokenizer.vocabulary) - 1
            self._check_rows({"input_ids": np.array([0, last_id])})
        return text

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments; see `KerasModel.get_config`."""
        bert: Any = getattr(self, "bert", self)
        if len(bert.encoder.encoder_layers) != self.config.num_hidden_layers:
            raise ValueError(
                "The encoder no longer has all its layers, so a saved model would get "
                "new ones; create a model of fewer num_hidden_layers instead."
            )
        text = self.preprocessor and {PREPROCESSOR: self.preprocessor.get_config()}
        return super().get_config() | (text or {})

    def enable_lora(self, rank: int) -> None:
        """Makes the encoder train only low-rank additions to W^Q and W^V of each layer.

        A head stays trainable. Call it before `compile`. Saved and exported models have
        the sums as weights and a frozen encoder; to train a saved model further, call
        `enable_lora` and `compile` again.

        Source: section 4.2 of arXiv:2106.09685.
        """
        self.build()
        bert: Any = getattr(self, "bert", self)
        for layer in (bert.embeddings, bert.encoder, bert.pooler):
            layer.trainable = False
        for layer in bert.encoder.encoder_layers:
            projections = layer.attention.self_attention
            for dense in (projections.query, projections.value):
                dense.enable_lora(rank)
                dense.lora_kernel_a.trainable = dense.lora_kernel_b.trainable = True
        self._has_lora = True

    def __call__(self, features: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; see `call`.

        `features` may also be ids alone or keyword arguments: `model(ids)`,
        `model(**tokenizer(texts))`.
        """
        if features is None:
            names = set(kwargs) - set(inspect.signature(self.call).parameters)
            features = {name: kwargs.pop(name) for name in names}
        return super().__call__(self.prepared(features), *args, **kwargs)

    def prepared(self, x: Any) -> Any:
        """Returns inputs as Keras takes them: dicts of features, arrays for lists.

        Raises:
            ValueError: an array has ids without a row in the model's tables, or there
                are texts, but no preprocessor.
        """
        if hasattr(x, "element_spec"):  # A tf.data.Dataset.
            batch = x.element_spec
            first = batch[0] if isinstance(batch, tuple) else batch
            return x.map(self._prepared_batch) if _is_text(first) else x
        if _is_text(x):
            return self._features_of_texts(x)
        if isinstance(x, Mapping):  # Keras does not take all kinds, such as UserDict.
            self._check_rows(x)
            return dict(x)
        return np.asarray(x) if isinstance(x, list) else x

    def _prepared_batch(self, x, *labels):
        return (self._features_of_texts(x), *labels)

    def _features_of_texts(self, texts):
        if self.preprocessor is None:
            raise ValueError(
                f"This {type(self).__name__} has no preprocessor for texts; create it "
                "with from_pretrained, or pass preprocessor=bert_tf.TextPreprocessor("
                "...)."
            )
        if isinstance(texts, Mapping):
            texts = tuple(texts[name] for name in _TEXTS if name in texts)
            texts = texts if len(texts) > 1 else texts[0]
        texts = [texts] if isinstance(texts, str) else texts
        shape: tuple[int, ...] = (-1,)
        if self.num_exported_axes == 3:  # Contexts [B] and their choices [B, C].
            contexts, choices = (np.asarray(one, object) for one in texts)
            texts = np.repeat(contexts, choices.shape[-1]), choices.ravel()
            shape = choices.shape
        are_pairs = isinstance(texts, tuple) and len(texts) == 2
        are_pairs |= getattr(texts, "shape", ())[1:] == (2,)  # May be symbolic.
        if are_pairs and self.config.type_vocab_size < 2:
            raise ValueError(
                "The model has vectors for one segment (type_vocab_size); expected "
                "single texts, got pairs."
            )
        features = {
            name: column.numpy().reshape(*shape, column.shape[-1])
            if hasattr(column, "numpy")
            else column
            for name, column in self.preprocessor(texts).items()
        }
        self._check_rows(features)
        return features

    def _check_rows(self, features):
        config = self.config
        sizes = {"input_ids": config.vocab_size, "segment_ids": config.type_vocab_size}
        for name, ids in features.items():
            size = sizes.get(input_features.ALIASES.get(name, name))
            is_array = isinstance(ids, np.ndarray) and ids.size
            if size is None or not is_array or ids.dtype.kind not in "iu":
                continue
            if not 0 <= ids.min() <= ids.max() < size:
                raise ValueError(
                    f"{name} has values from {ids.min()} to {ids.max()}, but the model "
                    f"has vectors for 0 to {size - 1}; use the tokenizer of its "
                    "checkpoint."
                )

    def compile(self, optimizer: Any = None, *args: Any, **kwargs: Any) -> None:
        """Chooses optimizer, loss and metrics; see `keras.Model.compile`.

        Args:
            optimizer: default: `bert_tf.AdamWeightDecay` with the rate 5e-5, and
                gradients clipped to the global norm 1, as in 2018. In `fit`, the rate
                rises over the first tenth of the steps and then falls to 0. Where their
                number is unknown, it rises over 100 steps and stays.
            *args, **kwargs: those of `keras.Model.compile`; without `loss`, it is the
                model's own.

        Raises:
            ValueError: as for `KerasModel.compile`.
        """
        import bert_tf  # Loads what models may not depend on.

        self._has_default_optimizer = optimizer is None
        if optimizer is None:
            schedule = bert_tf.WarmupLinearDecay(_RATE, _ENDLESS, _NUM_WARMUP_STEPS)
            optimizer = bert_tf.AdamWeightDecay(schedule, global_clipnorm=_CLIP_NORM)
        super().compile(optimizer, *args, **kwargs)
        is_adam = isinstance(self.optimizer, keras.optimizers.Adam)
        if self.is_pretrained and is_adam:
            rate = float(self.optimizer.learning_rate)
            if rate >= _RUINOUS_RATE:
                logger.warning(
                    "The learning rate %g ruins a pretrained encoder; call compile() "
                    "without an optimizer, or pass one with a rate such as 5e-5.",
                    rate,
                )

    def get_compile_config(self) -> dict[str, Any]:
        """Returns the arguments of `compile`, as plain values; none with LoRA.

        A loaded model lacks the low-rank weights that the optimizer's state is for.
        """
        config = {} if self._has_lora else super().get_compile_config()
        is_default = config and self._has_default_optimizer
        return config | ({"optimizer": None} if is_default else {})

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles the model as `get_compile_config` describes it."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

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

    def _numbers(self, labels):
        """Returns labels as Keras takes them, which has a list for several outputs."""
        if _is_text(labels):
            names = [str(name) for name in np.asarray(labels, object)]
            known = self.label_names if self.label_features == ("label_ids",) else ()
            if not set(names) <= set(known):
                raise ValueError(
                    "y has names of classes, of which this model knows "
                    f"{', '.join(known) or 'none'}; pass their numbers, such as "
                    "[names.index(label) for label in labels]."
                )
            return np.array([known.index(name) for name in names])
        is_list = isinstance(labels, list)
        is_list = is_list and not any(hasattr(column, "shape") for column in labels)
        return np.asarray(labels) if is_list else labels

    def fit(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains the model; see `keras.Model.fit`.

        Args:
            x: features, ids, or texts: a list, an array or a column of a data frame; a
                tuple of two of these are pairs.
            y: labels; classes are numbers, or the names that the head of a checkpoint
                gives them.
            *args, **kwargs: those of `keras.Model.fit`; pass `class_weight` by name.

        Raises:
            ValueError: `class_weight` for labels that are not one class per example.
        """
        self._check_class_weight(kwargs.get("class_weight"))
        data = kwargs.get("validation_data")
        if isinstance(data, tuple):
            kwargs["validation_data"] = (
                self.prepared(data[0]),
                *map(self._numbers, data[1:]),
            )
        elif data is not None:
            kwargs["validation_data"] = self.prepared(data)
        if self._has_default_optimizer and len(args) < 4:  # The fourth is callbacks.
            schedule = _WarmupInFit(kwargs.get("initial_epoch", 0))
            callbacks = keras.tree.flatten(kwargs.get("callbacks") or [])
            kwargs["callbacks"] = [schedule, *callbacks]
        return super().fit(self.prepared(x), self._numbers(y), *args, **kwargs)

    def evaluate(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Computes loss and metrics; see `keras.Model.evaluate` and `fit`."""
        return super().evaluate(self.prepared(x), self._numbers(y), *args, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the outputs as arrays; see `keras.Model.predict` and `fit`."""
        return super().predict(self.prepared(x), *args, **kwargs)

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",  # noqa: A002, Keras's name
        verbose: Any = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the model for inference; see `keras.Model.export`.

        The default `input_signature` of a SavedModel is `text`, strings [B], if the
        model has a preprocessor; `text` and `text_b` are pairs. Otherwise it is a dict
        of `exported_features`, int32, of any size. Formats have no lists of outputs, so
        the layers of an encoder are `all_encoder_layers_0`, ...
        """
        axes, dtype, names = self.num_exported_axes, "int32", self.exported_features
        formats = (format, keras.backend.backend())
        has_strings = formats == ("tf_saved_model", "tensorflow") and axes == 2
        if has_strings and self.preprocessor is not None:
            axes, dtype, names = 1, "string", _TEXTS[:1]
        signature = input_signature or {
            name: keras.InputSpec(shape=(None,) * axes, dtype=dtype, name=name)
            for name in names
        }
        if isinstance(signature, list | tuple):
            (signature,) = signature
        if not isinstance(signature, Mapping):
            raise ValueError(
                f"input_signature: expected a dict of features, got {signature!r}."
            )
        inputs: Any = {
            name: keras.Input(
                batch_shape=tuple(spec.shape),
                dtype="string" if name in _TEXTS else "int32",
                name=name,
            )
            for name, spec in signature.items()
        }
        outputs = self(inputs)
        for number, layer in enumerate(outputs.pop("all_encoder_layers", [])):
            outputs[f"all_encoder_layers_{number}"] = layer
        keras.Model(inputs, outputs).export(
            filepath, format, verbose, [signature], **kwargs
        )


class _WarmupInFit(keras.callbacks.Callback):
    """Fits the schedule of the default optimizer to the steps of `fit`."""

    def __init__(self, initial_epoch):
        super().__init__()
        self._initial_epoch = initial_epoch

    def on_train_begin(self, logs=None):
        import bert_tf

        steps, epochs = self.params["steps"], self.params["epochs"]
        if steps is None:
            return
        optimizer, total = self.model.optimizer, steps * epochs
        # Each `fit` warms up again: a rate of 0 at the end of the last one would stay.
        optimizer.iterations.assign(steps * self._initial_epoch)
        optimizer.learning_rate = bert_tf.WarmupLinearDecay(_RATE, total, total // 10)
        self.model.make_train_function(force=True)  # It contains the schedule.


def _is_text(x):
    """Returns whether inputs are strings: one, a list, a column or two columns."""
    if isinstance(x, Mapping):
        return _TEXTS[0] in x
    while isinstance(x, list | tuple) and x:
        x = x[0]
    dtype = str(getattr(x, "dtype", "")).lower()
    return isinstance(x, str) or any(kind in dtype for kind in ("object", "str", "<u"))
