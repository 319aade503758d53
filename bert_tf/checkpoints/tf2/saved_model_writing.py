"""A BERT as a SavedModel with the interface of TF Hub's series 4, and its head.

A plain TensorFlow process loads it; neither Keras nor this package is needed there.
Its variables have the release's names, so `saved_model` reads it back as it was.

Shape letters: B batch, S sequence, H hidden, M masked positions, V vocabulary.
"""

import contextlib
import json
import os
import tempfile

import keras
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.modeling import bert

CONFIG_FILE = "bert_config.json"
VOCAB_FILE = "vocab.txt"
HEAD_FILE = "head.json"
# The package's names of the features, and those of TF Hub's interface.
_HUB_NAMES = {
    "input_ids": "input_word_ids",
    "input_mask": "input_mask",
    "segment_ids": "input_type_ids",
}
_POSITIONS = "masked_lm_positions"
_POOLER = "bert/pooler/"


def placement(source):
    """Returns the `Placement` of a `Source`: every weight keeps its name."""
    return source_module.Placement(places={name: name for name in source.shapes})


def write(source, folder):
    """Writes a SavedModel into a folder.

    The loaded object is called, as TF Hub's series 4 is, with a dict of
    `input_word_ids`, `input_mask`, `input_type_ids`, int32 [B, S], and `training`, a
    bool. It returns a dict: `sequence_output` [B, S, H]; `pooled_output` and
    `default`, the same [B, H]; `encoder_outputs`, a list of [B, S, H]. With a
    masked-word head, its `mlm` takes `masked_lm_positions` [B, M] as well and returns
    `mlm_logits` [B, M, V] besides. `variables`, `trainable_variables`, `vocab_file`
    and `do_lower_case` are there, too.

    The signature `ids` takes `input_ids`, `input_mask`, `segment_ids` (and
    `masked_lm_positions`) and returns what the model with its head does.

    Args:
        source: `Source`.
        folder: an empty folder.

    Raises:
        OSError: it cannot be written.
        ValueError: the source cannot be read, is not whole or has no configuration.
    """
    if source.config is None:
        raise ValueError(
            f"The size of the model of {source.path} is not known; give "
            "--bert_config_file."
        )
    with tempfile.TemporaryDirectory() as assets:
        module = _Module(source)
        module.add_assets(source, assets)
        try:
            tf.saved_model.save(module, folder, signatures={"ids": module.signature})
        except tf.errors.OpError as error:
            raise OSError(f"{folder} cannot be written: {error.message}.") from error


def library_outputs(path, features):
    """Returns what TensorFlow computes with a SavedModel that `write` wrote.

    Args:
        path: the folder.
        features: dict of int32 arrays that the signature `ids` takes.

    Returns:
        {name of an output: float32 array}.
    """
    signature = tf.saved_model.load(path).signatures["ids"]
    inputs = signature.structured_input_signature[1]
    outputs = signature(**{name: tf.constant(features[name]) for name in inputs})
    return {name: tensor.numpy() for name, tensor in outputs.items()}


class _Module(tf.Module):
    """The model with its head, as TensorFlow functions of its own variables."""

    # tf.Module finds these by itself, but a SavedModel has only what is assigned.
    variables = None
    trainable_variables = None

    def __init__(self, source):
        super().__init__()
        computed = _Computed(source)  # Not trackable, so nothing of Keras is written.
        self.variables = list(computed.variables.values())
        self.trainable_variables = list(self.variables)
        self.regularization_losses = []
        inputs = _specs(_HUB_NAMES.values())
        self.__call__ = _traced(computed.encode, inputs)
        # A multiple choice has an axis of endings, its encoder has none.
        num_axes = 3 if source.head.kind == "multiple_choice" else 2
        features = _specs(_HUB_NAMES, num_axes=num_axes)
        if computed.has_masked_words:
            positions = _specs([_POSITIONS])
            self.mlm = tf.Module()
            self.mlm.__call__ = _traced(computed.predict_words, inputs | positions)
            features |= positions
        function = tf.function(lambda **features: computed.predict(features))
        self.signature = function.get_concrete_function(**features)

    def add_assets(self, source, folder):
        """Writes the files that go with the weights into a folder, and takes them."""
        texts = {CONFIG_FILE: source.config.to_json_string()}
        head = {
            "kind": source.head.kind,
            "labels": source.head.labels,
            "label_kind": source.head.label_kind,
        }
        if source.head.is_known:
            texts[HEAD_FILE] = json.dumps(head, ensure_ascii=False) + "\n"
        for name, text in texts.items():
            with files.complete_or_absent(os.path.join(folder, name)) as file:
                file.write(text)
        self.files = [
            tf.saved_model.Asset(os.path.join(folder, name)) for name in texts
        ]
        if source.vocabulary is not None:
            path = os.path.join(folder, VOCAB_FILE)
            source.vocabulary.save(path)
            self.vocab_file = tf.saved_model.Asset(path)
        if source.do_lower_case is not None:
            self.do_lower_case = tf.Variable(
                source.do_lower_case, trainable=False, name="do_lower_case"
            )


