"""`TextPreprocessor`: a Keras layer from strings to features.

Shape letters: B batch, S sequence.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self

import keras
import numpy as np
import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.modeling import input_features
from bert_tf.preprocessing import tokenizer as tokenizer_module
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

# [CLS] A [SEP] B [SEP]
_NUM_SPECIAL = 3


@keras.saving.register_keras_serializable("bert_tf")
class TextPreprocessor(keras.layers.Layer):
    """Turns texts, or pairs of texts, into the features that every model reads.

    Its ids are those of `FullTokenizer`. It works eagerly, in `tf.data`, and in a
    Functional model, which then takes strings. Saved models contain the vocabulary.

    Args:
        source: as for `bert_tf.FullTokenizer`, for example a checkpoint's folder, the
            name of a model, or the tokenizer from `bert_tf.from_pretrained`.
        max_seq_length: length of the rows, S; longer texts are cut at the end, of a
            pair the longer one first. None: rows are as long as the longest text of a
            batch needs, and at most as long as the source's model allows.
        do_lower_case: as for `bert_tf.FullTokenizer`.
        strip_accents: as for `bert_tf.FullTokenizer`.
        never_split: as for `bert_tf.FullTokenizer`.
        **kwargs: `name` and so on, as for every Keras layer.

    Attributes:
        tokenizer: the `bert_tf.FullTokenizer` with the same settings.
        max_seq_length: the longest row, in word pieces.

    Raises:
        OSError, ValueError, ImportError: as for `bert_tf.FullTokenizer`; or the maximum
            length is unknown or too small for three special tokens.

    Example:
        preprocessor = bert_tf.TextPreprocessor("uncased_L-12_H-768_A-12")
        preprocessor(["The cat sat."])["input_ids"]       # [[101, 1996, ..., 102]]
        preprocessor(questions, contexts)                 # Pairs.
        dataset.batch(32).map(lambda text, label: (preprocessor(text), label))

        text = keras.Input((), dtype="string")
        outputs = encoder(preprocessor(text))             # A model that takes strings.
    """

    def __init__(
        self,
        source: Any,
        *,
        max_seq_length: int | None = None,
        do_lower_case: bool | None = None,
        strip_accents: bool | None = None,
        never_split: Sequence[str] = (),
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.tokenizer = tokenizer_module.FullTokenizer(
            source,
            do_lower_case,
            strip_accents=strip_accents,
            never_split=never_split,
        )
        self.max_seq_length = self.tokenizer.longest_row(max_seq_length)
        if self.max_seq_length < _NUM_SPECIAL:
            raise ValueError(
                f"max_seq_length: expected at least {_NUM_SPECIAL}, got "
                f"{self.max_seq_length}."
            )
        self._length = max_seq_length  # None: as long as the longest row.
        self._in_graph_tokenizer = in_graph.InGraphTokenizer(
            self.tokenizer.vocabulary, **self.tokenizer.tokenizer_arguments()
        )
        self.supports_jit = False  # XLA has no strings.
        self.built = True  # There are no weights.

    def __call__(self, texts: Any, texts_b: Any = None, **_: Any) -> dict[str, Any]:
        """Returns the features of texts; see `call`. Keras also passes `training`."""
        if any(map(keras.utils.is_keras_tensor, keras.tree.flatten((texts, texts_b)))):
            return super().__call__(texts, texts_b)
        # Layers convert their inputs to tensors of Keras's backend. Only TensorFlow's
        # can hold strings, and tf.data may also feed a model on another backend.
        return self.call(texts, texts_b)

    def call(self, texts: Any, texts_b: Any = None) -> dict[str, tf.Tensor]:
        """Returns the encoder's features of some texts, or pairs of texts.

        Args:
            texts: one text, or B texts as a list, an array or a string tensor [B] or
                [B, 1]. Pairs are a second argument, a tuple of both arguments, or
                [B, 2].
            texts_b: the second segments, in the same form as `texts`, or None.

        Returns:
            `input_ids`, `input_mask`, `segment_ids`: int32 [B, S], or [S] for one text.

        Raises:
            ValueError: the inputs are not strings, have another shape, or there are
                fewer second segments than texts.
        """
        first, second, is_one = _columns(*_separate(texts, texts_b))
        ids_b = None if second is None else self._in_graph_tokenizer.tokenize(second)
        features = graph_packing.pack_ragged(
            self._in_graph_tokenizer.tokenize(first),
            ids_b,
            max_seq_length=self.max_seq_length,
            cls_id=self.tokenizer.vocabulary.cls_id,
            sep_id=self.tokenizer.vocabulary.sep_id,
            length=self._length,
        )
        if not is_one:
            return features
        return {name: column[0] for name, column in features.items()}

    def compute_output_spec(
        self, texts: Any, texts_b: Any = None
    ) -> dict[str, keras.KerasTensor]:
        """Returns the shapes and dtypes of the features of symbolic inputs."""
        first, _ = _separate(texts, texts_b)
        shape = (*first.shape[:1], self._length)  # [B, S], or [S]
        return {
            name: keras.KerasTensor(shape, "int32", name=name)
            for name in input_features.SEQUENCE
        }

    def compute_output_shape(self, input_shape: Any) -> dict[str, Any]:
        """Returns the shapes of the features of texts [B]."""
        return dict.fromkeys(input_features.SEQUENCE, (input_shape[0], self._length))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as plain values."""
        arguments = self.tokenizer.tokenizer_arguments()
        return {
            **super().get_config(),
            **arguments,
            "vocabulary": list(self.tokenizer.vocabulary),
            "never_split": list(arguments["never_split"]),
            "max_seq_length": self._length,
            "longest_row": self.max_seq_length,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns the layer described by `get_config`."""
        config = dict(config)
        tokenizer = tokenizer_module.FullTokenizer(
            vocabulary_module.Vocabulary(config.pop("vocabulary")),
            config.pop("do_lower_case"),
            strip_accents=config.pop("strip_accents"),
            never_split=config.pop("never_split"),
        )
        tokenizer.max_seq_length = config.pop("longest_row")
        return cls(tokenizer, **config)


def _separate(texts: Any, texts_b: Any) -> tuple[Any, Any]:
    """Returns both arguments, which tf.data and Keras may pass as one."""
    if texts_b is not None or not isinstance(texts, tuple | list) or len(texts) != 2:
        return texts, texts_b
    # Keras and tf.data pass columns as tensors. A list of other values has rows.
    is_pair = isinstance(texts, tuple) or all(map(_is_column, texts))
    return (texts[0], texts[1]) if is_pair else (texts, None)


def _is_column(value: Any) -> bool:
    """Returns whether a value is a tensor with more than one text."""
    is_tensor = tf.is_tensor(value) or keras.utils.is_keras_tensor(value)
    return is_tensor and value.shape != ()


def _columns(texts: Any, texts_b: Any) -> tuple[tf.Tensor, tf.Tensor | None, bool]:
    """Returns one or two string tensors [B], and whether a single text was given."""
    first, second = _strings(texts, "texts"), None
    is_one = first.shape.rank == 0
    if texts_b is not None:
        second = _flat(_strings(texts_b, "texts_b"), "texts_b")
    elif first.shape.rank == 2 and first.shape[1] == 2:
        first, second = first[:, 0], first[:, 1]
    first = _flat(first, "texts")
    if second is not None and not first.shape.is_compatible_with(second.shape):
        raise ValueError(
            f"Expected as many texts_b as texts ({first.shape[0]}), got "
            f"{second.shape[0]}."
        )
    return first, second, is_one


def _flat(strings: tf.Tensor, name: str) -> tf.Tensor:
    """Returns strings of shape [], [B] or [B, 1] as [B]."""
    shape = strings.shape
    if shape.rank not in (0, 1) and not (shape.rank == 2 and shape[1] == 1):
        raise ValueError(
            f"{name}: expected strings of shape [B], [B, 1] or, for pairs, [B, 2], "
            f"got {shape}."
        )
    return tf.reshape(strings, [-1])


def _strings(texts: Any, name: str) -> tf.Tensor:
    try:
        if not tf.is_tensor(texts):
            # TensorFlow does not convert every kind of array, such as pandas's.
            texts = np.asarray(texts, object).tolist()
        return tf.convert_to_tensor(texts, tf.string)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: expected strings, got {_described(texts)}."
        ) from None


def _described(texts: Any) -> str:
    if tf.is_tensor(texts):
        return f"a tensor of {texts.dtype.name}"
    flat = keras.tree.flatten(texts)
    wrong = [one for one in flat if not isinstance(one, str | bytes)]
    if wrong:
        return f"{wrong[0]!r:.60} ({type(wrong[0]).__name__})"
    return "lists of different lengths"
