"""The weights of a BERT in the release's layout: names, shapes, a model's variables.

The release's names are the common language of all formats: every reader translates into
them and every writer out of them. The heads' weights are in `heads.HEADS`.

Shape letters: V vocabulary, P positions, T segment types, H hidden, I intermediate.
"""

import re
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module

Shape = tuple[int, ...]

# First part of every encoder variable's name, in all of the release's models.
ENCODER_SCOPE = "bert"
WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
# Start of the pooler's names. Heads that do not use the pooler may come without one.
POOLER = "bert/pooler/"
# Appended to a weight's name by the release's optimizer, and by LAMB.
SLOTS = ("adam_m", "adam_v", "lamb_m", "lamb_v")
GLOBAL_STEP = "global_step"
# Seconds used by a run with a time budget.
TRAIN_SECONDS = "train_seconds"
# Loss scaling of a float16 run: the factor, and the steps since it last changed.
LOSS_SCALE = "loss_scale"
LOSS_SCALE_STEPS = "loss_scale_steps"
_COUNTERS = (GLOBAL_STEP, TRAIN_SECONDS, LOSS_SCALE, LOSS_SCALE_STEPS)

_EMBEDDINGS = {
    WORD_EMBEDDINGS: "VH",
    "bert/embeddings/token_type_embeddings": "TH",
    "bert/embeddings/position_embeddings": "PH",
    "bert/embeddings/LayerNorm/gamma": "H",
    "bert/embeddings/LayerNorm/beta": "H",
}
# Parts of a layer -> shape of the kernel; "": a layer normalization.
_LAYER = {
    "attention/self/query": "HH",
    "attention/self/key": "HH",
    "attention/self/value": "HH",
    "attention/output/dense": "HH",
    "attention/output/LayerNorm": "",
    "intermediate/dense": "HI",
    "output/dense": "IH",
    "output/LayerNorm": "",
}
_LAYER_NUMBER = re.compile(r"bert/encoder/layer_(\d+)/")


def encoder_names(num_layers: int) -> list[str]:
    """Returns the names of an encoder's weights, the pooler's last."""
    return [name for name, _ in _encoder(num_layers)]


def encoder_shapes(config: config_module.BertConfig) -> dict[str, Shape]:
    """Returns {name: shape} of an encoder's weights, the pooler's last."""
    letters = sizes(config)
    return {
        name: tuple(letters[letter] for letter in shape)
        for name, shape in _encoder(config.num_hidden_layers)
    }


def sizes(config: config_module.BertConfig) -> dict[str, int]:
    """Returns {shape letter: size} of a configuration."""
    return {
        "V": config.vocab_size,
        "P": config.max_position_embeddings,
        "T": config.type_vocab_size,
        "H": config.hidden_size,
        "I": config.intermediate_size,
    }


def num_layers(names: Iterable[str]) -> int:
    """Returns one more than the highest layer number in some names; 0 without any."""
    matches = map(_LAYER_NUMBER.match, names)
    return max((int(match[1]) + 1 for match in matches if match), default=0)


def without_pooler(names: Iterable[str]) -> list[str]:
    """Returns the names that are not the pooler's."""
    return [name for name in names if not name.startswith(POOLER)]


def is_of_optimizer(name: str) -> bool:
    """Returns whether a tensor is an optimizer slot or a counter, not a weight."""
    return name in _COUNTERS or name.rpartition("/")[2] in SLOTS


def checkpoint_variables(model: Any) -> dict[str, Any]:
    """Returns {checkpoint name: variable} of all weights; builds the model first.

    A variable's name in a checkpoint is its path without the model's name, such as
    "bert/encoder/layer_0/attention/self/query/kernel". A bare `BertModel` is an
    encoder: regardless of its name, it becomes "bert".
    """
    if not model.built:
        model.build()
    scope = f"{ENCODER_SCOPE}/" if isinstance(model, bert.BertModel) else ""
    return {
        f"{scope}{variable.path.removeprefix(f'{model.path}/')}": variable
        for variable in model.weights
    }


def _encoder(num_layers: int) -> Iterator[tuple[str, str]]:
    yield from _EMBEDDINGS.items()
    for number in range(num_layers):
        for part, shape in _LAYER.items():
            scope = f"bert/encoder/layer_{number}/{part}"
            if shape:
                yield from {f"{scope}/kernel": shape, f"{scope}/bias": shape[1]}.items()
            else:
                yield from {f"{scope}/gamma": "H", f"{scope}/beta": "H"}.items()
    yield f"{POOLER}dense/kernel", "HH"
    yield f"{POOLER}dense/bias", "H"
