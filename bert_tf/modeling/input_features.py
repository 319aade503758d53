"""The features that models take: their names, and what is checked in every call.

Shape letters: B batch, S sequence, H hidden.
"""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops
from keras.src.backend.common import symbolic_scope

from bert_tf.modeling import numerics

# The features of every sequence, [B, S].
SEQUENCE = ("input_ids", "input_mask", "segment_ids")
# The encoder's features; the last three are for rows that hold several sequences.
ENCODER = (*SEQUENCE, "sequence_ids", "position_ids", "cls_positions")
# Names in Hugging Face's libraries and in KerasHub -> ours.
ALIASES = {
    "attention_mask": "input_mask",
    "padding_mask": "input_mask",
    "token_type_ids": "segment_ids",
    "token_ids": "input_ids",
}
# Hugging Face's name of vectors [B, S, H] in place of those of the words.
EMBEDDINGS = "inputs_embeds"
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
    features: Any, known: tuple[str, ...], *, model: str
) -> dict[str, numerics.Tensor]:
    """Returns the features of a call under our names, masks and segments as int32.

    A feature that the model does not know is an error: a misspelled `input_mask` would
    otherwise make the model attend to padding.

    Args:
        features: what the model was called with; a tensor alone is `input_ids`. Masks
            may be of any dtype: a position counts if it is not 0. `inputs_embeds`,
            float [B, S, H], replaces the vectors of the words.
        known: features that the model reads, besides those of tasks.
        model: name of the model's class, for errors.

    Raises:
        ValueError: a feature is unknown, is given under two names or is missing, or
            `input_ids` are not integers or have one axis.
    """
    if not isinstance(features, Mapping):
        features = {"input_ids": features}
    columns: dict[str, numerics.Tensor] = {}
    for name, column in features.items():
        prefix = QUERY_PREFIX if str(name).startswith(QUERY_PREFIX) else ""
        suffix = str(name).removeprefix(prefix)
        suffix = ALIASES.get(suffix, suffix)
        ours = prefix + suffix
        if ours in columns:
            raise ValueError(f"{ours} has two names, also {name}; pass it once.")
        if ours not in (*known, *OF_TASKS, EMBEDDINGS):
            raise ValueError(
                f"{model} does not know the input {name}; expected some of "
                f"{', '.join(known)}, or the names {', '.join(ALIASES)} of other "
                "libraries."
            )
        if suffix == "input_ids":
            check_integers(ours, column)
        if suffix == "input_mask":
            column = ops.not_equal(column, 0)
        is_cast = suffix in SEQUENCE or (is_building() and ours != EMBEDDINGS)
        columns[ours] = ops.cast(column, "int32") if is_cast else column
    if EMBEDDINGS in columns:
        zeros = ops.zeros_like(columns[EMBEDDINGS][..., 0], "int32")
        columns.setdefault("input_ids", zeros)
    if "input_ids" not in columns:
        raise ValueError(
            f"{model} needs input_ids, got {', '.join(columns) or 'no features'}."
        )
    shape = tuple(columns["input_ids"].shape)
    if len(shape) < 2:
        raise ValueError(
            f"input_ids has the shape {shape}, expected [B, S]; pass a single text as "
            "ids[None, :]."
        )
    return columns


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
