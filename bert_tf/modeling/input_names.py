"""Names of the models' inputs, and the names that other libraries give them.

Shape letters: B batch, S sequence, K sequences in a row.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops
from keras.src.backend.common import symbolic_scope

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


def checked(
    features: Any, known: Iterable[str], model: str
) -> dict[str, numerics.Tensor]:
    """Returns the features of a call under our names, masks and segments as int32.

    A feature that the model does not know is an error: a misspelled `input_mask` would
    otherwise make the model attend to padding.

    Args:
        features: what the model was called with; a tensor alone is `input_ids`. Masks
            and segments may be of any dtype, for example bool.
        known: our names of the sequence features that the model reads. All models
            accept those of `OF_TASKS`.
        model: the name of the model's class, for messages.

    Raises:
        ValueError: a feature is unknown, is given under two names or is missing, or
            `input_ids` are not integers.
    """
    if not isinstance(features, Mapping):
        features = {"input_ids": features}
    columns: dict[str, numerics.Tensor] = {}
    for name, column in features.items():
        prefix = QUERY_PREFIX if str(name).startswith(QUERY_PREFIX) else ""
        suffix = str(name).removeprefix(prefix)
        ours = prefix + ALIASES.get(suffix, suffix)
        if ours in columns:
            raise ValueError(f"{ours} has two names, also {name}; pass it once.")
        if ours not in (*known, *OF_TASKS):
            raise ValueError(
                f"{model} does not know the input {name}; expected some of "
                f"{', '.join(known)}, or the names {', '.join(ALIASES)} of other "
                "libraries."
            )
        is_cast = ours.removeprefix(prefix) in SEQUENCE[1:] or is_building()
        columns[ours] = ops.cast(column, "int32") if is_cast else column
    if "input_ids" not in columns:
        raise ValueError(
            f"{model} needs input_ids, got {', '.join(columns) or 'no features'}."
        )
    for name in columns:
        if name.removeprefix(QUERY_PREFIX) == "input_ids":
            check_integers(name, columns[name])
    return columns


def input_mask_of(features: numerics.Features) -> numerics.Tensor:
    """Returns `input_mask`, int32 [..., S]; all 1 if the features lack it.

    Args:
        features: under our names.
    """
    ones = ops.ones_like(features["input_ids"])
    return ops.cast(features.get("input_mask", ones), "int32")


def check_integers(name: str, column: numerics.Tensor) -> None:
    """Raises a ValueError if ids or labels are not integers.

    Keras rounds floats to the compute dtype, which would change large ids.
    """
    dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(column).dtype)
    if "int" not in dtype and not is_building():
        raise ValueError(f"{name} must be integers, got {dtype}.")


def is_building() -> bool:
    """Returns whether Keras only infers shapes, with floats in place of all inputs."""
    return symbolic_scope.in_symbolic_scope()
