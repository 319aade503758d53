"""The configuration of a model: `bert_config.json`."""

import dataclasses
import json

from bert_tf import files
from bert_tf.modeling import numerics
from bert_tf.modeling import released

# Keys that stand in released bert_config.json files and that nothing reads.
IGNORED_KEYS = frozenset(
    {
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    }
)
# What a position may look at: all real pieces, or those up to itself ("LTR" of the
# paper's Table 5).
ATTENTION = ("bidirectional", "causal")
# What the table of positions is at first: drawn like all others, or waves.
POSITION_INITIALIZERS = ("normal", "sinusoidal")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Size, activation and dropout of a model; the defaults are BERT-Base's.

    Raises:
        ValueError: a value is out of its range.

    Source: BertConfig of modeling.py, 2018; `layer_norm_epsilon` was a constant there,
    `attention` and `position_initializer` are ours.
    """

    vocab_size: int  # V, rows of the word embedding table.
    hidden_size: int = 768  # H.
    num_hidden_layers: int = 12  # L.
    num_attention_heads: int = 12  # N; H is a multiple of it.
    intermediate_size: int = 3072  # Width of the feed-forward layer.
    hidden_act: str = "gelu"  # A key of `numerics.ACTIVATIONS`.
    hidden_dropout_prob: float = 0.1  # Embeddings and outputs of sublayers.
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512  # The longest sequence.
    type_vocab_size: int = 2  # Number of segment ids.
    initializer_range: float = 0.02  # Deviation of the truncated normal.
    layer_norm_epsilon: float = numerics.LAYER_NORM_EPSILON
    attention: str = "bidirectional"  # One of `ATTENTION`.
    position_initializer: str = "normal"  # One of `POSITION_INITIALIZERS`.

    def __post_init__(self):
        for field in _SIZES:
            _check_size(field, getattr(self, field))
        for field in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            _check_range(field, getattr(self, field), "at least 0 and less than 1")
        for field in ("initializer_range", "layer_norm_epsilon"):
            _check_range(field, getattr(self, field), "more than 0 and less than 1")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}; change one of them."
            )
        numerics.activation(self.hidden_act)
        _check_choice("attention", self.attention, ATTENTION)
        _check_choice(
            "position_initializer", self.position_initializer, POSITION_INITIALIZERS
        )

    @property
    def is_causal(self):
        """Whether a position sees itself and what is before it, and nothing after."""
        return self.attention == "causal"

    @property
    def size_per_head(self):
        """D = H / N."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def from_dict(cls, values):
        """Returns the configuration that a dictionary describes.

        Raises:
            ValueError: a key that nothing reads, a missing `vocab_size`, or a bad
                value.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known - IGNORED_KEYS)
        if unknown:
            raise ValueError(
                f"Unknown key {', '.join(unknown)} in the model configuration; known "
                f"keys are {', '.join(sorted(known))}. Remove it or correct its name."
            )
        if "vocab_size" not in values:
            raise ValueError(
                "The model configuration has no vocab_size; add it (the number of "
                "lines of vocab.txt)."
            )
        return cls(**{key: values[key] for key in values if key in known})

    @classmethod
    def from_json_file(cls, path):
        """Returns the configuration in a `bert_config.json`.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no JSON object, or a value in it is wrong.
        """
        with files.open_file(path) as file:
            text = file.read()
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not JSON: {error}.") from error
        if not isinstance(values, dict):
            raise ValueError(
                f"{path} holds a JSON {type(values).__name__}, expected an object "
                "with keys such as hidden_size."
            )
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def named(cls, name, **changes):
        """Returns the configuration of a released model, such as "bert-base-cased".

        Args:
            name: of the model.
            **changes: fields that are to differ, such as `vocab_size=2000`.

        Raises:
            ValueError: no released model has this name, or a field cannot have its
                value.
            TypeError: there is no such field.
        """
        model = released.find(name)
        config = cls(
            vocab_size=model.vocab_size,
            hidden_size=model.hidden_size,
            num_hidden_layers=model.num_layers,
            num_attention_heads=model.hidden_size // 64,
            intermediate_size=4 * model.hidden_size,
        )
        return dataclasses.replace(config, **changes)

    @classmethod
    def of_size(cls, name, *, vocab_size, **changes):
        """Returns the configuration of a size, such as "mini" or "L-4_H-256".

        Args:
            name: as `released.size` takes it.
            vocab_size: V.
            **changes: other fields that are to differ from BERT-Base's.

        Raises:
            ValueError: there is no such size, or a field cannot have its value.
        """
        size = released.size(name)
        return cls(
            vocab_size=vocab_size,
            hidden_size=size.hidden_size,
            num_hidden_layers=size.num_layers,
            num_attention_heads=size.num_heads,
            intermediate_size=4 * size.hidden_size,
            **changes,
        )

    def to_dict(self):
        """Returns every field by name."""
        return dataclasses.asdict(self)

    def to_json_string(self):
        """Returns the text of a `bert_config.json`.

        What the release's own reader ignores is left out where it is as in the release.
        """
        values = self.to_dict()
        for name in ("layer_norm_epsilon", "attention", "position_initializer"):
            if values[name] == getattr(BertConfig, name):
                del values[name]
        return json.dumps(values, indent=2, sort_keys=True) + "\n"

    def check_vocabulary_size(self, num_pieces):
        """Raises a ValueError where a vocabulary has more pieces than the model.

        Ids beyond the table give NaN on accelerators, without an error.
        """
        if num_pieces > self.vocab_size:
            raise ValueError(
                f"The vocabulary has {num_pieces} pieces, but the model's vocab_size "
                f"is {self.vocab_size}; give the vocabulary that belongs to the model, "
                "or raise vocab_size in a new model's configuration."
            )

    def check_sequence_length(self, max_seq_length):
        """Raises a ValueError where sequences are longer than the position table."""
        if max_seq_length > self.max_position_embeddings:
            raise ValueError(
                f"max_seq_length is {max_seq_length}, but the model was built for at "
                f"most {self.max_position_embeddings} positions "
                "(max_position_embeddings); give a smaller max_seq_length."
            )


_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


def _check_size(field, value):
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{field} of the model configuration must be a whole number of at least "
            f"1, got {value!r}."
        )


def _check_choice(field, value, choices):
    if value not in choices:
        raise ValueError(
            f"Unknown {field} {value!r} in the model configuration; expected one of "
            f"{', '.join(choices)}."
        )


def _check_range(field, value, expected):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    lowest_is_in = expected.startswith("at least")
    if not is_number or not 0 <= value < 1 or (value == 0 and not lowest_is_in):
        raise ValueError(
            f"{field} of the model configuration must be a number of {expected}, got "
            f"{value!r}."
        )
