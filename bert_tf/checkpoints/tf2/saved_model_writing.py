"""Writes a BERT and its head as a SavedModel with the interface of TF Hub's series 4.

Plain TensorFlow loads it, without Keras and without this package. Its variables have
the release's names, so `saved_model` reads back exactly what was written.

Shape letters: B batch, S sequence, H hidden, M masked positions, V vocabulary.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.modeling import bert

HEAD_FILE = "head.json"
TEXT_FILE = "text_encoding.json"
# Our names of the features -> TF Hub's.
_HUB_NAMES = {
    "input_ids": "input_word_ids",
    "input_mask": "input_mask",
    "segment_ids": "input_type_ids",
}
_POSITIONS = "masked_lm_positions"


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a `Source`: every weight keeps its name."""
    return source_module.Placement(places={name: name for name in source.shapes})


def write(source: source_module.Source, folder: str) -> None:
    """Writes a SavedModel into a folder.

    Like TF Hub's series 4, the loaded object is called with a dict of
    `input_word_ids`, `input_mask`, `input_type_ids`, int32 [B, S], and with `training`,
    a bool. It returns a dict: `sequence_output` [B, S, H]; `pooled_output` and
    `default`, both the same [B, H]; `encoder_outputs`, a list of [B, S, H]. If there
    is a masked-word head, `mlm` also takes `masked_lm_positions` [B, M] and also
    returns `mlm_logits` [B, M, V]. The object has the attributes `variables`,
    `trainable_variables`, `vocab_file` and `do_lower_case`.

    The signature `ids` takes `input_ids`, `input_mask`, `segment_ids` (and
    `masked_lm_positions`) and returns the outputs of the model with its head.

    Args:
        source: `Source`.
        folder: an empty folder.

    Raises:
        OSError: it cannot be written.
        ValueError: the source cannot be read, is incomplete or has no configuration.
    """
    with tempfile.TemporaryDirectory() as assets:
        module = _Module(source)
        module.add_assets(source, assets)
        try:
            tf.saved_model.save(module, folder, signatures={"ids": module.signature})
        except tf.errors.OpError as error:
            reason = files.reason_of(error)
            raise OSError(f"{folder} cannot be written: {reason}.") from error


