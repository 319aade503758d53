"""KerasHub's BERT and its variables under the release's names.

Shape letters: H hidden, C classes.
"""

from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.modeling import config as config_module

EXTRA = "keras-hub"
# What KerasHub's BERT computes, regardless of its configuration.
ACTIVATION = "gelu"
EPSILON = 1e-12
# The one head that both packages have, and KerasHub's class for it.
HEAD_KIND = "classification"
CLASSIFIER = "BertTextClassifier"
# Names of that class in all versions.
CLASSIFIERS = (CLASSIFIER, "BertClassifier")

_PLACES = {
    "bert/embeddings/word_embeddings": "token_embedding/embeddings",
    "bert/embeddings/position_embeddings": "position_embedding/embeddings",
    "bert/embeddings/token_type_embeddings": "segment_embedding/embeddings",
    "bert/embeddings/LayerNorm/gamma": "embeddings_layer_norm/gamma",
    "bert/embeddings/LayerNorm/beta": "embeddings_layer_norm/beta",
    "bert/pooler/dense/kernel": "pooled_dense/kernel",
    "bert/pooler/dense/bias": "pooled_dense/bias",
}
_LAYER_PARTS = {
    "attention/self/query": "self_attention_layer/query",
    "attention/self/key": "self_attention_layer/key",
    "attention/self/value": "self_attention_layer/value",
    "attention/output/dense": "self_attention_layer/attention_output",
    "intermediate/dense": "feedforward_intermediate_dense",
    "output/dense": "feedforward_output_dense",
    "attention/output/LayerNorm": "self_attention_layer_norm",
    "output/LayerNorm": "feedforward_layer_norm",
}
_CLASSIFIER_PLACES = {
    checkpoint_heads.OUTPUT_WEIGHTS: "logits/kernel",
    checkpoint_heads.OUTPUT_BIAS: "logits/bias",
}


def library() -> Any:
    """Returns the package keras_hub.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import keras_hub
    except ModuleNotFoundError as error:
        raise ImportError(
            f"KerasHub presets need {error.name}, which is not installed; install it "
            f"with pip install 'bert_tf[{EXTRA}]'."
        ) from error
    return keras_hub


def places(num_layers: int, kind: str) -> dict[str, str]:
    """Returns {release's name: KerasHub's name} of a model.

    Args:
        num_layers: number of encoder layers.
        kind: kind of head; for one that KerasHub lacks, only the encoder's names.
    """
    found = dict(_PLACES)
    for number in range(num_layers):
        ours, theirs = f"bert/encoder/layer_{number}", f"transformer_layer_{number}"
        for part, place in _LAYER_PARTS.items():
            ends = ("gamma", "beta") if part.endswith("Norm") else ("kernel", "bias")
            found |= {f"{ours}/{part}/{e}": f"{theirs}/{place}/{e}" for e in ends}
    return found | (_CLASSIFIER_PLACES if kind == HEAD_KIND else {})


def shapes(
    config: config_module.BertConfig, head: checkpoint_heads.Head
) -> dict[str, checkpoint_names.Shape]:
    """Returns {release's name: shape in the release's layout} of a preset's weights."""
    return checkpoint_names.encoder_shapes(config) | checkpoint_heads.head_shapes(
        config, head.kind, head.num_labels
    )


def create(
    config: config_module.BertConfig,
    head: checkpoint_heads.Head,
    *,
    tokenizer: Any = None,
) -> Any:
    """Returns KerasHub's model of a configuration and a head, newly initialized.

    Args:
        config: BertConfig; its activation and epsilon have no place in KerasHub.
        head: `Head` of the kind "encoder" or "classification".
        tokenizer: KerasHub's tokenizer for the model's preprocessor, or None.

    Raises:
        ImportError: KerasHub is not installed.
    """
    models = library().models
    backbone = models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        max_sequence_length=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
        dtype="float32",
    )
    if head.kind == "encoder":
        return backbone
    task = getattr(models, CLASSIFIER)
    arguments = {"num_classes": head.num_labels}
    if tokenizer is not None:
        arguments["preprocessor"] = task.preprocessor_cls(
            tokenizer, sequence_length=config.max_position_embeddings
        )
    return task(backbone, **arguments)


def variables(
    model: Any, config: config_module.BertConfig, head: checkpoint_heads.Head
) -> dict[str, Any]:
    """Returns {release's name: KerasHub's variable} of a model that `create` made.

    Raises:
        ValueError: this version of KerasHub uses other variable names.
    """
    own = {variable.path: variable for variable in model.weights}
    found = {}
    for name, path in places(config.num_hidden_layers, head.kind).items():
        if path not in own:
            raise ValueError(
                f"keras-hub {library().__version__} has no variable {path}; install "
                "keras-hub 0.32, which has it."
            )
        found[name] = own[path]
    return found


def to_release(name: str, variable: Any, shape: checkpoint_names.Shape) -> np.ndarray:
    """Returns a variable's value, float32, in the release's layout of a shape."""
    array = np.asarray(variable.numpy(), np.float32)
    return (array.T if _is_transposed(name) else array).reshape(shape)


def assign(name: str, variable: Any, array: np.ndarray) -> None:
    """Assigns a value in the release's layout to a variable."""
    array = array.T if _is_transposed(name) else array
    variable.assign(np.reshape(array, tuple(variable.shape)))


def _is_transposed(name: str) -> bool:
    # [C, H] in the release, the kernel [H, C] of a dense layer in KerasHub.
    return name == checkpoint_heads.OUTPUT_WEIGHTS
