"""Names and layouts of a BERT's weights in Hugging Face folders.

The names follow from the release's by rule, except for two output layers. Dense kernels
are transposed, [out, in]; the heads' output weights are [classes, H] in both.
"""

import re
from collections.abc import Iterable
from collections.abc import Sequence

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names

ENCODER_PREFIX = "bert."
# Starts of the encoder's names; the file of a bare BertModel leaves the prefix out.
_ENCODER_PARTS = ("embeddings.", "encoder.", "pooler.")
# Embedding tables, whose release names have no last part.
_TABLE = re.compile(r"_embeddings$")
_LAYER = re.compile(r"/layer_(\d+)/")
_LAST_PARTS = {
    "kernel": "weight",
    "gamma": "weight",
    "beta": "bias",
    "output_weights": "weight",
    "output_bias": "bias",
}
# Scopes of output layers that do not follow the rule.
_OUTPUT_SCOPES = {"": "classifier", "cls/squad": "qa_outputs"}
# Constant ranges that old folders store with the weights.
_BUFFERS = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")
# Prefix of all weight names in a wrapped PyTorch model -> the wrapper.
_WRAPPERS = {
    "module.": "torch.nn.DataParallel",
    "_orig_mod.": "torch.compile",
}
# Aliases of weights: the masked-word output table is the word embedding table.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def hugging_face_name(name: str) -> str:
    """Returns the name of a weight in Hugging Face folders, with the prefix `bert.`.

    Args:
        name: the release's name.

    Example:
        hugging_face_name("bert/encoder/layer_0/output/LayerNorm/gamma")
        # "bert.encoder.layer.0.output.LayerNorm.weight"
    """
    if _TABLE.search(name):
        name = f"{name}/weight"
    scope, _, last = _LAYER.sub(r"/layer/\1/", name).rpartition("/")
    scope = _OUTPUT_SCOPES.get(scope, scope)
    return f"{scope}/{_LAST_PARTS.get(last, last)}".replace("/", ".")


def normal_name(name: str) -> str:
    """Returns a weight's name in any version of transformers as it is written today.

    Until 2019 the weights of LayerNorm were called gamma and beta. The file of a
    `BertModel` leaves out the prefix `bert.`.
    """
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
    return f"{ENCODER_PREFIX}{name}" if name.startswith(_ENCODER_PARTS) else name


def wrapper_prefix(names: Iterable[str]) -> tuple[str, str | None]:
    """Returns the prefix that PyTorch wrappers added to all names, and a note on it.

    Raises:
        ValueError: only some of the names have such a prefix.
    """
    names, found, wrappers = list(names), "", []
    while True:
        rest = [name[len(found) :] for name in names]
        parts = [part for part in _WRAPPERS if any(n.startswith(part) for n in rest)]
        if not parts:
            break
        strangers = [name for name in rest if not name.startswith(parts[0])]
        if strangers:
            raise ValueError(
                f"some names of weights start with {parts[0]}, which "
                f"{_WRAPPERS[parts[0]]} adds, and others do not, such as "
                f"{strangers[0]}; save the model without the wrapper."
            )
        found += parts[0]
        wrappers.append(_WRAPPERS[parts[0]])
    if not found:
        return "", None
    return found, (
        f"The weights were saved from {' of '.join(wrappers)}: their names start with "
        f"{found}, which is left out."
    )


def is_buffer(name: str) -> bool:
    """Returns whether a tensor is a constant and not a weight."""
    return _BUFFERS.search(name) is not None


def is_transposed(name: str) -> bool:
    """Returns whether Hugging Face stores a weight of the release transposed."""
    return name.endswith("/kernel")


def transposed_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Converts a shape between the release's layout and Hugging Face's, either way.

    Args:
        name: the release's name of the weight.
        shape: the shape in one of the layouts.
    """
    return tuple(reversed(shape)) if is_transposed(name) else tuple(shape)


def known_names(num_layers: int) -> list[str]:
    """Returns the release's names of an encoder's weights and of all heads'."""
    heads = [name for row in checkpoint_heads.HEADS.values() for name in row.weights]
    return list(dict.fromkeys([*checkpoint_names.encoder_names(num_layers), *heads]))
