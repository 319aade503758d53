"""Opens `.keras` and `.weights.h5` files.

Keras names a weight by the attributes that lead to it, such as "bert/layers/pooler/
dense/vars/0". So the model is built and Keras loads the weights into it; the names of
the model's variables are then the release's.
"""

import functools
import gc
import os
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.keras_files import archive
from bert_tf.checkpoints.keras_files import settings as settings_module
from bert_tf.modeling import base
from bert_tf.modeling import config as config_module

NAME = "keras"
SUFFIXES = (archive.ARCHIVE_SUFFIX, archive.WEIGHTS_SUFFIX)
_LAYER = re.compile(r"encoder/encoder_layers/encoder_layer(?:_(\d+))?/")
_FIRST_LAYER = "encoder/encoder_layers/encoder_layer/"


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path ends like one of Keras's files."""
    return os.fspath(path).endswith(SUFFIXES)


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a `.keras` or `.weights.h5` file.

    What a file does not contain is read from bert_config.json, vocab.txt and task.json
    beside it. Only a `.weights.h5` may lack the configuration; shapes then show how to
    build its model, and the source has no configuration.

    Args:
        path: a file that `model.save`, `model.save_weights` or `write` wrote.

    Raises:
        OSError: there is no such file.
        ValueError: it is truncated or damaged, or contains a model of a different
            class, which is named in the message and not created.
    """
    path = os.fspath(path)
    if path.endswith(archive.ARCHIVE_SUFFIX):
        settings = settings_module.read_archive(path)
        create = functools.partial(_create_from_arguments, path, settings)
        model = create()
        kind = checkpoint_heads.kind_of(model)
    else:
        outline = archive.outline(path)
        settings = settings_module.infer_from_weights(path, outline.own)
        config, head = _model_of_weights(path, settings, outline)
        create = functools.partial(
            checkpoint_heads.create_model, config, head, dtype="float32"
        )
        model = create()
        kind = head.kind if head.is_known else None
    variables = checkpoint_names.checkpoint_variables(model)
    shapes = {name: tuple(variables[name].shape) for name in sorted(variables)}
    head = checkpoint_heads.head_of(
        shapes,
        kind=kind,
        label_kind=settings.label_kind or checkpoint_heads.SINGLE_LABEL,
    )
    return source_module.Source(
        path=path,
        format=NAME,
        shapes=shapes,
        read_each=lambda wanted: _read_each(path, create, wanted),
        head=checkpoint_heads.with_labels(head, settings.labels),
        config=settings.config,
        text=settings.text,
        notes=tuple(_notes(settings)),
    )


def _create_from_arguments(path: str, settings: settings_module.Settings) -> Any:
    """Returns the model of a `.keras` file, newly initialized."""
    model_class: Any = settings.model_class
    if base.QUANTIZED_LAYERS in settings.arguments:
        raise ValueError(
            f"{path}: its weights are quantized, which no checkpoint format expresses. "
            "keras.saving.load_model reads the file; convert the file of the model "
            "before quantize."
        )
    try:
        model = model_class.from_config({**settings.arguments, "dtype": "float32"})
        model.build()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: its {model_class.__name__} cannot be created: {error}."
        ) from None
    return model


def _model_of_weights(
    path: str, settings: settings_module.Settings, outline: archive.Outline
) -> tuple[config_module.BertConfig, checkpoint_heads.Head]:
    """Returns configuration and head of the model that a `.weights.h5` belongs to."""
    shown = _shown_shapes(outline.shapes)
    head = checkpoint_heads.head_of(shown)
    if not head.is_known:  # Several kinds of head have such weights.
        kinds = (
            settings.kind,
            _kind_of_name(outline.model_name),
            settings.task.get("task"),
        )
        same_weights = checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS
        kind = next((kind for kind in kinds if kind in same_weights), None)
        head = checkpoint_heads.head_of(shown, kind=kind)
    try:
        return settings.config or _shown_config(outline.shapes), head
    except (KeyError, IndexError, ValueError):
        raise ValueError(
            f"{path} does not contain the weights of a model of this package but, for "
            f"example, {min(outline.shapes, default='nothing')}; expected those of one "
            f"of {', '.join(settings_module.CLASSES)}."
        ) from None


def _shown_shapes(
    stored: Mapping[str, checkpoint_names.Shape],
) -> dict[str, checkpoint_names.Shape]:
    """Returns {release's name: shape} of those heads' weights that a file shows.

    A head's layers have the release's names; in each, the weights are numbered.
    """
    scopes = {
        name: name.rpartition("/")[0]
        for row in checkpoint_heads.HEADS.values()
        for name in row.weights
    }
    places = {name: f"{scope}/vars/0".lstrip("/") for name, scope in scopes.items()}
    return {name: stored[place] for name, place in places.items() if place in stored}


def _kind_of_name(model_name: str | None) -> str | None:
    """Returns the kind of a model named like its class, such as bert_classifier."""
    for kind, row in checkpoint_heads.HEADS.items():
        for model_class in row.classes:
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", model_class.__name__).lower()
            if name == model_name:
                return kind
    return None


def _shown_config(
    stored: Mapping[str, checkpoint_names.Shape],
) -> config_module.BertConfig:
    """Returns a configuration with the sizes that a file shows.

    Heads and activation are not among them, so it serves only to load the weights.
    """
    scope = "bert/" if any(path.startswith("bert/") for path in stored) else ""
    layers = [_LAYER.search(path) for path in stored]
    numbers = [int(match[1] or 0) for match in layers if match]
    vocab_size, hidden_size = stored[f"{scope}embeddings/vars/0"]
    return config_module.BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=max(numbers) + 1,
        num_attention_heads=1,
        intermediate_size=stored[f"{scope}{_FIRST_LAYER}intermediate/dense/vars/1"][0],
        type_vocab_size=stored[f"{scope}embeddings/vars/1"][0],
        max_position_embeddings=stored[f"{scope}embeddings/vars/2"][0],
    )


def _read_each(
    path: str, create: Callable[[], Any], wanted: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    model = create()
    message = f"The weights in {path} do not match its model"
    with archive.local_weights(path) as local, archive.clear_load_errors(message):
        model.load_weights(local)
    variables = checkpoint_names.checkpoint_variables(model)
    for name in wanted:
        if name not in variables:
            raise ValueError(f"{path} has no weight {name}.")
        yield name, np.asarray(variables[name].numpy(), "float32")
    del model, variables
    gc.collect()  # Keras models are reference cycles.


def _notes(settings: settings_module.Settings) -> Iterator[str]:
    if settings.text.vocabulary is None:
        yield (
            "Keras files contain no vocabulary, and there is no vocab.txt beside it; "
            "pass --vocab_file."
        )
    if settings.text.do_lower_case is None:
        yield "Keras files do not record whether the text was lowercased."
