"""A BERT as a KerasHub preset, written by KerasHub itself."""

import json
import os

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.keras_hub import library
from bert_tf.modeling import numerics

_POOLER = "bert/pooler/"
# Kinds of head -> the one of them that a preset can have.
_KINDS_THERE = {
    "masked_lm": "masked_lm",
    "pretraining": "masked_lm",
    "classification": "classification",
}


def placement(source):
    """Returns the `Placement` of a `Source`; KerasHub need not be installed."""
    kind = _KINDS_THERE.get(source.head.kind)
    num_layers = 0 if source.config is None else source.config.num_hidden_layers
    places = library.places(num_layers, kind)
    return source_module.Placement(
        places={name: places[name] for name in source.shapes if name in places},
        without_place=tuple(name for name in source.shapes if name not in places),
        changes=() if source.config is None else tuple(_changes(source.config, kind)),
    )


def write(source, folder):
    """Writes a preset into a folder.

    A pooler that the source lacks is written as zeros. The tokenizer removes accents
    where it lower-cases, as that of 2018 does.

    Args:
        source: `Source` of an encoder, a masked-word head or a classifier.
        folder: an empty folder.

    Raises:
        OSError: it cannot be written.
        ValueError: the source cannot be read, is not whole or has no configuration.
        ImportError: KerasHub is not installed.
    """
    keras_hub = library.library()
    config, head = _config_and_head(source)
    tokenizer = None
    if source.vocabulary is not None:
        # Casing that is not known is the release's default.
        is_lower = source.do_lower_case is not False
        tokenizer = keras_hub.models.BertTokenizer(
            vocabulary=list(source.vocabulary.tokens),
            lowercase=is_lower,
            strip_accents=is_lower,
        )
    model = library.create(config, head, tokenizer=tokenizer)
    variables = library.variables(model, config, head)
    _check_whole(source, variables)
    for name in set(variables) - set(source.shapes):
        variables[name].assign(np.zeros(variables[name].shape, "float32"))
    for name, array in source.read_each([n for n in source.shapes if n in variables]):
        library.assign(name, variables[name], array)
    model.save_to_preset(folder)
    if head.kind == "encoder" and tokenizer is not None:
        tokenizer.save_to_preset(folder)


def compute_as_there(model):
    """Makes the masked-word head of a model of ours compute what KerasHub's does."""
    heads = getattr(model, "cls", None)
    predictions = getattr(heads, "predictions", None)
    if predictions is not None:
        transform = predictions.transform
        transform.activation = numerics.activation(library.HEAD_ACTIVATION)
        transform.normalization.epsilon = library.HEAD_EPSILON


def library_outputs(path, features):
    """Returns what KerasHub's own model of a preset computes.

    Args:
        path: the folder.
        features: dict of int32 arrays: `input_ids`, `input_mask`, `segment_ids` [B, S]
            and, for a masked-word head, `masked_lm_positions` [B, M].

    Returns:
        {our name of an output: float32 array}: `sequence_output`, `pooled_output` and
        `masked_lm_logits` or `logits`.

    Raises:
        ImportError: KerasHub is not installed.
    """
    keras_hub = library.library()
    backbone = keras_hub.models.BertBackbone.from_preset(path)
    inputs = {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
    }
    outputs = {name: np.asarray(value) for name, value in backbone(inputs).items()}
    return outputs | _head_outputs(keras_hub, path, features, inputs)


def _head_outputs(keras_hub, path, features, inputs):
    """Returns the outputs of the head in a preset's folder, or nothing."""
    task_file = os.path.join(path, "task.json")
    if not files.exists(task_file):
        return {}
    with files.open_file(task_file) as file:
        class_name = json.load(file)["class_name"]
    task = getattr(keras_hub.models, class_name).from_preset(path, preprocessor=None)
    if class_name == library.TASKS["masked_lm"]:
        inputs = inputs | {"mask_positions": features["masked_lm_positions"]}
        return {"masked_lm_logits": np.asarray(task(inputs))}
    return {"logits": np.asarray(task(inputs))}


def _config_and_head(source):
    if source.config is None:
        raise ValueError(
            f"The size of the model of {source.path} is not known; give "
            "--bert_config_file."
        )
    kind = _KINDS_THERE.get(source.head.kind, "encoder")
    num_labels = source.head.num_labels if kind == "classification" else None
    return source.config, checkpoint_heads.Head(kind=kind, num_labels=num_labels)


def _check_whole(source, variables):
    missing = sorted(set(variables) - set(source.shapes))
    missing = [name for name in missing if not name.startswith(_POOLER)]
    if missing:
        raise ValueError(
            f"{source.path} lacks {len(missing)} of the model's weights, the first "
            f"{missing[0]}; expected a whole model."
        )


def _changes(config, kind):
    activation = numerics.activation(config.hidden_act)
    if activation is not numerics.activation(library.ENCODER_ACTIVATION):
        yield (
            f"KerasHub's encoder computes {library.ENCODER_ACTIVATION}, the "
            f"source's {config.hidden_act}"
        )
    epsilon = config.layer_norm_epsilon
    if epsilon != library.ENCODER_EPSILON:
        yield (
            f"KerasHub's encoder adds {library.ENCODER_EPSILON:g} to the "
            f"variance, the source's {epsilon:g}"
        )
    if kind == "masked_lm":
        yield from _head_changes(activation, config)
    rates = config.hidden_dropout_prob, config.attention_probs_dropout_prob
    if rates[0] != rates[1]:
        yield (
            f"KerasHub has one dropout rate, {rates[0]:g} here, in the attention too, "
            f"where the source has {rates[1]:g}"
        )


def _head_changes(activation, config):
    if activation is not numerics.activation(library.HEAD_ACTIVATION):
        yield (
            f"KerasHub's masked-word head computes {library.HEAD_ACTIVATION}, "
            f"the source's {config.hidden_act}"
        )
    if config.layer_norm_epsilon != library.HEAD_EPSILON:
        yield (
            f"KerasHub's masked-word head adds {library.HEAD_EPSILON:g} to "
            f"the variance, the source's {config.layer_norm_epsilon:g}"
        )
