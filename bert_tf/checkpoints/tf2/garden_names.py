"""The Model Garden's variable names, and the release's names for them.

Shape letters: H hidden, N heads, D = H / N, C classes.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.checkpoints import names as checkpoint_names

# Release's name -> the variable's names in all versions of the Model Garden.
_PLACES = {
    "bert/embeddings/word_embeddings": (
        r"word_embeddings/embeddings|masked_lm/embedding_table"
    ),
    "bert/embeddings/position_embeddings": (
        r"position_embedding/embeddings|embedding_postprocessor/position_embeddings"
    ),
    "bert/embeddings/token_type_embeddings": (
        r"type_embeddings/embeddings|embedding_postprocessor/type_embeddings"
    ),
    r"bert/embeddings/LayerNorm/\1": (
        r"(?:embeddings|embedding_postprocessor)/layer_norm/(gamma|beta)"
    ),
    r"bert/pooler/dense/\1": r"pooler_transform/(kernel|bias)",
    r"cls/predictions/transform/dense/\1": (
        r"(?:cls/predictions/transform|masked_lm)/dense/(kernel|bias)"
    ),
    r"cls/predictions/transform/LayerNorm/\1": (
        r"(?:cls/predictions/transform/LayerNorm|masked_lm/layer_norm)/(gamma|beta)"
    ),
    "cls/predictions/output_bias": r"(?:cls/predictions|masked_lm)/output_bias/bias",
    "cls/seq_relationship/output_weights": r"next_sentence/logits/kernel",
    "cls/seq_relationship/output_bias": r"next_sentence/logits/bias",
    "output_weights": r"sentence_prediction/logits/kernel",
    "output_bias": r"sentence_prediction/logits/bias",
}
# The same for the names within a layer.
_BLOCK = r"(?:transformer|encoder)/layer_(\d+)/"
_LAYER_PLACES = {
    r"attention/self/\2/\3": r"self_attention/(query|key|value)/(kernel|bias)",
    r"attention/output/dense/\2": (
        r"(?:self_attention/attention_output|self_attention_output)/(kernel|bias)"
    ),
    r"attention/output/LayerNorm/\2": r"self_attention_layer_norm/(gamma|beta)",
    r"intermediate/dense/\2": r"intermediate/(kernel|bias)",
    r"output/dense/\2": r"output/(kernel|bias)",
    r"output/LayerNorm/\2": r"output_layer_norm/(gamma|beta)",
}
_PATTERNS = {
    re.compile(rf"(?:^|/)(?:{pattern})$"): template
    for template, pattern in (
        *_PLACES.items(),
        *(
            (rf"bert/encoder/layer_\1/{part}", rf"{_BLOCK}(?:{pattern})")
            for part, pattern in _LAYER_PLACES.items()
        ),
    )
}
# The pooler of a head that was trained with its own, beside the encoder's.
_HEAD_POOLER = re.compile(
    r"(?:^|/)(?:next_sentence|sentence_prediction)/pooler_dense/(kernel|bias)$"
)
_HEAD_POOLER_NOTE = (
    "its head has its own pooler, which replaces the encoder's, because the encoder's "
    "was never trained"
)
_POOLER = "bert/pooler/dense"
# Kernels [H, C] of dense layers; [C, H] in the release.
_TRANSPOSED = ("cls/seq_relationship/output_weights", "output_weights")
# Part of a variable's name -> the network with such a variable.
_OTHER_NETWORKS = {
    "embedding_projection": "ALBERT, or another network with factorized embeddings",
    "bottleneck": "MobileBERT",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Named:
    """Which tensor is which weight."""

    keys: dict[str, str]  # Release's name -> tensor in the checkpoint.
    own_names: dict[str, str]  # Release's name -> the variable's own, if it differs.
    unmapped: tuple[str, ...] = ()  # Names of variables without a place.
    transposed: tuple[str, ...] = ()  # Release's names of weights stored as [H, C].
    notes: tuple[str, ...] = ()


def place(variables: Mapping[str, str]) -> Named:
    """Assigns variables to the release's names.

    Args:
        variables: {tensor in the checkpoint: name of the variable}.
    """
    if checkpoint_names.WORD_EMBEDDINGS in variables.values():  # The release's names.
        return Named(keys={name: key for key, name in variables.items()}, own_names={})
    found: dict[str, str] = {}
    head_pooler: dict[str, str] = {}
    unmapped = []
    for key, own_name in sorted(variables.items()):
        pooler = _HEAD_POOLER.search(own_name)
        name = _release_name(own_name)
        if pooler:
            head_pooler[f"{_POOLER}/{pooler[1]}"] = key
        elif name is None:
            unmapped.append(own_name)
        elif name in found:
            raise ValueError(
                f"Two variables are {name}: {found[name]} and {key}; expected one "
                "encoder. Save the encoder alone."
            )
        else:
            found[name] = key
    notes: tuple[str, ...] = ()
    if head_pooler:
        unmapped += [variables[found[name]] for name in head_pooler if name in found]
        found |= head_pooler
        notes = (_HEAD_POOLER_NOTE,)
    return Named(
        keys=found,
        own_names={name: variables[key] for name, key in found.items()},
        unmapped=tuple(sorted(unmapped)),
        transposed=tuple(name for name in _TRANSPOSED if name in found),
        notes=notes,
    )


def check(named: Named, stored: Mapping[str, Sequence[int]], path: str) -> None:
    """Raises a ValueError unless there is a complete encoder with consistent shapes.

    Args:
        named: `Named`.
        stored: {release's name: shape in the checkpoint}.
        path: for the message.
    """
    names = (*named.keys.values(), *named.unmapped)
    for part, network in _OTHER_NETWORKS.items():
        if any(part in name for name in names):
            raise ValueError(f"{path} is not a BERT: it is {network}.")
    # A checkpoint without any layer lacks the first one; the pooler may be missing.
    expected = checkpoint_names.encoder_names(
        max(1, checkpoint_names.num_layers(stored))
    )
    missing = [
        name for name in checkpoint_names.without_pooler(expected) if name not in stored
    ]
    if missing:
        example = min(named.unmapped, default=min(stored, default="no variable"))
        raise ValueError(
            f"{path} has no complete BERT encoder: {missing[0]} is missing (it has, "
            f"for example, {example}); expected a BERT of the Model Garden or TF Hub."
        )
    hidden_size = stored[checkpoint_names.WORD_EMBEDDINGS][-1]
    for name, shape in stored.items():
        if name.endswith("query/kernel") and shape[0] != hidden_size:
            raise ValueError(
                f"{path} is not a BERT: {name} has shape {list(shape)}, but its word "
                f"embeddings have {hidden_size} columns."
            )


def release_shape(
    name: str, stored_shape: Sequence[int], *, is_transposed: bool
) -> tuple[int, ...]:
    """Returns the shape of a stored weight in the release's layout."""
    if is_transposed:
        return tuple(reversed(stored_shape))
    product = math.prod(stored_shape)
    if "/attention/self/" in name:
        rows = stored_shape[:1] if name.endswith("/kernel") else ()
        return (*rows, product // math.prod(rows))
    if name.endswith("/attention/output/dense/kernel"):
        return (product // stored_shape[-1], stored_shape[-1])
    return tuple(stored_shape)


def _release_name(own_name: str) -> str | None:
    """Returns the release's name of a variable, or None if it has none."""
    matches = ((p.search(own_name), template) for p, template in _PATTERNS.items())
    return next((match.expand(to) for match, to in matches if match), None)
