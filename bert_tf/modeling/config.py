"""The configuration of a model: `bert_config.json`."""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.modeling import numerics
from bert_tf.modeling import released

# Keys of released bert_config.json files that the release's code does not read either.
_IGNORED_KEYS = {
    "directionality",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
}
_CHOICES = {
    # What a position sees: all, or itself and what precedes it (LTR in Table 5).
    "attention": ("bidirectional", "causal"),
    "position_initializer": ("normal", "sinusoidal"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Size, activation and dropout of a model; the defaults are BERT-Base's.

    `layer_norm_epsilon` (a constant in 2018), `attention` and `position_initializer`
    are additions of this package.

    Raises:
        ValueError: a value has the wrong type, or is out of range.

    Source: BertConfig of modeling.py, 2018.
    """

    vocab_size: int  # V, rows of the word embedding table.
    hidden_size: int = 768  # H.
    num_hidden_layers: int = 12  # L.
    num_attention_heads: int = 12  # N; H is a multiple of it.
    intermediate_size: int = 3072  # I, width of the feed-forward layer.
    hidden_act: str = "gelu"  # A key of `numerics.ACTIVATIONS`.
    hidden_dropout_prob: float = 0.1  # After the embeddings and every sublayer.
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512  # The longest sequence.
    type_vocab_size: int = 2  # Number of segment ids.
    initializer_range: float = 0.02  # Standard deviation before truncation.
    layer_norm_epsilon: float = numerics.LAYER_NORM_EPSILON
    attention: str = "bidirectional"  # Or "causal".
    position_initializer: str = "normal"  # See `initial_values.of_positions`.

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in _CHOICES:
                expected = f"one of {', '.join(_CHOICES[field.name])}"
                is_right = value in _CHOICES[field.name]
            elif field.type is int:
                expected = "an integer of at least 1"
                is_right = type(value) is int and value >= 1
            elif field.type is float:
                may_be_zero = "dropout" in field.name
                lowest = "at least 0" if may_be_zero else "more than 0"
                expected = f"{lowest} and less than 1"
                is_number = isinstance(value, int | float) and type(value) is not bool
                is_right = is_number and (0 < value < 1 or (may_be_zero and value == 0))
            else:
                continue
            if not is_right:
                raise ValueError(
                    f"{field.name} of the model configuration must be {expected}, got "
                    f"{value!r}."
                )
        numerics.activation(self.hidden_act)

    @property
    def is_causal(self) -> bool:
        """Whether a position sees only itself and what precedes it."""
        return self.attention == "causal"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "BertConfig":
        """Returns the configuration described by a dictionary.

        Raises:
            ValueError: a key is unknown, `vocab_size` is missing, or a value is wrong.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known - _IGNORED_KEYS)
        if unknown:
            raise ValueError(
                f"Unknown key {', '.join(unknown)} in the model configuration. Remove "
                f"it or correct its name; known keys: {', '.join(sorted(known))}."
            )
        if "vocab_size" not in values:
            raise ValueError(
                "The model configuration has no vocab_size. Add it: it is the number "
                "of lines in vocab.txt."
            )
        config = cls(**{key: values[key] for key in values if key in known})
        config.check_heads()
        return config

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> "BertConfig":
        """Returns the configuration in a `bert_config.json`.

        Raises:
            FileNotFoundError: the file does not exist.
            ValueError: the file is not a JSON object, or a value in it is wrong.
        """
        values = files.read_json(path, advice="expected keys such as hidden_size")
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def named(cls, name: str, **changes: Any) -> "BertConfig":
        """Returns the configuration of a released model, such as "bert-base-cased".

        Args:
            name: the model's name.
            **changes: fields to set differently, such as `vocab_size=2000`.

        Raises:
            ValueError: no released model has this name, or a change is wrong.
        """
        return cls.from_dict({**released.find(name).config_values(), **changes})

    @classmethod
    def of_size(cls, name: str, *, vocab_size: int, **changes: Any) -> "BertConfig":
        """Returns the configuration of a size, such as "mini" or "L-4_H-256".

        See `released.values_of_size`; other fields are those of `changes`, or else
        BERT-Base's.
        """
        values = released.values_of_size(name)
        return cls.from_dict({**values, "vocab_size": vocab_size, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Returns every field by name."""
        return dataclasses.asdict(self)

    def to_json_string(self) -> str:
        """Returns the text of a `bert_config.json`.

        Fields that this package added are left out if they have their default, which is
        what the release computes. Its reader ignores them otherwise.
        """
        values = self.to_dict()
        for name in ("layer_norm_epsilon", "attention", "position_initializer"):
            if values[name] == getattr(BertConfig, name):
                del values[name]
        return json.dumps(values, indent=2, sort_keys=True) + "\n"

    def check_heads(self) -> None:
        """Raises a ValueError if the heads cannot share the hidden size equally.

        The constructor does not check this, as in 2018: `BertConfig(vocab_size=99,
        hidden_size=37)` can be created and written. Models and `from_dict` check it.
        """
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}; change one of them."
            )

    def check_sequence_length(self, max_seq_length: int) -> None:
        """Raises a ValueError if sequences are longer than the position table."""
        if max_seq_length > self.max_position_embeddings:
            raise ValueError(
                f"max_seq_length is {max_seq_length}, but the model has at most "
                f"{self.max_position_embeddings} positions (max_position_embeddings). "
                "Use a smaller max_seq_length."
            )
