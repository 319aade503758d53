"""The models that were released in 2018 to 2020: their sizes and their casing."""

import dataclasses
import re

# Layers and width.
_BASE = (12, 768)
_LARGE = (24, 1024)
_SMALL_LAYERS = (2, 4, 6, 8, 10, 12)
_SMALL_WIDTHS = (128, 256, 512, 768)
# Entries in the released vocab.txt files.
_UNCASED_VOCAB_SIZE = 30522
_CASED_VOCAB_SIZE = 28996
_MULTILINGUAL_CASED_VOCAB_SIZE = 119547
_MULTILINGUAL_UNCASED_VOCAB_SIZE = 105879
_CHINESE_VOCAB_SIZE = 21128
# Units of an attention head in every released model.
UNITS_PER_HEAD = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedModel:
    """Size and casing of one released model.

    Every released model has heads of 64 units, a feed-forward layer four times as wide
    as the hidden one, 512 positions and the tanh form of GELU.
    """

    name: str  # The well-known name, or the name of the model's folder.
    num_layers: int
    hidden_size: int
    vocab_size: int
    do_lower_case: bool

    def config_values(self) -> dict[str, int]:
        """Returns the fields of `BertConfig` that are not BERT-Base's."""
        values = values_of_size(f"L-{self.num_layers}_H-{self.hidden_size}")
        return {**values, "vocab_size": self.vocab_size}


def _model(name, size, vocab_size):
    return ReleasedModel(
        name=name,
        num_layers=size[0],
        hidden_size=size[1],
        vocab_size=vocab_size,
        # The release also lowercases text for the Chinese model.
        do_lower_case="uncased" in name or "chinese" in name,
    )


_NAMED = (
    _model("bert-base-uncased", _BASE, _UNCASED_VOCAB_SIZE),
    _model("bert-large-uncased", _LARGE, _UNCASED_VOCAB_SIZE),
    _model("bert-base-cased", _BASE, _CASED_VOCAB_SIZE),
    _model("bert-large-cased", _LARGE, _CASED_VOCAB_SIZE),
    _model("bert-large-uncased-whole-word-masking", _LARGE, _UNCASED_VOCAB_SIZE),
    _model("bert-large-cased-whole-word-masking", _LARGE, _CASED_VOCAB_SIZE),
    _model("bert-base-multilingual-cased", _BASE, _MULTILINGUAL_CASED_VOCAB_SIZE),
    _model("bert-base-multilingual-uncased", _BASE, _MULTILINGUAL_UNCASED_VOCAB_SIZE),
    _model("bert-base-chinese", _BASE, _CHINESE_VOCAB_SIZE),
)
_SMALL = tuple(
    _model(
        f"uncased_L-{layers}_H-{width}_A-{width // UNITS_PER_HEAD}",
        (layers, width),
        _UNCASED_VOCAB_SIZE,
    )
    for layers in _SMALL_LAYERS
    for width in _SMALL_WIDTHS
)

# Name -> model, for all 33.
MODELS = {model.name: model for model in (*_NAMED, *_SMALL)}

# Names that the README of the small models gives to four of them.
ALIASES = {
    "bert-tiny": "uncased_L-2_H-128_A-2",
    "bert-mini": "uncased_L-4_H-256_A-4",
    "bert-small": "uncased_L-4_H-512_A-8",
    "bert-medium": "uncased_L-8_H-512_A-8",
}


# Names of sizes in the paper and in the release.
_SIZES = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": _BASE,
    "large": _LARGE,
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
    matched = _SIZE.fullmatch(name)
    num_heads = None
    if name in _SIZES:
        num_layers, hidden_size = _SIZES[name]
    elif matched:
        num_layers, hidden_size = int(matched[1]), int(matched[2])
        num_heads = int(matched[3]) if matched[3] else None
    else:
        raise ValueError(
            f"Unknown model size {name!r}; expected one of {', '.join(_SIZES)}, or "
            "layers and width as in L-6_H-768, optionally with heads as in "
            "L-6_H-768_A-12."
        )
    if num_heads is None and hidden_size % UNITS_PER_HEAD:
        raise ValueError(
            f"The width of {name} is not a multiple of {UNITS_PER_HEAD}, the number of "
            f"units per head. Add the number of heads, as in {name}_A-2."
        )
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
        known = ", ".join([*(m.name for m in _NAMED), *ALIASES])
        raise ValueError(
            f"Unknown model name {name!r}; expected one of {known}, or a small model "
            "named uncased_L-{2,4,6,8,10,12}_H-{128,256,512,768}_A-{2,4,8,12}."
        )
    return model
