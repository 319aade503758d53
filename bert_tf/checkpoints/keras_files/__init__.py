"""The format "keras": `.keras` and `.weights.h5` files.

Keras names a weight by the attributes that lead to it, such as "bert/layers/pooler/
dense/vars/0". So the model is built and Keras loads the weights into it; the names of
the model's variables are then the release's.

Keras has no place for casing, labels and vocabulary. A `.keras` file that this package
wrote has them in its `metadata.json`, under a key that Keras ignores; a `.weights.h5`
file has the configuration, casing and names as an attribute. A separate member in the
zip would make Keras unpack all of it to disk whenever it loads the file.
"""

import errno
import functools
import gc
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import h5py
import keras
import numpy as np

from bert_tf import files
from bert_tf import json_values
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.keras_files import archive
from bert_tf.modeling import config as config_module
from bert_tf.modeling import keras_model
from bert_tf.modeling import pretrained_model
from bert_tf.tokenization import vocabulary as vocabulary_module

# The package under which our classes are registered with Keras, its key in
# metadata.json, and its attribute in a .weights.h5 file.
_PACKAGE = "bert_tf"
# Names of the classes that a `.keras` file may contain.
_CLASSES = dict.fromkeys(
    name for row in checkpoint_heads.HEADS.values() for name in row.classes
)
# Arguments of a serialized model that are not taken from the file: weights are read as
# float32, regardless of the dtype policy.
_IGNORED_ARGUMENTS = ("name", "dtype")
_KEPT_ARGUMENTS = ("dropout", pretrained_model.PREPROCESSOR)
# Shape of the arguments of a serialized model; see `json_values.unexpected`.
_SHAPE = {
    f"{pretrained_model.PREPROCESSOR}?": (
        None,
        {
            "vocabulary": [str],
            "do_lower_case": bool | None,
            "strip_accents": bool | None,
            "never_split": [str],
            "max_seq_length": int | None,
            "longest_row": int,
        },
    )
}
# Arguments of a preprocessor that are also keys of the package's metadata.
_TEXT_SETTINGS = ("vocabulary", "do_lower_case", "strip_accents", "never_split")
_LAYER = re.compile(r"encoder/encoder_layers/encoder_layer(?:_(\d+))?/")
_FIRST_LAYER = "encoder/encoder_layers/encoder_layer/"
# A pooler that other formats leave out is initialized, the same way in every file.
_POOLER_SEED = 12345
_CHUNK_BYTES = 1 << 20
_OVERHEAD_BYTES = 1 << 18  # Upper bound for HDF5 and the settings.


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path ends like one of Keras's files."""
    return os.fspath(path).endswith(archive.SUFFIXES)


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a `.keras` or `.weights.h5` file.

    What a file does not contain is read from bert_config.json, vocab.txt and task.json
    beside it. Only a `.weights.h5` may lack the configuration; shapes then show how to
    build its model, and the source has no configuration. A model of a different class
    is named in the error and not created.
    """
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    task = companion_files.read_task(folder)
    arguments: Any = {}
    create: Callable[[], Any]
    config: config_module.BertConfig | None
    if path.endswith(archive.ARCHIVE_SUFFIX):
        serialized, metadata = archive.read_members(path)
        class_name, arguments = _serialized_model(path, serialized)
        model_class = checkpoint_heads.model_class(class_name)
        config = _config(path, arguments["config"])
        create = functools.partial(_create_serialized, path, model_class, arguments)
        model = create()
        kind = checkpoint_heads.kind_of(model)
        settings = metadata.get(_PACKAGE)
        text = arguments.get(pretrained_model.PREPROCESSOR)
        settings = {
            **{k: v for k, v in (text or {}).items() if k in _TEXT_SETTINGS},
            **(settings if isinstance(settings, dict) else {}),
        }
        classifiers = checkpoint_heads.HEADS[kinds.Head.CLASSIFICATION].models.items()
        label_kind = next((k for k, one in classifiers if one == class_name), None)
    else:
        outline = archive.outline(path, _PACKAGE)
        settings, config = _attribute(path, outline.attribute)
        if config is None:
            config = companion_files.read_config(folder)
        head_kinds = (
            settings.get("head"),
            _kind_of_name(outline.model_name),
            task.get("task"),
        )
        built, head = _model_of_weights(path, config, outline.shapes, head_kinds)
        create = functools.partial(
            checkpoint_heads.create_model, built, head, dtype="float32"
        )
        model = create()
        kind = head.kind if head.is_known else None
        label_kind = settings.get("label_kind")
    variables = checkpoint_names.checkpoint_variables(model)
    shapes = {name: tuple(variables[name].shape) for name in sorted(variables)}
    label_kind = label_kind or task.get("label_kind") or checkpoint_heads.SINGLE_LABEL
    head = checkpoint_heads.head_of(shapes, kind=kind, label_kind=label_kind)
    text = _text(path, settings, task)
    return source_module.Source(
        path=path,
        format="keras",
        shapes=shapes,
        read_each=lambda wanted: _read_each(path, create, wanted),
        head=checkpoint_heads.with_labels(
            head, settings.get("labels") or task.get("labels")
        ),
        config=config,
        text=text,
        arguments={k: v for k, v in arguments.items() if k in _KEPT_ARGUMENTS},
        notes=tuple(_notes(text)),
    )


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a `Source`: Keras names weights by itself."""
    config = source.required_config()
    known = {
        *checkpoint_names.encoder_names(config.num_hidden_layers),
        *source.head.row.weights,
    }
    return source_module.Placement(
        places={name: name for name in source.shapes if name in known},
        without_place=tuple(sorted(set(source.shapes) - known)),
    )


