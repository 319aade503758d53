"""The base of the SavedModels of all tasks: a trained model's functions.

All functions consist of ops that model servers support. Outputs are dense, because the
signatures of a SavedModel cannot return ragged tensors.

A batch is as wide as its longest row, so one long text among short ones would make
every row expensive. Rows are therefore sorted by length and computed in parts, each
only as wide as its own longest row. A limit on the size of a part bounds the memory,
however many rows a request has.

Shape letters: B batch, R rows of a part, S sequence.
"""

import functools
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.modeling import input_features
from bert_tf.tokenization import in_graph

# Pads rows in the release's vocabularies.
_PAD = "[PAD]"
# Positions that are computed at once, padding included.
MAX_BATCH_TOKENS = 8192
# Maximum length of a text in UTF-8.
MAX_TEXT_BYTES = 2**20
# What a part costs in addition to its tokens, expressed in tokens: calling a few
# hundred ops for a part takes about as long as computing this many more tokens.
TOKENS_PER_PART = 128
Tensors = dict[str, tf.Tensor]


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
            **options: see `apply_in_parts`.
        """
        return apply_in_parts(
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


def apply_in_parts(
    function: Any,
    features: Tensors,
    *,
    max_tokens: int,
    width: tf.Tensor | None = None,
    trims: bool = True,
    costs: tf.Tensor | None = None,
    padding: Mapping[str, Any] | None = None,
) -> Tensors:
    """Returns the outputs of a function of rows; equal to those of a single call.

    Args:
        function: a `tf.function` with a signature, which takes `input_ids`,
            `input_mask`, `segment_ids`, int32 [R, S], and returns tensors [R, ...].
            Only their second axis may vary in size.
        features: the same columns, int32 [B, S]; B may be 0.
        max_tokens: positions of a part at most, padding included. A longer row is a
            part of its own.
        width: size of the second axis of outputs where it varies. None: S.
        trims: whether the padding at the end of all rows of a part is left out. Outputs
            at these positions are then those in `padding`.
        costs: int32 [B], positions that a row counts for. None: its length.
        padding: output name -> value at positions that are left out. Default: 0 or "".
    """
    num_rows, columns = tf.unstack(tf.shape(features["input_ids"]))
    lengths = (
        _lengths(features["input_mask"]) if trims else tf.fill([num_rows], columns)
    )
    costs = lengths if costs is None else tf.maximum(costs, lengths)
    order = tf.argsort(costs, stable=True)
    costs = tf.cast(tf.gather(costs, order), tf.int64)
    lengths = tf.gather(lengths, order)
    features = {
        name: tf.gather(features[name], order) for name in input_features.SEQUENCE
    }
    specs = function.get_concrete_function().structured_outputs
    padded = functools.partial(
        _padded, width=columns if width is None else width, padding=padding or {}
    )

    def compute_part(begin, computed):
        end = begin + _rows_of_part(costs[begin:], max_tokens)
        longest = tf.reduce_max(lengths[begin:end])
        part = {name: rows[begin:end, :longest] for name, rows in features.items()}
        outputs = {
            name: padded(name, value, specs[name].shape)
            for name, value in function(part).items()
        }
        return end, {
            name: tf.concat([rows, outputs[name]], axis=0)
            for name, rows in computed.items()
        }

    empty = {}
    for name, spec in specs.items():
        shape = [0, *(size or 0 for size in spec.shape[1:])]
        empty[name] = padded(name, tf.zeros(shape, spec.dtype), spec.shape)
    _, computed = tf.while_loop(
        lambda begin, computed: begin < num_rows,
        compute_part,
        (0, empty),
        shape_invariants=(
            tf.TensorShape([]),
            {name: spec.shape for name, spec in specs.items()},
        ),
        parallel_iterations=1,
    )
    restored = tf.math.invert_permutation(order)
    return {name: tf.gather(rows, restored) for name, rows in computed.items()}


def _lengths(input_mask):
    """Returns the positions up to the last real one; int32 [B]."""
    columns = tf.shape(input_mask)[1]
    numbers = tf.range(1, columns + 1)
    lengths = tf.reduce_max(tf.where(input_mask != 0, numbers, 0), axis=1)
    # A row without real positions attends to all of them.
    return tf.where(lengths > 0, lengths, columns)


def _rows_of_part(costs, max_tokens):
    """Returns how many rows the next part has; `costs` are those of all rows left.

    A part ends before the row that would exceed the limit, or that would add more
    padding to the part's rows than a part of its own costs.
    """
    count = tf.range(1, tf.size(costs, tf.int64) + 1)
    size = count * costs  # The rows are sorted: the last one is the longest.
    fits = (size <= max_tokens) & (size - tf.cumsum(costs) <= TOKENS_PER_PART)
    return tf.maximum(tf.reduce_sum(tf.cast(fits, tf.int32)), 1)


def _padded(name, value, shape, *, width, padding):
    """Pads the second axis, if its size varies."""
    if shape.rank < 2 or shape[1] is not None:
        return value
    missing = [[0, 0], [0, width - tf.shape(value)[1]]] + [[0, 0]] * (shape.rank - 2)
    default = "" if value.dtype == tf.string else 0
    fill = tf.cast(padding.get(name, default), value.dtype)
    return tf.pad(value, missing, constant_values=fill)
