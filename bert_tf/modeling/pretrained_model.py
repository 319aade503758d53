"""What users of a pretrained model expect: weights by name, any inputs, exports.

Shape letters: B batch, S sequence.
"""

import inspect
from collections.abc import Mapping
from typing import Any
from typing import Self

import keras
import numpy as np

from bert_tf.modeling import config as config_module


class PretrainedModel(keras.Model):
    """A Keras model of features that also takes ids and lists.

    Attributes:
        config: BertConfig.
        exported_features: names of the inputs of an exported model.
        num_exported_axes: number of their axes.
    """

    config: config_module.BertConfig
    exported_features: tuple[str, ...]
    num_exported_axes = 2
    # The features that `y` may hold instead, in the order in which `y` lists them.
    label_features: tuple[str, ...] = ()

    @classmethod
    def from_pretrained(cls, path: Any, **kwargs: Any) -> Self:
        """Returns the model with a checkpoint's weights.

        Args:
            path: a checkpoint of any format, or the name of a model, as for
                `bert_tf.load_checkpoint`.
            **kwargs: arguments of the class, such as `num_labels` and `dropout`. If the
                checkpoint has no head of this kind and size, the head is new, which a
                warning says.

        Raises:
            OSError, ValueError, ImportError: as for `bert_tf.from_pretrained`.

        Example:
            tokenizer = bert_tf.FullTokenizer("bert-tf-mini")
            model = bert_tf.BertClassifier.from_pretrained("bert-tf-mini", num_labels=2)
            model.compile(keras.optimizers.AdamW(5e-5))
            model.fit(tokenizer(texts), labels, epochs=3)
        """
        import bert_tf  # Loads what models may not depend on.

        return bert_tf.from_pretrained(path, head=cls, **kwargs)[0]

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
            ValueError: an array has ids without a row in the model's tables.
        """
        if isinstance(x, Mapping):  # Keras does not take all kinds, such as UserDict.
            self._check_rows(x)
            return dict(x)
        return np.asarray(x) if isinstance(x, list) else x

    def _check_rows(self, features):
        config = self.config
        sizes = dict.fromkeys(("input_ids", "token_ids"), config.vocab_size)
        sizes |= dict.fromkeys(
            ("segment_ids", "token_type_ids"), config.type_vocab_size
        )
        for name, size in sizes.items():
            ids = features.get(name)
            if not isinstance(ids, np.ndarray) or not ids.size:
                continue
            if ids.dtype.kind in "iu" and not 0 <= ids.min() <= ids.max() < size:
                raise ValueError(
                    f"{name} has values from {ids.min()} to {ids.max()}, but the model "
                    f"has vectors for 0 to {size - 1}; use the tokenizer of its "
                    "checkpoint."
                )

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

    def fit(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains the model; see `keras.Model.fit`.

        Args:
            x: features, or ids.
            y: labels.
            *args, **kwargs: those of `keras.Model.fit`; pass `class_weight` by name.

        Raises:
            ValueError: `class_weight` for labels that are not one class per example.
        """
        self._check_class_weight(kwargs.get("class_weight"))
        data = kwargs.get("validation_data")
        if isinstance(data, tuple):
            kwargs["validation_data"] = (self.prepared(data[0]), *map(_array, data[1:]))
        elif data is not None:
            kwargs["validation_data"] = self.prepared(data)
        return super().fit(self.prepared(x), _array(y), *args, **kwargs)

    def evaluate(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Computes loss and metrics; see `keras.Model.evaluate` and `fit`."""
        return super().evaluate(self.prepared(x), _array(y), *args, **kwargs)

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

        The default `input_signature` is a dict of `exported_features`, int32, of any
        size. Formats have no lists of outputs, so the layers of an encoder are
        `all_encoder_layers_0`, ...
        """
        axes = (None,) * self.num_exported_axes
        signature = input_signature or {
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
            filepath, format, verbose, [signature], **kwargs
        )


def _array(labels):
    """Returns labels as Keras takes them, which has a list for several outputs."""
    is_list = isinstance(labels, list) and not any(hasattr(y, "shape") for y in labels)
    return np.asarray(labels) if is_list else labels