def write(source: source_module.Source, path: str | os.PathLike[str]) -> None:
    """Writes a `.keras` or a `.weights.h5` file, complete or not at all.

    The suffix of the path decides between the two. The complete model is in memory
    once. A pooler that the source lacks gets a new model's values, which are the same
    every time.
    """
    path = os.fspath(path)
    suffix = next((end for end in archive.SUFFIXES if path.endswith(end)), None)
    if suffix is None:
        raise ValueError(
            f"{path}: expected a name that ends with {' or '.join(archive.SUFFIXES)}."
        )
    model = _model_of(source)
    beside = None if files.is_remote(path) else os.path.dirname(path) or "."
    if beside is not None:
        files.make_folders(beside)
    with tempfile.TemporaryDirectory(dir=beside, prefix=".keras.") as folder:
        # If the disk fills up, HDF5 crashes the process instead of raising an error.
        num_bytes = sum(weight.numpy().nbytes for weight in model.weights)
        if shutil.disk_usage(folder).free < 2 * (num_bytes + _OVERHEAD_BYTES):
            raise OSError(f"{path}: cannot be written: {os.strerror(errno.ENOSPC)}.")
        saved = os.path.join(folder, f"saved{suffix}")
        if suffix == archive.ARCHIVE_SUFFIX:
            model.save(saved)
            _copy_archive(saved, path, source)
            return
        model.save_weights(saved)
        values = _settings_of(source) | {"config": source.required_config().to_dict()}
        with h5py.File(saved, "a") as weights:
            weights.attrs[_PACKAGE] = json.dumps(values)
        with open(saved, "rb") as old, files.complete_or_absent(path, "wb") as new:
            shutil.copyfileobj(old, new)


