"""What a file of Keras's says besides the weights: model, casing, names, vocabulary.

Keras leaves no room for the last three. A `.keras` file of ours has them in its
`metadata.json`, under a key of this package's, which Keras reads over; a `.weights.h5`
has the configuration, casing and names as an attribute. A member of their own in the
zip would make Keras unpack all of it to disk on every loading.
"""

import dataclasses
import json
import os

from bert_tf import files
from bert_tf.checkpoints.keras_files import archive
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module

# The package under which our classes are registered with Keras.
_PACKAGE = "bert_tf"
# Class in a `.keras` file -> kind of head; a pretrainer may lack the second one.
KIND_OF_CLASS = {
    "BertModel": "encoder",
    "BertPretrainer": "pretraining",
    "BertLeftToRight": "masked_lm",
    "BertClassifier": "classification",
    "BertMultiLabelClassifier": "classification",
    "BertRegressor": "classification",
    "BertSpanPredictor": "question_answering",
    "BertTokenClassifier": "token_classification",
    "BertMultipleChoice": "multiple_choice",
}
# What a label is, where it is not one class.
_LABEL_KIND_OF_CLASS = {
    "BertMultiLabelClassifier": "multi_label",
    "BertRegressor": "regression",
}
_CLASSES = ", ".join(KIND_OF_CLASS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What stands in a file, or beside it, besides the weights; None: it does not."""

    kind: str | None = None  # Of the head, one of `head.KINDS`.
    task: str | None = None  # What a task.json calls it, where nothing else does.
    config: config_module.BertConfig | None = None
    vocabulary: vocabulary_module.Vocabulary | None = None
    do_lower_case: bool | None = None
    labels: tuple[str, ...] | None = None  # Names of classes or tags.
    label_kind: str | None = None  # What a classifier's label is.


def read(path):
    """Returns the `Settings` of a `.keras` or `.weights.h5` file.

    What is not in it is looked for in bert_config.json, vocab.txt and task.json
    beside it.

    Raises:
        OSError: there is no such file.
        ValueError: it is damaged or cut short, or holds a model of another class,
            which is named, and not made.
    """
    if path.endswith(archive.ARCHIVE_SUFFIX):
        return _with_those_beside(path, _of_archive(path))
    return _with_those_beside(path, _of_weights(path))


def values_of(source, *, with_vocabulary):
    """Returns the values of a `Source` that this package adds to a file, for JSON."""
    values = {
        "head": source.head.kind,
        "do_lower_case": source.do_lower_case,
        "labels": source.head.labels and list(source.head.labels),
        "label_kind": source.head.label_kind,
    }
    if with_vocabulary and source.vocabulary is not None:
        values["vocabulary"] = list(source.vocabulary.tokens)
    return {key: value for key, value in values.items() if value is not None}


def _of_archive(path):
    description = archive.describe(path)
    class_name = description.config.get("class_name")
    registered = description.config.get("registered_name")
    if class_name not in KIND_OF_CLASS or registered != f"{_PACKAGE}>{class_name}":
        advice = "save the BERT model itself."
        if str(registered).startswith(f"{_PACKAGE}>"):
            advice = (
                "give the folder of its run; keras.saving.load_model reads the file, "
                "too, after import bert_tf.modeling."
            )
        raise ValueError(
            f"{path} holds a model of the class {registered or class_name}, expected "
            f"one of {_CLASSES}; {advice}"
        )
    arguments = description.config.get("config")
    values = arguments.get("config") if isinstance(arguments, dict) else None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: the {class_name} in it has no configuration.")
    kind = KIND_OF_CLASS[class_name]
    if kind == "pretraining" and arguments.get("next_sentence") is False:
        kind = "masked_lm"
    own = description.metadata.get(archive.OWN_KEY)
    settings = _own(path, own, kind=kind, config=_config(path, values))
    label_kind = _LABEL_KIND_OF_CLASS.get(class_name, "single_label")
    return dataclasses.replace(settings, label_kind=label_kind)


def _of_weights(path):
    with archive.opened_weights(path) as weights:
        text = weights.attrs.get(archive.OWN_KEY)
    if text is None:
        return Settings()
    try:
        own = json.loads(text)
    except (TypeError, ValueError):
        own = None
    if not isinstance(own, dict) or not isinstance(own.get("config"), dict):
        raise ValueError(
            f"{path}: its attribute {archive.OWN_KEY} cannot be understood."
        )
    kind = own.get("head")
    return _own(path, own, kind=kind, config=_config(path, own["config"]))


def _config(path, values):
    try:
        return config_module.BertConfig.from_dict(values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _own(path, own, *, kind, config):
    """Returns what `values_of` gave; a file of plain Keras has nothing of it."""
    own = own if isinstance(own, dict) else {}
    tokens, labels = own.get("vocabulary"), own.get("labels")
    vocabulary = None
    if isinstance(tokens, list):
        vocabulary = vocabulary_module.Vocabulary(map(str, tokens), source=path)
    return Settings(
        kind=kind,
        config=config,
        vocabulary=vocabulary,
        do_lower_case=_boolean(own.get("do_lower_case")),
        labels=tuple(map(str, labels)) if isinstance(labels, list) else None,
        label_kind=own.get("label_kind"),
    )


def _with_those_beside(path, settings):
    folder = os.path.dirname(path) or "."
    task = _beside(folder, "task.json", _read_object) or {}
    found = {"task": task.get("task")}
    if settings.config is None:
        found["config"] = _beside(
            folder, "bert_config.json", config_module.BertConfig.from_json_file
        )
    if settings.vocabulary is None:
        found["vocabulary"] = _beside(
            folder, "vocab.txt", vocabulary_module.Vocabulary.load
        )
    if settings.do_lower_case is None:
        found["do_lower_case"] = _boolean(task.get("do_lower_case"))
    if settings.label_kind is None:
        found["label_kind"] = task.get("label_kind")
    if settings.labels is None and isinstance(task.get("labels"), list):
        found["labels"] = tuple(map(str, task["labels"]))
    return dataclasses.replace(settings, **found)


def _beside(folder, name, load):
    path = os.path.join(folder, name)
    return load(path) if files.exists(path) else None


def _boolean(value):
    return value if isinstance(value, bool) else None


def _read_object(path):
    with files.open_file(path) as file:
        try:
            values = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds no JSON object; remove or correct it.")
    return values
