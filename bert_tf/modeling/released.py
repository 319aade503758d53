"""The models that were released in 2018 to 2020: their names and sizes."""

import dataclasses
import itertools
import re

# Names of sizes in the paper and in the release -> layers and width.
_SIZES = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
# Units of an attention head in every released model.
UNITS_PER_HEAD = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedModel:
    """Size of one released model.

    Every released model has heads of 64 units, a feed-forward layer four times as wide
    as the hidden one, 512 positions and the tanh form of GELU.
    """

    name: str  # The well-known name, or the name of the model's folder.
    num_layers: int
    hidden_size: int
    vocab_size: int

    def config_values(self) -> dict[str, int]:
        """Returns the fields of `BertConfig` that are not BERT-Base's."""
        values = _values(self.num_layers, self.hidden_size)
        return {**values, "vocab_size": self.vocab_size}


def _small_name(num_layers, hidden_size):
    num_heads = hidden_size // UNITS_PER_HEAD
    return f"uncased_L-{num_layers}_H-{hidden_size}_A-{num_heads}"


# Size, and entries in the released vocab.txt.
_NAMED = {
    "bert-base-uncased": ("base", 30522),
    "bert-large-uncased": ("large", 30522),
    "bert-base-cased": ("base", 28996),
    "bert-large-cased": ("large", 28996),
    "bert-large-uncased-whole-word-masking": ("large", 30522),
    "bert-large-cased-whole-word-masking": ("large", 28996),
    "bert-base-multilingual-cased": ("base", 119547),
    "bert-base-multilingual-uncased": ("base", 105879),
    "bert-base-chinese": ("base", 21128),
}
_SMALL = itertools.product((2, 4, 6, 8, 10, 12), (128, 256, 512, 768))
# Name -> model, for all 33.
MODELS = {
    name: ReleasedModel(
        name=name,
        num_layers=num_layers,
        hidden_size=hidden_size,
        vocab_size=vocab_size,
    )
    for name, (num_layers, hidden_size), vocab_size in (
        *((name, _SIZES[size], count) for name, (size, count) in _NAMED.items()),
        *((_small_name(*size), size, 30522) for size in _SMALL),
    )
}
# Names that the README of the small models gives to four of them.
ALIASES = {
    f"bert-{size}": _small_name(*_SIZES[size])
    for size in ("tiny", "mini", "small", "medium")
}

_SIZE = re.compile(r"L-([1-9]\d*)_H-([1-9]\d*)(?:_A-([1-9]\d*))?")


def values_of_size(name: str) -> dict[str, int]:
    """Returns the fields of `BertConfig` that a size without a vocabulary determines.

    Args:
        name: "tiny", "mini", "small", "medium", "base", "large", or layers, width and
            heads, as in "L-6_H-768_A-12". Without heads there is one per 64 units.

    Raises:
        ValueError: the name is unknown.

    Source: Table 6 of the paper; the README of the small models.
    """
    if name in _SIZES:
        return _values(*_SIZES[name])
    matched = _SIZE.fullmatch(name)
    if not matched:
        raise ValueError(
            f"Unknown model size {name!r}; expected one of {', '.join(_SIZES)}, or "
            "layers and width as in L-6_H-768, optionally with heads as in "
            "L-6_H-768_A-12."
        )
    num_layers, hidden_size, num_heads = (int(n or 0) for n in matched.groups())
    if not num_heads and hidden_size % UNITS_PER_HEAD:
        raise ValueError(
            f"The width of {name} is not a multiple of {UNITS_PER_HEAD}, the number of "
            f"units per head. Add the number of heads, as in {name}_A-2."
        )
    return _values(num_layers, hidden_size, num_heads)


def _values(num_layers, hidden_size, num_heads=0):
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": num_layers,
        "num_attention_heads": num_heads or hidden_size // UNITS_PER_HEAD,
        "intermediate_size": 4 * hidden_size,
    }


def find(name: str) -> ReleasedModel:
    """Returns the `ReleasedModel` named `name`.

    Raises:
        ValueError: no released model has this name.
    """
    model = MODELS.get(ALIASES.get(name, name))
    if model is None:
        known = ", ".join([*_NAMED, *ALIASES])
        raise ValueError(
            f"Unknown model name {name!r}; expected one of {known}, or a small model "
            "named uncased_L-{2,4,6,8,10,12}_H-{128,256,512,768}_A-{2,4,8,12}."
        )
    return model
