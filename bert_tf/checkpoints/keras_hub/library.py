"""KerasHub's BERT, its variables by the release's names; the only user of keras_hub.

Shape letters: H hidden, N heads, D = H / N, I intermediate, V vocabulary, C classes.
"""

import numpy as np

EXTRA = "keras-hub"
# What KerasHub's BERT computes, whatever its configuration says.
ENCODER_ACTIVATION = "gelu"
HEAD_ACTIVATION = "gelu_erf"
ENCODER_EPSILON = 1e-12
# `MaskedLMHead`'s default, which `BertMaskedLM` leaves as it is.
HEAD_EPSILON = 1e-5
# Kind of head -> KerasHub's class for the model with it.
TASKS = {"masked_lm": "BertMaskedLM", "classification": "BertTextClassifier"}

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
_HEAD_PLACES = {
    "masked_lm": {
        "cls/predictions/transform/dense/kernel": "mlm_head/intermediate_dense/kernel",
        "cls/predictions/transform/dense/bias": "mlm_head/intermediate_dense/bias",
        "cls/predictions/transform/LayerNorm/gamma": (
            "mlm_head/intermediate_layer_norm/gamma"
        ),
        "cls/predictions/transform/LayerNorm/beta": (
            "mlm_head/intermediate_layer_norm/beta"
        ),
        "cls/predictions/output_bias": "mlm_head/output_bias",
    },
    "classification": {"output_weights": "logits/kernel", "output_bias": "logits/bias"},
}
# The release's [C, H] is a dense layer's kernel [H, C] there.
_TRANSPOSED = "output_weights"


def library():
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


def places(num_layers, kind):
    """Returns {release's name: KerasHub's} of a model of some layers and a head.

    Args:
        num_layers: int, L.
        kind: of the head; one without a place in KerasHub gives the encoder's alone.
    """
    found = dict(_PLACES)
    for number in range(num_layers):
        ours, theirs = f"bert/encoder/layer_{number}", f"transformer_layer_{number}"
        for part, place in _LAYER_PARTS.items():
            ends = ("gamma", "beta") if part.endswith("Norm") else ("kernel", "bias")
            found |= {f"{ours}/{part}/{e}": f"{theirs}/{place}/{e}" for e in ends}
    return found | _HEAD_PLACES.get(kind, {})


def shapes(config, head):
    """Returns {release's name: shape in its layout} of what a preset holds.

    Args:
        config: BertConfig.
        head: `Head`, of a kind that KerasHub has.
    """
    h, i, v = config.hidden_size, config.intermediate_size, config.vocab_size
    by_end = {
        "word_embeddings": (v, h),
        "position_embeddings": (config.max_position_embeddings, h),
        "token_type_embeddings": (config.type_vocab_size, h),
        "intermediate/dense/kernel": (h, i),
        "intermediate/dense/bias": (i,),
        "attention/output/dense/kernel": (h, h),
        "output/dense/kernel": (i, h),
        "kernel": (h, h),
        "cls/predictions/output_bias": (v,),
        "output_weights": (head.num_labels, h),
        "output_bias": (head.num_labels,),
    }
    return {
        name: next((s for end, s in by_end.items() if name.endswith(end)), (h,))
        for name in places(config.num_hidden_layers, head.kind)
    }


def create(config, head, *, tokenizer=None):
    """Returns KerasHub's model of a configuration and a head, newly initialized.

    Args:
        config: BertConfig; its activation and epsilon have no place.
        head: `Head`, "encoder" or of a kind in `TASKS`.
        tokenizer: KerasHub's, for the model's preprocessor, or None.

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
    task = getattr(models, TASKS[head.kind])
    arguments = {}
    if head.kind == "classification":
        arguments["num_classes"] = head.num_labels
    if tokenizer is not None:
        arguments["preprocessor"] = task.preprocessor_cls(
            tokenizer, sequence_length=config.max_position_embeddings
        )
    return task(backbone, **arguments)


def variables(model, config, head):
    """Returns {release's name: KerasHub's variable} of a model that `create` made.

    Raises:
        ValueError: this version of KerasHub names its variables otherwise.
    """
    own = {variable.path: variable for variable in model.weights}
    found = {}
    for name, path in places(config.num_hidden_layers, head.kind).items():
        if path not in own:
            raise ValueError(
                f"keras-hub {library().__version__} has no variable {path}; expected "
                "it as in keras-hub 0.32: install that."
            )
        found[name] = own[path]
    return found


def to_release(name, variable, shape):
    """Returns a variable's value, float32, in the release's layout of a shape."""
    array = np.asarray(variable.numpy(), np.float32)
    return (array.T if name == _TRANSPOSED else array).reshape(shape)


def assign(name, variable, array):
    """Gives a variable a value in the release's layout."""
    array = array.T if name == _TRANSPOSED else array
    variable.assign(np.reshape(array, tuple(variable.shape)))
