"""The content of a Keras file besides its weights: model, casing, labels, vocabulary.

Keras has no place for the last three. A `.keras` file that this package wrote has them
in its `metadata.json`, under a key that Keras ignores; a `.weights.h5` file has the
configuration, casing and names as an attribute. A separate member in the zip would make
Keras unpack all of it to disk whenever it loads the file.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.keras_files import archive
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module

# The package under which our classes are registered with Keras.
_PACKAGE = "bert_tf"
# Name of a class that a `.keras` file may contain -> the class.
CLASSES = {
    model_class.__name__: model_class
    for row in checkpoint_heads.HEADS.values()
    for model_class in row.classes
}
_CLASSIFIERS = checkpoint_heads.HEADS["classification"].models
# Arguments of a serialized model that are not taken from the file: weights are read as
# float32, regardless of the dtype policy.
_IGNORED_ARGUMENTS = ("name", "dtype")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a file, or one beside it, contains besides the weights; None if unknown."""

    model_class: type | None = None  # Of a `.keras` file, with the arguments below.
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    kind: str | None = None  # Kind of head, a key of `heads.HEADS`.
    task: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # Of task.json.
    config: config_module.BertConfig | None = None
    text: text_encoding.TextEncoding = dataclasses.field(
        default_factory=text_encoding.TextEncoding
    )
    labels: tuple[str, ...] | None = None  # Names of classes or tags.
    label_kind: str | None = None  # Of a classifier.


def read_archive(path: str) -> Settings:
    """Returns the `Settings` of a `.keras` file and the files beside it.

    Raises:
        OSError: there is no such file.
        ValueError: it is damaged, or contains a model of a different class, which is
            named in the message and not created.
    """
    description = archive.describe(path)
    class_name = description.config.get("class_name")
    registered = description.config.get("registered_name")
    model_class = CLASSES.get(str(class_name))
    if model_class is None or registered != f"{_PACKAGE}>{class_name}":
        raise ValueError(_other_class(path, str(registered or class_name)))
    arguments = description.config.get("config")
    values = arguments.get("config") if isinstance(arguments, dict) else None
    if not isinstance(arguments, dict) or not isinstance(values, dict):
        raise ValueError(f"{path}: its {class_name} has no configuration.")
    arguments = {k: v for k, v in arguments.items() if k not in _IGNORED_ARGUMENTS}
    settings = _own(path, description.metadata.get(archive.OWN_KEY))
    settings = dataclasses.replace(
        settings,
        model_class=model_class,
        arguments=arguments,
        config=_config(path, values),
        label_kind=next(
            (kind for kind, c in _CLASSIFIERS.items() if c is model_class), None
        ),
    )
    return _with_companions(path, settings)


def infer_from_weights(path: str, own: Any) -> Settings:
    """Returns the `Settings` of a `.weights.h5` file and the files beside it.

    Args:
        path: the file.
        own: the attribute that this package adds, or None.

    Raises:
        ValueError: the attribute, or a file beside it, is damaged.
    """
    if own is None:
        return _with_companions(path, Settings())
    try:
        own = json.loads(own)
    except (TypeError, ValueError, RecursionError):
        own = None
    if not isinstance(own, dict) or not isinstance(own.get("config"), dict):
        raise ValueError(f"{path}: its attribute {archive.OWN_KEY} is damaged.")
    settings = dataclasses.replace(
        _own(path, own), kind=own.get("head"), config=_config(path, own["config"])
    )
    return _with_companions(path, settings)


def values_of(source: source_module.Source, *, with_vocabulary: bool) -> dict[str, Any]:
    """Returns the values of a `Source` that this package adds to a file, for JSON."""
    values = {
        "head": source.head.kind,
        **source.text.to_dict(),
        "labels": source.head.labels and list(source.head.labels),
        "label_kind": source.head.label_kind,
    }
    if with_vocabulary and source.vocabulary is not None:
        values["vocabulary"] = list(source.vocabulary.tokens)
    return {key: value for key, value in values.items() if value is not None}


def _other_class(path: str, name: str) -> str:
    advice = "save the BERT model itself."
    if name.startswith(f"{_PACKAGE}>"):
        advice = (
            "pass the folder of its run; keras.saving.load_model reads the file, too, "
            "after import bert_tf.modeling."
        )
    return (
        f"{path} contains a model of the class {name}, expected one of "
        f"{', '.join(CLASSES)}; {advice}"
    )


def _config(path: str, values: Mapping[str, Any]) -> config_module.BertConfig:
    try:
        return config_module.BertConfig.from_dict(dict(values))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _own(path: str, own: Any) -> Settings:
    """Returns what `values_of` wrote; a file of plain Keras has none of it."""
    own = own if isinstance(own, dict) else {}
    tokens, labels = own.get("vocabulary"), own.get("labels")
    vocabulary = None
    if isinstance(tokens, list):
        vocabulary = vocabulary_module.Vocabulary(map(str, tokens), source=path)
    return Settings(
        text=text_encoding.TextEncoding.from_dict(
            own, path=path, vocabulary=vocabulary
        ),
        labels=_texts(labels),
        label_kind=own.get("label_kind"),
    )


def _with_companions(path: str, settings: Settings) -> Settings:
    folder = os.path.dirname(path) or "."
    task = companion_files.read_task(folder)
    found: dict[str, Any] = {"task": task}
    if settings.config is None:
        found["config"] = companion_files.read_config(folder)
    vocabulary = settings.text.vocabulary
    if vocabulary is None:
        vocabulary = companion_files.read_vocabulary(folder)
    found["text"] = text_encoding.TextEncoding.from_dict(
        {**task, **settings.text.to_dict()}, path=path, vocabulary=vocabulary
    )
    if settings.label_kind is None:
        found["label_kind"] = task.get("label_kind")
    if settings.labels is None:
        found["labels"] = _texts(task.get("labels"))
    return dataclasses.replace(settings, **found)


def _texts(values: Any) -> tuple[str, ...] | None:
    return tuple(map(str, values)) if isinstance(values, list) else None