def _serialized_model(path: str, values: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the name of the class in a `.keras` file and its arguments."""
    class_name = str(values.get("class_name"))
    registered = values.get("registered_name")
    if class_name not in _CLASSES or registered != f"{_PACKAGE}>{class_name}":
        name, advice = str(registered or class_name), "save the BERT model itself."
        if name.startswith(f"{_PACKAGE}>"):
            advice = (
                "pass the folder of its run; keras.saving.load_model reads the file, "
                "too, after import bert_tf.modeling."
            )
        raise ValueError(
            f"{path} contains a model of the class {name}, expected one of "
            f"{', '.join(_CLASSES)}; {advice}"
        )
    arguments = values.get("config")
    if not isinstance(arguments, dict) or not isinstance(arguments.get("config"), dict):
        raise ValueError(f"{path}: its {class_name} has no configuration.")
    unexpected = json_values.unexpected(arguments, _SHAPE)
    if unexpected is not None:
        name, value = unexpected
        raise ValueError(
            f"{path} has an unexpected value of {name}: {value!r:.60}; save the model "
            "again with a bert_tf.TextPreprocessor, or with preprocessor=None."
        )
    if keras_model.QUANTIZED_LAYERS in arguments:
        raise ValueError(
            f"{path}: its weights are quantized, which no checkpoint format expresses. "
            "keras.saving.load_model reads the file; convert the file of the model "
            "before quantize."
        )
    return class_name, {
        key: value for key, value in arguments.items() if key not in _IGNORED_ARGUMENTS
    }


def _create_serialized(path: str, model_class: Any, arguments: Any) -> Any:
    try:
        model = model_class.from_config({**arguments, "dtype": "float32"})
        model.build()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: its {model_class.__name__} cannot be created: {error}."
        ) from None
    return model


def _config(path: str, values: Mapping[str, Any]) -> config_module.BertConfig:
    try:
        return config_module.BertConfig.from_dict(dict(values))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _attribute(
    path: str, attribute: Any
) -> tuple[dict[str, Any], config_module.BertConfig | None]:
    """Returns what the package's attribute of a `.weights.h5` file says."""
    if attribute is None:
        return {}, None
    try:
        values = json.loads(attribute)
    except (TypeError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or not isinstance(values.get("config"), dict):
        raise ValueError(f"{path}: its attribute {_PACKAGE} is damaged.")
    return values, _config(path, values["config"])


def _text(
    path: str, settings: Mapping[str, Any], task: Mapping[str, Any]
) -> text_encoding.TextEncoding:
    tokens = settings.get("vocabulary")
    if not isinstance(tokens, list):
        vocabulary = companion_files.read_vocabulary(os.path.dirname(path) or ".")
    else:
        vocabulary = vocabulary_module.Vocabulary(map(str, tokens), source=path)
    return text_encoding.TextEncoding.from_dict(
        {**task, **settings}, path=path, vocabulary=vocabulary
    )


def _notes(text: text_encoding.TextEncoding) -> Iterator[str]:
    if text.vocabulary is None:
        yield (
            "Keras files contain no vocabulary, and there is no vocab.txt beside it; "
            "pass --vocab_file."
        )
    if text.do_lower_case is None:
        yield "Keras files do not record whether the text was lowercased."


def _model_of_weights(
    path: str,
    config: config_module.BertConfig | None,
    stored: Mapping[str, checkpoint_names.Shape],
    head_kinds: Iterable[Any],
) -> tuple[config_module.BertConfig, checkpoint_heads.Head]:
    """Returns configuration and head of the model that a `.weights.h5` belongs to.

    Args:
        path: for messages.
        config: None: the sizes that the file shows, and one attention head.
        stored: {path in the file: shape}.
        head_kinds: kinds of head that are named somewhere, the preferred one first.
    """
    # A head's layers have the release's names; in each, the weights are numbered.
    shown = {}
    for row in checkpoint_heads.HEADS.values():
        for name in row.weights:
            place = f"{name.rpartition('/')[0]}/vars/0".lstrip("/")
            if place in stored:
                shown[name] = stored[place]
    head = checkpoint_heads.head_of(shown)
    if not head.is_known:  # Several kinds of head have such weights.
        same_weights = checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS
        kind = next((kind for kind in head_kinds if kind in same_weights), None)
        head = checkpoint_heads.head_of(shown, kind=kind)
    try:
        return config or _shown_config(stored), head
    except (KeyError, IndexError, ValueError):
        raise ValueError(
            f"{path} does not contain the weights of a model of this package but, for "
            f"example, {min(stored, default='nothing')}; expected those of one of "
            f"{', '.join(_CLASSES)}."
        ) from None


def _kind_of_name(model_name: str | None) -> str | None:
    """Returns the kind of a model named like its class, such as bert_classifier."""
    for kind, row in checkpoint_heads.HEADS.items():
        for name in row.classes:
            if re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() == model_name:
                return kind
    return None


def _shown_config(
    stored: Mapping[str, checkpoint_names.Shape],
) -> config_module.BertConfig:
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


def _model_of(source: source_module.Source) -> Any:
    """Returns a built model with the weights of a `Source`."""
    # A file must not depend on the default dtype of this process.
    model = checkpoint_heads.create_model(
        source.required_config(), source.head, dtype="float32"
    )
    variables = checkpoint_names.checkpoint_variables(model)
    missing = [name for name in variables if name not in source.shapes]
    source.check_complete(missing)
    if missing:
        dense = getattr(model, "bert", model).pooler.dense
        initializer = keras.initializers.TruncatedNormal(
            stddev=model.config.initializer_range, seed=_POOLER_SEED
        )
        dense.kernel.assign(initializer(dense.kernel.shape))
        dense.bias.assign(keras.ops.zeros_like(dense.bias))
    wanted = [name for name in variables if name in source.shapes]
    for name, array in source.read_each(wanted):
        if tuple(array.shape) != tuple(variables[name].shape):
            raise ValueError(
                f"{name} has shape {list(array.shape)} in {source.path}, expected "
                f"{list(variables[name].shape)}; pass the bert_config.json that "
                "belongs to it."
            )
        variables[name].assign(array)
    return model


def _settings_of(source: source_module.Source) -> dict[str, Any]:
    """Returns the values that this package adds to a file, for JSON."""
    values = {
        "head": source.head.kind,
        **source.text.to_dict(),
        "labels": source.head.labels and list(source.head.labels),
        "label_kind": source.head.label_kind,
    }
    return {key: value for key, value in values.items() if value is not None}


def _copy_archive(saved: str, path: str, source: source_module.Source) -> None:
    """Copies what Keras saved and adds to its metadata what Keras leaves out."""
    settings = _settings_of(source)
    if source.vocabulary is not None:
        settings["vocabulary"] = list(source.vocabulary.tokens)
    with (
        zipfile.ZipFile(saved) as old,
        files.complete_or_absent(path, "wb") as file,
        zipfile.ZipFile(file, "w") as new,
    ):
        for info in old.infolist():
            if info.filename == archive.METADATA_MEMBER:
                values = {**json.loads(old.read(info)), _PACKAGE: settings}
                new.writestr(info.filename, json.dumps(values, ensure_ascii=False))
                continue
            # zipfile does not know the size in advance, so allow for more than 4 GB.
            with (
                old.open(info) as source_member,
                new.open(info.filename, "w", force_zip64=True) as target_member,
            ):
                shutil.copyfileobj(source_member, target_member, _CHUNK_BYTES)