def library_outputs(
    path: str, features: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Returns what plain TensorFlow computes with a SavedModel that `write` wrote.

    Args:
        path: the folder.
        features: {name: int32 array} for the signature `ids`.

    Returns:
        {name of an output: float32 array}.
    """
    signature = tf.saved_model.load(path).signatures["ids"]
    inputs = signature.structured_input_signature[1]
    outputs = signature(**{name: tf.constant(features[name]) for name in inputs})
    return {name: tensor.numpy() for name, tensor in outputs.items()}


class _Module(tf.Module):
    """The model with its head, as TensorFlow functions of TensorFlow variables."""

    # tf.Module computes these, but a SavedModel stores only assigned attributes.
    variables: Any = None
    trainable_variables: Any = None

    def __init__(self, source: source_module.Source) -> None:
        super().__init__()
        computed = _Computed(source)  # Not trackable, so no Keras object is written.
        self.variables = list(computed.variables.values())
        self.trainable_variables = list(self.variables)
        self.regularization_losses: list[Any] = []
        inputs = _specs(dict.fromkeys(_HUB_NAMES.values(), "BS"))
        self.__call__ = _traced(computed.encode, inputs)
        row = source.head.row
        if row.has_masked_words:
            positions = _specs({_POSITIONS: row.features[_POSITIONS]})
            self.mlm = tf.Module()
            self.mlm.__call__ = _traced(computed.predict_words, inputs | positions)
        features = _specs(row.features)
        function = tf.function(
            lambda **features: computed.predict(features), autograph=False
        )
        self.signature = function.get_concrete_function(**features)

    def add_assets(self, source: source_module.Source, folder: str) -> None:
        """Writes the files beside the weights into a folder and adds them as assets."""
        config_file = os.path.join(folder, companion_files.CONFIG_FILE)
        with files.complete_or_absent(config_file) as file:
            file.write(source.required_config().to_json_string())
        paths = [config_file]
        if source.head.is_known:
            head = {
                "kind": source.head.kind,
                "labels": source.head.labels,
                "label_kind": source.head.label_kind,
            }
            paths.append(os.path.join(folder, HEAD_FILE))
            companion_files.write_json(paths[-1], head)
        if source.text.stated():
            paths.append(os.path.join(folder, TEXT_FILE))
            companion_files.write_json(paths[-1], source.text.to_dict())
        self.files = [tf.saved_model.Asset(path) for path in paths]
        if source.vocabulary is not None:
            path = os.path.join(folder, companion_files.VOCAB_FILE)
            source.vocabulary.save(path)
            self.vocab_file = tf.saved_model.Asset(path)
        if source.do_lower_case is not None:
            self.do_lower_case = tf.Variable(
                source.do_lower_case, trainable=False, name="do_lower_case"
            )


class _Computed:
    """The functions of a source's model, on variables with the release's names."""

    def __init__(self, source: source_module.Source) -> None:
        config = source.required_config()
        self._model = checkpoint_heads.create_model(config, source.head)
        own = checkpoint_names.checkpoint_variables(self._model)
        missing = sorted(set(own) - set(source.shapes))
        source.check_complete(missing)
        self._has_pooler = not missing
        self.variables = {
            name: tf.Variable(array, name=name)
            for name, array in source.read_each(source.shapes)
        }
        self._own = own
        # The encoder's outputs have the axes of the features, except for choices.
        self._has_choices = source.head.row.features["input_ids"] != "BS"

    def encode(self, inputs: Any, training: bool = False) -> dict[str, Any]:
        """Returns the encoder's outputs under TF Hub's names."""
        features = {ours: inputs[theirs] for ours, theirs in _HUB_NAMES.items()}
        encoder = self._model
        if not isinstance(encoder, bert.BertModel):
            encoder = encoder.bert
        with self._with_variables():
            outputs = encoder(
                features, training=training, dropout_keys=_keys(features, training)
            )
        return self._named_as_hub(outputs)

    def predict_words(self, inputs: Any, training: bool = False) -> dict[str, Any]:
        """Returns the encoder's outputs and `mlm_logits`."""
        features = {ours: inputs[theirs] for ours, theirs in _HUB_NAMES.items()}
        features[_POSITIONS] = inputs[_POSITIONS]
        keys = _keys(features, training)
        with self._with_variables(), _recorded(self._model.bert) as encoded:
            outputs = self._model(features, training=training, dropout_keys=keys)
        logits = {"mlm_logits": outputs["masked_lm_logits"]}
        return self._named_as_hub(encoded) | logits

    def predict(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """Returns all outputs of the model with its head, under our names."""
        encoder = getattr(self._model, "bert", self._model)
        with self._with_variables(), _recorded(encoder) as encoded:
            outputs = dict(self._model(features))
        if not self._has_choices:
            outputs = encoded | outputs
        if not self._has_pooler:
            outputs.pop("pooled_output", None)
        return {
            name: tf.identity(tensor)
            for name, tensor in outputs.items()
            if not isinstance(tensor, list) and name != "embedding_output"
        }

    def _named_as_hub(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        named = {
            "sequence_output": outputs["sequence_output"],
            "encoder_outputs": outputs["all_encoder_layers"],
        }
        if self._has_pooler:
            named["pooled_output"] = outputs["pooled_output"]
            named["default"] = outputs["pooled_output"]
        return named

    def _with_variables(self) -> Any:
        """Returns a scope in which the model computes with `variables`."""
        values = [
            (variable, self.variables.get(name, tf.zeros(variable.shape)))
            for name, variable in self._own.items()
        ]
        return keras.StatelessScope(values)


@contextlib.contextmanager
def _recorded(encoder: Any) -> Iterator[dict[str, Any]]:
    """Yields a dict that is filled with the encoder's outputs when it is called."""
    outputs: dict[str, Any] = {}
    call = encoder.call

    def recording(*args: Any, **kwargs: Any) -> dict[str, Any]:
        outputs.update(call(*args, **kwargs))
        return dict(outputs)

    encoder.call = recording
    try:
        yield outputs
    finally:
        encoder.call = call


def _keys(features: Mapping[str, Any], training: bool) -> Any:
    """Returns dropout keys, uint32 [B], drawn at every call; None if not training."""
    if not training:
        return None
    num_examples = tf.shape(features["input_ids"])[0]
    highest = tf.int32.max
    return tf.cast(tf.random.uniform([num_examples], 0, highest, tf.int32), tf.uint32)


def _specs(shapes: Mapping[str, str]) -> dict[str, tf.TensorSpec]:
    """Returns {name: int32 TensorSpec} of {name: shape letters}."""
    return {
        name: tf.TensorSpec([None] * len(shape), tf.int32, name=name)
        for name, shape in shapes.items()
    }


def _traced(compute: Callable[..., Any], specs: Mapping[str, Any]) -> Any:
    """Returns a function of (inputs, training=False), traced for both modes."""
    function = tf.function(compute, autograph=False)
    for training in (False, True):
        function.get_concrete_function(specs, training=training)
    return function
