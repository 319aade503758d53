"""The base of the SavedModels of all tasks: a trained model's functions.

All functions consist of ops that model servers support. Outputs are dense, because the
signatures of a SavedModel cannot return ragged tensors.

Shape letters: B batch, S sequence.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf.modeling import input_features
from bert_tf.serving import row_parts
from bert_tf.tokenization import in_graph

# Pads rows in the release's vocabularies.
_PAD = "[PAD]"
# Positions that are computed at once, padding included; see `row_parts`.
MAX_BATCH_TOKENS = 8192
# Maximum length of a text in UTF-8.
MAX_TEXT_BYTES = 2**20


class TaskSignatures(tf.Module):
    """A trained model with its tokenizer, as TensorFlow functions.

    It refers to the model's variables and not to the model, so that a SavedModel of it
    contains nothing of Keras.

    Args:
        predictor: the predictor of a run, with `model`, `task` and `vocabulary`.
        **functions: the task's functions by name, except for `ids`: each a function,
            and the specs of its inputs in their order.

    Attributes:
        functions: signature name -> `tf.function`. Every task has `serving_default`,
            which takes text, and `ids`, which takes `input_ids`, `input_mask` and
            `segment_ids`, int32 [B, S], and returns the model's outputs. `ids` ignores
            the padding that a server adds; see `real_mask`.
        model_outputs: `outputs` as one `tf.function`, which all functions call.
            `openvino_model` replaces it in a SavedModel.
    """

    # Whether `ids` returns a value for each position, also for padding.
    HAS_POSITIONS = False
    TEXTS: tuple[str, ...] = ("text",)  # The inputs of `serving_default`.

    def __init__(
        self,
        predictor: Any,
        **functions: tuple[Callable, dict[str, tf.TensorSpec]],
    ):
        super().__init__()
        in_graph.check_ops()
        # `tf.Module` would write the predictor itself into the SavedModel.
        self._get_predictor = lambda: predictor
        self._variables = [variable.value for variable in predictor.model.weights]
        vocabulary = predictor.vocabulary
        self._tokenizer = in_graph.InGraphTokenizer(
            vocabulary, **predictor.task.tokenizer_arguments()
        )
        # What `graph_packing` puts around pieces.
        self._frame = {"cls_id": vocabulary.cls_id, "sep_id": vocabulary.sep_id}
        ids = {
            name: tf.TensorSpec([None, None], tf.int32, name=name)
            for name in input_features.SEQUENCE
        }
        self.model_outputs = tf.function(
            self.outputs, input_signature=[ids], autograph=False
        )
        known = {
            "ids": (self._of_ids, ids),
            "serving_default": (self._of_texts, texts(*self.TEXTS)),
        }
        self.functions = {
            name: self._signature(*function)
            for name, function in {**known, **functions}.items()
        }

    @property
    def predictor(self) -> Any:
        """The predictor of the run."""
        return self._get_predictor()

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the outputs of the `ids` signature; every task defines its own."""
        raise NotImplementedError

    def _of_texts(self, *texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the outputs of `serving_default`; every task defines its own."""
        raise NotImplementedError

    def in_parts(
        self, features: dict[str, tf.Tensor], **options: Any
    ) -> dict[str, tf.Tensor]:
        """Returns `outputs`, computed for a limited number of rows at a time.

        Args:
            features: `input_ids`, `input_mask`, `segment_ids`, int32 [B, S].
            **options: see `row_parts.apply`.
        """
        return row_parts.apply(
            self.model_outputs, features, max_tokens=MAX_BATCH_TOKENS, **options
        )

    def _of_ids(self, input_ids, input_mask, segment_ids):
        vocabulary = self.predictor.vocabulary
        config = self.predictor.model.config
        shapes = [tf.shape(ids) for ids in (input_ids, input_mask, segment_ids)]
        same_shape = tf.reduce_all(tf.equal(shapes, shapes[0]))
        message = "input_ids, input_mask and segment_ids must have the same shape."
        with tf.control_dependencies([tf.debugging.Assert(same_shape, [message])]):
            # Keras would count negative ids from the end of the table, and segments
            # outside their table have no embedding.
            input_ids = _below(config.vocab_size, input_ids, "input_ids")
            segment_ids = _below(config.type_vocab_size, segment_ids, "segment_ids")
            input_mask = _below(2, input_mask, "input_mask")
        features = {
            "input_ids": input_ids,
            "input_mask": real_mask(
                input_ids,
                input_mask,
                cls_id=vocabulary.cls_id,
                pad_id=vocabulary.ids.get(_PAD),
            ),
            "segment_ids": segment_ids,
        }
        return self.of_features(features)

    def of_features(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the outputs of the `ids` signature."""
        return self.in_parts(features, trims=not self.HAS_POSITIONS)

    def _signature(self, function, specs):
        """Returns a `tf.function` that refuses long texts and unequal inputs."""

        def limited(*inputs):
            checks = [
                _length_check(values) for values in inputs if values.dtype == tf.string
            ]
            if len(inputs) > 1:
                checks.append(_count_check(dict(zip(specs, inputs, strict=True))))
            with tf.control_dependencies(checks):
                checked = [tf.identity(values) for values in inputs]
            return function(*checked)

        return tf.function(
            limited, input_signature=list(specs.values()), autograph=False
        )


def real_mask(
    input_ids: tf.Tensor, input_mask: tf.Tensor, *, cls_id: int, pad_id: int | None
) -> tf.Tensor:
    """Returns the input mask without the padding that a server added; int32 [B, S].

    A client pads rows with [PAD] and the mask 0. With `pad_variable_length_inputs`,
    TensorFlow Serving repeats the first value of each input instead: [CLS] with the
    mask 1. No real row ends with either, because its last piece is [SEP].

    Args:
        input_ids: int32 [B, S].
        input_mask: int32 [B, S], as the client sent it and the server padded it.
        cls_id: id of [CLS].
        pad_id: id of [PAD]; None if the vocabulary lacks it.
    """
    is_padding = input_ids == cls_id
    if pad_id is not None:
        is_padding |= input_ids == pad_id
    is_tail = tf.math.cumprod(tf.cast(is_padding, tf.int32), axis=1, reverse=True) > 0
    is_first = tf.range(tf.shape(input_ids)[1]) == 0
    return tf.where(is_tail & ~is_first, 0, input_mask)


def _length_check(values):
    longest = tf.reduce_max(tf.strings.length(values))
    return tf.debugging.Assert(
        longest <= MAX_TEXT_BYTES,
        [f"Expected texts of at most {MAX_TEXT_BYTES} bytes, got one of", longest],
    )


def _count_check(inputs):
    """Returns an op that fails unless all inputs have the same number of rows."""
    counts = [tf.shape(values)[0] for values in inputs.values()]
    return tf.debugging.Assert(
        tf.reduce_all(tf.equal(counts, counts[0])),
        [
            f"All inputs must have the same number of rows; {', '.join(inputs)} have",
            tf.stack(counts),
        ],
    )


def _below(limit, ids, name):
    """Returns ids after the check that all of them are in [0, limit)."""
    is_wrong = (ids < 0) | (ids >= limit)
    place = tf.where(is_wrong)[:1]  # [1, 2] or [0, 2]
    message = f"{name} must be at least 0 and below {limit}, got"
    refusal = tf.debugging.Assert(
        ~tf.reduce_any(is_wrong),
        [message, ids[is_wrong][:1], "in row", place[:, 0], "column", place[:, 1]],
    )
    with tf.control_dependencies([refusal]):
        return tf.identity(ids)


def texts(*names: str) -> dict[str, tf.TensorSpec]:
    """Returns the specs of text inputs, string [B] each."""
    return {name: tf.TensorSpec([None], tf.string, name=name) for name in names}
