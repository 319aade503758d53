"""Names of the models' inputs, and the names that other libraries give them.

Shape letters: B batch, S sequence, K sequences in a row.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.modeling import numerics

# The features of every sequence, [B, S].
SEQUENCE = ("input_ids", "input_mask", "segment_ids")
# Further features of the encoder, for rows that hold several sequences.
PACKED_ROWS = ("sequence_ids", "position_ids", "cls_positions")
ENCODER = (*SEQUENCE, *PACKED_ROWS)
# Names in Hugging Face's libraries and in KerasHub -> ours.
ALIASES = {
    "attention_mask": "input_mask",
    "padding_mask": "input_mask",
    "token_type_ids": "segment_ids",
    "token_ids": "input_ids",
}
# The queries of a retrieval batch have the same names with this prefix.
QUERY_PREFIX = "query_"
# Features that losses, metrics and heads read. Every model accepts all of them,
# because the same records serve several models: pretraining records can also be given
# to the left-to-right model or to the encoder alone.
OF_TASKS = (
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "next_sentence_labels",
    "label_ids",
    "label_indicators",
    "label_weights",
    "label_values",
    "teacher_logits",
    "start_positions",
    "end_positions",
    "tag_ids",
    "passage_ids",
    "positive_ids",
    "example_weights",
    "is_real_example",
)
# Those that are not integers.
FLOATS = (
    "masked_lm_weights",
    "label_weights",
    "label_values",
    "teacher_logits",
    "example_weights",
    "is_real_example",
)


def renamed(features: Mapping[str, Any]) -> dict[str, Any]:
    """Returns features under our names; aliases are replaced.

    Raises:
        ValueError: the features are not a dict, or a feature has two names.
    """
    if not isinstance(features, Mapping):
        raise ValueError(
            f"Expected a dict of features such as {{'input_ids': ...}}, got "
            f"{type(features).__name__}."
        )
    names: dict[str, str] = {}
    for given in features:
        name = _without_alias(given)
        if name in names:
            raise ValueError(
                f"{names[name]} and {given} are two names of the input {name}; pass "
                "one of them."
            )
        names[name] = given
    return {name: features[given] for name, given in names.items()}


def checked(
    features: Mapping[str, Any], known: Iterable[str], model: str
) -> dict[str, numerics.Tensor]:
    """Returns the features of a call under our names, masks and segments as int32.

    A feature that the model does not know is an error: a misspelled `input_mask` would
    otherwise make the model attend to padding.

    Args:
        features: what the model was called with. Masks and segments may be of any
            dtype, for example bool.
        known: our names of the sequence features that the model reads. All models
            accept those of `OF_TASKS`.
        model: the name of the model's class, for messages.

    Raises:
        ValueError: a feature is unknown, is given under two names or is missing, or
            `input_ids` are not integers.
    """
    features = renamed(features)
    known = tuple(known)
    unknown = [str(name) for name in features if name not in (*known, *OF_TASKS)]
    if unknown:
        aliases = [alias for alias, name in ALIASES.items() if name in known]
        raise ValueError(
            f"{model} does not know the input {', '.join(sorted(unknown))}; expected "
            f"some of {', '.join(known)}, or the names {', '.join(aliases)} of other "
            "libraries."
        )
    if "input_ids" not in features:
        raise ValueError(
            f"{model} needs input_ids, got {', '.join(features) or 'no features'}."
        )
    for name in features:
        own = name.removeprefix(QUERY_PREFIX)
        if own == "input_ids":
            _check_integers(name, features[name])
        elif own in SEQUENCE:
            features[name] = ops.cast(features[name], "int32")
    return features


def input_mask_of(features: numerics.Features) -> numerics.Tensor:
    """Returns `input_mask`, int32 [..., S]; all 1 if the features lack it."""
    features = renamed(features)
    input_mask = features.get("input_mask")
    if input_mask is None:
        input_mask = ops.ones_like(features["input_ids"])
    return ops.cast(input_mask, "int32")


def _without_alias(name: Any) -> Any:
    if not isinstance(name, str):
        return name
    own = name.removeprefix(QUERY_PREFIX)
    prefix = name[: len(name) - len(own)]
    return f"{prefix}{ALIASES.get(own, own)}"


def _check_integers(name, ids):
    # Keras rounds floats to the compute dtype, which would change large ids.
    dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(ids).dtype)
    if "int" not in dtype:
        raise ValueError(f"{name} must be integers, got {dtype}.")
