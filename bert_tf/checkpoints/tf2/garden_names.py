"""Names of the Model Garden's variables, and the release's names for them.

Shape letters: H hidden, N heads, D = H / N.
"""

import dataclasses
import math
import re

# What a variable is called, of all versions of the Model Garden; then its path through
# the Python objects, for checkpoints whose names say nothing. `#` is a layer's number.
_EMBEDDINGS = {
    "bert/embeddings/word_embeddings": (
        r"word_embeddings/embeddings",
        r"_embedding_layer/embeddings",
        r"masked_lm/embedding_table",
        r"layer_with_weights-0/embeddings",
    ),
    "bert/embeddings/position_embeddings": (
        r"position_embedding/(?:position_)?embeddings",
        r"embedding_postprocessor/position_embeddings",
        r"_position_embedding_layer/(?:_position_)?embeddings",
        r"layer_with_weights-1/embeddings",
    ),
    "bert/embeddings/token_type_embeddings": (
        r"type_embeddings/embeddings",
        r"embedding_postprocessor/type_embeddings",
        r"_type_embedding_layer/embeddings",
        r"layer_with_weights-2/embeddings",
    ),
    r"bert/embeddings/LayerNorm/\1": (
        r"embeddings/layer_norm/(gamma|beta)",
        r"embedding_postprocessor/layer_norm/(gamma|beta)",
        r"_embedding_norm_layer/(gamma|beta)",
        r"layer_with_weights-3/(gamma|beta)",
    ),
}
_BLOCK = r"(?:(?:transformer|encoder)/layer_|_transformer_layers/)(\d+)/"
_LAYER = {
    r"attention/self/\2/\3": (
        r"self_attention/(query|key|value)/(kernel|bias)",
        r"_attention_layer/_(query|key|value)_dense/(kernel|bias)",
    ),
    r"attention/output/dense/\2": (
        r"self_attention/attention_output/(kernel|bias)",
        r"self_attention_output/(kernel|bias)",
        r"_attention_layer/_output_dense/(kernel|bias)",
    ),
    r"attention/output/LayerNorm/\2": (
        r"self_attention_layer_norm/(gamma|beta)",
        r"_attention_layer_norm/(gamma|beta)",
    ),
    r"intermediate/dense/\2": (
        r"intermediate/(kernel|bias)",
        r"_intermediate_dense/(kernel|bias)",
    ),
    r"output/dense/\2": (r"output/(kernel|bias)", r"_output_dense/(kernel|bias)"),
    r"output/LayerNorm/\2": (
        r"output_layer_norm/(gamma|beta)",
        r"_output_layer_norm/(gamma|beta)",
    ),
}
_HEADS = {
    r"bert/pooler/dense/\1": (
        r"pooler_transform/(kernel|bias)",
        r"_pooler_layer/(kernel|bias)",
    ),
    r"cls/predictions/transform/dense/\1": (
        r"cls/predictions/transform/dense/(kernel|bias)",
        r"masked_lm/dense/(kernel|bias)",
    ),
    r"cls/predictions/transform/LayerNorm/\1": (
        r"cls/predictions/transform/LayerNorm/(gamma|beta)",
        r"masked_lm/layer_norm/(gamma|beta)",
    ),
    "cls/predictions/output_bias": (
        r"cls/predictions/output_bias/bias",
        r"masked_lm/output_bias/bias",
    ),
    "cls/seq_relationship/output_weights": (r"next_sentence/logits/kernel",),
    "cls/seq_relationship/output_bias": (r"next_sentence/logits/bias",),
    "output_weights": (r"sentence_prediction/logits/kernel",),
    "output_bias": (r"sentence_prediction/logits/bias",),
}
# A head that was trained with a pooler of its own, beside the encoder's.
_HEAD_POOLER = re.compile(
    r"(?:^|/)(?:next_sentence|sentence_prediction)/pooler_dense/(kernel|bias)$"
)
_HEAD_POOLER_NOTE = (
    "its head has a pooler of its own, which takes the place of the encoder's, as that "
    "one was never trained"
)
_POOLER = "bert/pooler/dense"
# Kernels [H, C] of layers, which the release has as [C, H].
_TRANSPOSED = ("cls/seq_relationship/output_weights", "output_weights")
_WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
_NO_WEIGHTS = ("do_lower_case",)
# Part of a variable's name -> the network that has such a variable.
_OTHER_NETWORKS = {
    "embedding_projection": "ALBERT, or another network with factorized embeddings",
    "bottleneck": "MobileBERT",
}
_FUNCTIONAL_BLOCK = re.compile(r"layer_with_weights-(\d+)(?=/_attention_layer/)")


def _compiled():
    for template, patterns in (*_EMBEDDINGS.items(), *_HEADS.items()):
        for pattern in patterns:
            yield re.compile(rf"(?:^|/)(?:{pattern})$"), template
    for part, patterns in _LAYER.items():
        for pattern in patterns:
            yield (
                re.compile(rf"(?:^|/){_BLOCK}(?:{pattern})$"),
                rf"bert/encoder/layer_\1/{part}",
            )


_PATTERNS = tuple(_compiled())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Named:
    """Which tensor is which weight."""

    keys: dict[str, str]  # Release's name -> tensor in the checkpoint.
    own_names: dict[str, str]  # Release's name -> the variable's own, if another.
    unmapped: tuple[str, ...] = ()  # Names of variables without a place.
    transposed: tuple[str, ...] = ()  # Release's names of those stored so.
    notes: tuple[str, ...] = ()  # What a reader should know.


