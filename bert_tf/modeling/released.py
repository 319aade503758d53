"""The models that were released in 2018 to 2020: their sizes and their casing."""

import dataclasses
import re

# Entries in the released vocab.txt files.
_UNCASED_VOCAB_SIZE = 30522
_CASED_VOCAB_SIZE = 28996
_MULTILINGUAL_CASED_VOCAB_SIZE = 119547
_MULTILINGUAL_UNCASED_VOCAB_SIZE = 105879
_CHINESE_VOCAB_SIZE = 21128


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedModel:
    """Size and casing of one released model.

    Every released model has heads of 64 units, an inner layer four times as wide
    as the hidden one, 512 positions and the tanh form of GELU.
    """

    name: str  # The name users know, or the name of its folder.
    num_layers: int
    hidden_size: int
    vocab_size: int
    do_lower_case: bool


def _model(name, size, vocab_size, *, do_lower_case):
    num_layers, hidden_size = size
    return ReleasedModel(
        name=name,
        num_layers=num_layers,
        hidden_size=hidden_size,
        vocab_size=vocab_size,
        do_lower_case=do_lower_case,
    )


_BASE = (12, 768)
_LARGE = (24, 1024)

_NAMED = (
    _model("bert-base-uncased", _BASE, _UNCASED_VOCAB_SIZE, do_lower_case=True),
    _model("bert-large-uncased", _LARGE, _UNCASED_VOCAB_SIZE, do_lower_case=True),
    _model("bert-base-cased", _BASE, _CASED_VOCAB_SIZE, do_lower_case=False),
    _model("bert-large-cased", _LARGE, _CASED_VOCAB_SIZE, do_lower_case=False),
    _model(
        "bert-large-uncased-whole-word-masking",
        _LARGE,
        _UNCASED_VOCAB_SIZE,
        do_lower_case=True,
    ),
    _model(
        "bert-large-cased-whole-word-masking",
        _LARGE,
        _CASED_VOCAB_SIZE,
        do_lower_case=False,
    ),
    _model(
        "bert-base-multilingual-cased",
        _BASE,
        _MULTILINGUAL_CASED_VOCAB_SIZE,
        do_lower_case=False,
    ),
    _model(
        "bert-base-multilingual-uncased",
        _BASE,
        _MULTILINGUAL_UNCASED_VOCAB_SIZE,
        do_lower_case=True,
    ),
    # The release lower-cases with the Chinese vocabulary.
    _model("bert-base-chinese", _BASE, _CHINESE_VOCAB_SIZE, do_lower_case=True),
)

_SMALL = tuple(
    _model(
        f"uncased_L-{num_layers}_H-{hidden_size}_A-{hidden_size // 64}",
        (num_layers, hidden_size),
        _UNCASED_VOCAB_SIZE,
        do_lower_case=True,
    )
    for num_layers in (2, 4, 6, 8, 10, 12)
    for hidden_size in (128, 256, 512, 768)
)

# Name -> model, for all 33.
MODELS = {model.name: model for model in (*_NAMED, *_SMALL)}

# The names that the README of the small models gives four of them.
ALIASES = {
    "bert-tiny": "uncased_L-2_H-128_A-2",
    "bert-mini": "uncased_L-4_H-256_A-4",
    "bert-small": "uncased_L-4_H-512_A-8",
    "bert-medium": "uncased_L-8_H-512_A-8",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Size:
    """Layers, width and heads of a model, without a vocabulary."""

    num_layers: int  # L.
    hidden_size: int  # H.
    num_heads: int  # N.


# The names that paper and release give some sizes.
_SIZES = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": _BASE,
    "large": _LARGE,
}
_SIZE = re.compile(r"L-([1-9]\d*)_H-([1-9]\d*)(?:_A-([1-9]\d*))?")
_UNITS_OF_A_HEAD = 64


def size(name):
    """Returns the `Size` that is called `name`.

    Args:
        name: "tiny", "mini", "small", "medium", "base", "large", or layers, width and
            heads as in "L-6_H-768_A-12"; without heads there is one for 64 units.

    Raises:
        ValueError: it is no such name.

    Source: Table 6 of the paper; the README of the small models.
    """
    matched = _SIZE.fullmatch(name)
    if name in _SIZES:
        num_layers, hidden_size, num_heads = *_SIZES[name], None
    elif matched:
        num_layers, hidden_size = int(matched[1]), int(matched[2])
        num_heads = matched[3] and int(matched[3])
    else:
        raise ValueError(
            f"Unknown model size {name!r}; expected one of {', '.join(_SIZES)}, or "
            "layers and width as in L-6_H-768, heads too as in L-6_H-768_A-12."
        )
    if num_heads is None and hidden_size % _UNITS_OF_A_HEAD:
        raise ValueError(
            f"The width of {name} is no multiple of {_UNITS_OF_A_HEAD}, the units of "
            f"a head; give the number of heads too, as in {name}_A-2."
        )
    return Size(
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=num_heads or hidden_size // _UNITS_OF_A_HEAD,
    )


def find(name):
    """Returns the `ReleasedModel` called `name`.

    Raises:
        ValueError: no released model has this name.
    """
    model = MODELS.get(ALIASES.get(name, name))
    if model is None:
        known = ", ".join([*(m.name for m in _NAMED), *ALIASES])
        raise ValueError(
            f"Unknown model name {name!r}. Known are {known}, and the small ones as "
            "uncased_L-{2,4,6,8,10,12}_H-{128,256,512,768}_A-{2,4,8,12}."
        )
    return model
