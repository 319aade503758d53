"""Writes a BERT as a KerasHub preset, with KerasHub."""

import os
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.keras_hub import library
from bert_tf.checkpoints.keras_hub import reading
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics
from bert_tf.tokenization import vocabulary as vocabulary_module

# Fields of `TextEncoding` that a preset stores, besides vocabulary and casing.
_SAID_OF_TEXT = ("strip_accents",)


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a `Source`; KerasHub need not be installed."""
    num_layers = 0 if source.config is None else source.config.num_hidden_layers
    places = library.places(num_layers, source.head.kind)
    return source_module.Placement(
        places={name: places[name] for name in source.shapes if name in places},
        without_place=tuple(name for name in source.shapes if name not in places),
        changes=() if source.config is None else tuple(_changes(source.config)),
        unsaid=tuple(
            name for name in source.text.stated() if name not in _SAID_OF_TEXT
        ),
    )


def write(source: source_module.Source, folder: str) -> None:
    """Writes a preset into a folder.

    A missing pooler is written as zeros. If the tokenizer lowercases, it also strips
    accents, as in 2018.

    Args:
        source: `Source` of an encoder or a classifier; other heads are left out.
        folder: an empty folder.

    Raises:
        OSError: a file cannot be written.
        ValueError: the source cannot be read, is incomplete or has no configuration.
        ImportError: KerasHub is not installed.
    """
    keras_hub = library.library()
    config = source.required_config()
    head = checkpoint_heads.Head(kind="encoder")
    if source.head.kind == library.HEAD_KIND:
        num_labels = source.head.num_labels
        head = checkpoint_heads.Head(kind=library.HEAD_KIND, num_labels=num_labels)
    tokenizer = None
    if source.vocabulary is not None:
        for token in vocabulary_module.SPECIAL_TOKENS:
            if token not in source.vocabulary:
                raise ValueError(
                    f"The vocabulary has no {token}, which KerasHub's BertTokenizer "
                    "needs; use another --target_format."
                )
        # Unknown casing means the release's default.
        is_lower = source.do_lower_case is not False
        strip_accents = source.text.strip_accents
        tokenizer = keras_hub.models.BertTokenizer(
            vocabulary=list(source.vocabulary.tokens),
            lowercase=is_lower,
            strip_accents=is_lower if strip_accents is None else strip_accents,
        )
    model = library.create(config, head, tokenizer=tokenizer)
    variables = library.variables(model, config, head)
    missing = sorted(set(variables) - set(source.shapes))
    source.check_complete(missing)
    for name in missing:
        variables[name].assign(np.zeros(variables[name].shape, "float32"))
    for name, array in source.read_each([n for n in source.shapes if n in variables]):
        library.assign(name, variables[name], array)
    model.save_to_preset(folder)
    if head.kind == "encoder" and tokenizer is not None:
        tokenizer.save_to_preset(folder)


def library_outputs(
    path: str, features: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Returns what KerasHub computes with a preset.

    Args:
        path: the preset's folder.
        features: int32 arrays `input_ids`, `input_mask` and `segment_ids` [B, S].

    Returns:
        {our name of an output: float32 array}: `sequence_output`, `pooled_output` and,
        for a classifier, `logits`.

    Raises:
        ImportError: KerasHub is not installed.
    """
    models = library.library().models
    inputs = {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
    }
    backbone = models.BertBackbone.from_preset(path)
    outputs = {name: np.asarray(value) for name, value in backbone(inputs).items()}
    task_file = os.path.join(path, reading.TASK_FILE)
    if not files.exists(task_file):
        return outputs
    class_name: Any = files.read_json(task_file)["class_name"]
    task = getattr(models, class_name).from_preset(path, preprocessor=None)
    return outputs | {"logits": np.asarray(task(inputs))}


def _changes(config: config_module.BertConfig) -> Iterator[str]:
    activation = numerics.activation(config.hidden_act)
    if activation is not numerics.activation(library.ACTIVATION):
        yield (
            f"KerasHub's encoder computes {library.ACTIVATION}, the source's "
            f"{config.hidden_act}"
        )
    epsilon = config.layer_norm_epsilon
    if epsilon != library.EPSILON:
        yield (
            f"KerasHub's encoder adds {library.EPSILON:g} to the variance, the "
            f"source's {epsilon:g}"
        )
    rates = config.hidden_dropout_prob, config.attention_probs_dropout_prob
    if rates[0] != rates[1]:
        yield (
            f"KerasHub has one dropout rate, {rates[0]:g}, which it also applies to "
            f"attention, where the source has {rates[1]:g}"
        )