def place(variables):
    """Returns the `Named` of some variables: by name, else by path.

    Args:
        variables: {tensor in the checkpoint: names of the variable, best first}.

    Raises:
        ValueError: two variables are the same weight.
    """
    variables = {
        key: names for key, names in variables.items() if not {*names} & {*_NO_WEIGHTS}
    }
    own = {key: names[0] for key, names in variables.items() if names}
    if _WORD_EMBEDDINGS in own.values():  # The release's names as they are.
        return Named(keys={name: key for key, name in own.items()}, own_names={})
    blocks = _functional_blocks(variables.values())
    found, unmapped, head_pooler = {}, [], {}
    for key, names in sorted(variables.items()):
        pooler = next(filter(None, map(_HEAD_POOLER.search, names)), None)
        name = _release_name(names, blocks)
        if pooler:
            head_pooler[f"{_POOLER}/{pooler[1]}"] = key
        elif name is None:
            unmapped.append(own.get(key, key))
        elif name in found:
            raise ValueError(
                f"Two variables are {name}: {found[name]} and {key}; expected one "
                "encoder. Save the encoder alone."
            )
        else:
            found[name] = key
    notes = ()
    if head_pooler:
        unmapped += [own[found[name]] for name in head_pooler if name in found]
        found |= head_pooler
        notes = (_HEAD_POOLER_NOTE,)
    return Named(
        keys=found,
        own_names={name: own.get(key, key) for name, key in found.items()},
        unmapped=tuple(sorted(unmapped)),
        transposed=tuple(name for name in _TRANSPOSED if name in found),
        notes=notes,
    )


def check(named, shapes, path):
    """Checks that a BERT's whole encoder is there, with shapes that fit.

    Args:
        named: `Named`.
        shapes: {tensor in the checkpoint: shape}.
        path: for the message.

    Raises:
        ValueError: it is not.
    """
    names = (*named.keys.values(), *named.unmapped)
    for part, network in _OTHER_NETWORKS.items():
        if any(part in name for name in names):
            raise ValueError(f"{path} is no BERT: it is {network}.")
    stored = {name: shapes[key] for name, key in named.keys.items()}
    num_layers_found = num_layers(stored)
    missing = [name for name in _needed(num_layers_found) if name not in stored]
    if missing or not num_layers_found:
        example = min(named.unmapped, default=min(stored, default="no variable"))
        raise ValueError(
            f"{path} holds no whole BERT encoder: {missing[0]} is not in it (but, for "
            f"example, {example}); expected a BERT of the Model Garden or TF Hub."
        )
    hidden_size = stored[_WORD_EMBEDDINGS][-1]
    for name, shape in stored.items():
        if name.endswith("query/kernel") and shape[0] != hidden_size:
            raise ValueError(
                f"{path} is no BERT: {name} has shape {list(shape)}, but its word "
                f"embeddings have {hidden_size} columns."
            )


def num_layers(shapes):
    """Returns L, one more than the highest number of a layer; 0 without any."""
    matches = (re.match(r"bert/encoder/layer_(\d+)/", name) for name in shapes)
    return max((int(match[1]) + 1 for match in matches if match), default=0)


def num_heads(stored_shapes):
    """Returns N of query kernels [H, N, D], or None of [H, H]."""
    shape = stored_shapes["bert/encoder/layer_0/attention/self/query/kernel"]
    return shape[1] if len(shape) == 3 else None


def release_shape(name, stored_shape, *, is_transposed):
    """Returns the shape that a stored weight has in the release's layout."""
    if is_transposed:
        return tuple(reversed(stored_shape))
    product = math.prod(stored_shape)
    if "/attention/self/" in name:
        rows = stored_shape[:1] if name.endswith("/kernel") else ()
        return (*rows, product // math.prod(rows))
    if name.endswith("/attention/output/dense/kernel"):
        return (product // stored_shape[-1], stored_shape[-1])
    return tuple(stored_shape)


def _release_name(names, blocks):
    """Returns the release's name for a variable of some names, or None."""
    for name in names:
        for part, meant in blocks.items():
            name = name.replace(part, meant)
        for pattern, template in _PATTERNS:
            match = pattern.search(name)
            if match:
                return match.expand(template)
    return None


def _functional_blocks(names_of_all):
    """Returns {part of a path in a functional model: the same in BertEncoderV2}.

    A functional model numbers its layers with weights: four of the embeddings, the
    blocks, the pooler.
    """
    found = {
        int(number)
        for names in names_of_all
        for name in names
        for number in _FUNCTIONAL_BLOCK.findall(name)
    }
    blocks = {
        f"layer_with_weights-{number}/": f"_transformer_layers/{rank}/"
        for rank, number in enumerate(sorted(found))
    }
    if found:
        blocks[f"layer_with_weights-{max(found) + 1}/"] = "_pooler_layer/"
    return blocks


def _needed(num_layers):
    """Returns the names that every encoder of some layers has; the pooler may lack."""
    yield from (_WORD_EMBEDDINGS, "bert/embeddings/position_embeddings")
    yield "bert/embeddings/token_type_embeddings"
    layer_parts = ("attention/output/LayerNorm", "output/LayerNorm")
    dense_parts = ("attention/self/query", "attention/self/key", "attention/self/value")
    dense_parts += ("attention/output/dense", "intermediate/dense", "output/dense")
    scopes = [f"bert/encoder/layer_{number}" for number in range(max(num_layers, 1))]
    norms = [f"{scope}/{part}" for scope in scopes for part in layer_parts]
    for norm in ("bert/embeddings/LayerNorm", *norms):
        yield from (f"{norm}/gamma", f"{norm}/beta")
    for scope in scopes:
        for part in dense_parts:
            yield from (f"{scope}/{part}/kernel", f"{scope}/{part}/bias")