class _Computed:
    """What a source's model computes, from variables with the release's names."""

    def __init__(self, source):
        self._model = checkpoint_heads.create_model(source.config, source.head)
        own = checkpoint_names.checkpoint_variables(self._model)
        # A head that does not use the pooler may come without one.
        missing = sorted(set(own) - set(source.shapes))
        self._has_pooler = not any(name.startswith(_POOLER) for name in missing)
        if any(not name.startswith(_POOLER) for name in missing):
            raise ValueError(
                f"{source.path} lacks {len(missing)} of the model's weights, the first "
                f"{missing[0]}; expected a whole model."
            )
        self.variables = {
            name: tf.Variable(array, name=name)
            for name, array in source.read_each(source.shapes)
        }
        self._own = own
        self._is_choice = source.head.kind == "multiple_choice"
        self.has_masked_words = source.head.kind in ("pretraining", "masked_lm")

    def encode(self, inputs, training=False):
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

    def predict_words(self, inputs, training=False):
        """Returns the encoder's outputs and `mlm_logits`."""
        features = {ours: inputs[theirs] for ours, theirs in _HUB_NAMES.items()}
        features[_POSITIONS] = inputs[_POSITIONS]
        keys = _keys(features, training)
        with self._with_variables(), _recorded(self._model.bert) as encoded:
            outputs = self._model(features, training=training, dropout_keys=keys)
        logits = {"mlm_logits": outputs["masked_lm_logits"]}
        return self._named_as_hub(encoded) | logits

    def predict(self, features):
        """Returns all outputs of the model with its head, under our names."""
        encoder = getattr(self._model, "bert", self._model)
        with self._with_variables(), _recorded(encoder) as encoded:
            outputs = dict(self._model(features))
        if not self._is_choice:
            outputs = encoded | outputs
        if not self._has_pooler:
            outputs.pop("pooled_output", None)
        return {
            name: tf.identity(tensor)
            for name, tensor in outputs.items()
            if not isinstance(tensor, list) and name != "embedding_output"
        }

    def _named_as_hub(self, outputs):
        named = {
            "sequence_output": outputs["sequence_output"],
            "encoder_outputs": outputs["all_encoder_layers"],
        }
        if self._has_pooler:
            named["pooled_output"] = outputs["pooled_output"]
            named["default"] = outputs["pooled_output"]
        return named

    def _with_variables(self):
        """Returns a scope in which the model computes with `variables`."""
        values = [
            (variable, self.variables.get(name, tf.zeros(variable.shape)))
            for name, variable in self._own.items()
        ]
        return keras.StatelessScope(values)


@contextlib.contextmanager
def _recorded(encoder):
    """Yields a dict that the encoder's outputs come into when it is called."""
    outputs, call = {}, encoder.call

    def recording(*args, **kwargs):
        outputs.update(call(*args, **kwargs))
        return dict(outputs)

    encoder.call = recording
    try:
        yield outputs
    finally:
        encoder.call = call


def _keys(features, training):
    """Returns dropout keys, uint32 [B], drawn anew at every call; None if not used."""
    if not training:
        return None
    num_examples = tf.shape(features["input_ids"])[0]
    highest = tf.int32.max
    return tf.cast(tf.random.uniform([num_examples], 0, highest, tf.int32), tf.uint32)


def _specs(names_of_inputs, *, num_axes=2):
    """Returns {name: int32 TensorSpec}."""
    return {
        name: tf.TensorSpec([None] * num_axes, tf.int32, name=name)
        for name in names_of_inputs
    }


def _traced(compute, specs):
    """Returns the function of (inputs, training=False), for both of its modes."""
    function = tf.function(compute)
    for training in (False, True):
        function.get_concrete_function(specs, training=training)
    return function
