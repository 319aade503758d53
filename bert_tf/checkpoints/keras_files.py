"""The format "keras": `.keras` files and, read only, `.weights.h5` files.

Keras names a weight by the attributes that lead to it, such as "bert/layers/pooler/
dense/vars/0". Reading translates these names and creates no model; for writing, Keras
itself saves a model.

Keras has no place for casing, labels and vocabulary. A `.keras` file that this package
wrote has them in its `metadata.json`, under a key that Keras ignores. A separate member
in the zip would make Keras unpack all of it to disk whenever it loads the file.

A `.keras` file is a zip of `config.json`, `metadata.json` and `model.weights.h5`. The
classes that they name are never created.
"""

import collections
import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import keras
import ml_dtypes  # noqa: F401 (registers bfloat16 with NumPy)
import numpy as np

from bert_tf import files
from bert_tf import json_values
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import hdf5
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.modeling import config as config_module
from bert_tf.modeling import keras_model
from bert_tf.modeling import pretrained_model
from bert_tf.tokenization import vocabulary as vocabulary_module

SUFFIX = ".keras"
_WEIGHTS_SUFFIX = ".weights.h5"
_METADATA_MEMBER = "metadata.json"
_WEIGHTS_MEMBER = "model.weights.h5"
# What zipfile and zlib raise for damaged, encrypted or unsupported members.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
)
# The package under which our classes are registered with Keras, and its key in
# metadata.json.
_PACKAGE = "bert_tf"
# Names of the classes that a `.keras` file may contain.
_CLASSES = dict.fromkeys(
    name for row in checkpoint_heads.HEADS.values() for name in row.classes
)
# Arguments of a serialized model that its source keeps.
_KEPT_ARGUMENTS = ("dropout", pretrained_model.PREPROCESSOR)
# Shape of the arguments of a serialized model; see `json_values.unexpected`.
_SHAPE = {
    "dropout?": int | float | None,
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
    ),
}
# Arguments of a preprocessor that are also keys of the package's metadata.
_TEXT_SETTINGS = ("vocabulary", "do_lower_case", "strip_accents", "never_split")
_LAYER = re.compile(r"encoder/encoder_layers/encoder_layer(?:_(\d+))?/")
# Pattern in the release's name of a layer -> the attributes that lead to it.
_ATTRIBUTES = {
    r"^((?:bert/)?)pooler/": r"\1layers/pooler/",
    r"encoder/layer_0/": "encoder/encoder_layers/encoder_layer/",
    r"encoder/layer_(\d+)/": r"encoder/encoder_layers/encoder_layer_\1/",
    r"attention/self/": "attention/self_attention/",
    r"/output\b": "/residual_output",
    r"LayerNorm$": "normalization",
}
_OPTIMIZER = "optimizer/"
# A pooler that other formats leave out is initialized, the same way in every file.
_POOLER_SEED = 12345
_CHUNK_BYTES = 1 << 20
_OVERHEAD_BYTES = 1 << 18  # Upper bound for HDF5 and the settings.


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path ends like one of Keras's files."""
    return os.fspath(path).endswith((SUFFIX, _WEIGHTS_SUFFIX))


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a `.keras` or `.weights.h5` file.

    What a file does not contain is read from bert_config.json, vocab.txt and task.json
    beside it. Only a `.weights.h5` may lack the configuration; the source then has
    none. No class that a file names is created.
    """
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    arguments: Mapping[str, Any] = {}
    config: config_module.BertConfig | None
    settings: dict[str, Any] = {}
    with _opened_weights(path) as weights:
        stored = {
            place: tuple(data_set.shape)
            for place, data_set in hdf5.data_sets(weights).items()
        }
        # Keras stores a model's name at its own, possibly empty, group of variables.
        name = weights["vars"].attrs.get("name") if "vars" in weights else None
    if path.endswith(SUFFIX):
        serialized, metadata = _read_members(path)
        name, arguments = _serialized_model(path, serialized)
        try:
            config = config_module.BertConfig.from_dict(arguments["config"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        text = arguments.get(pretrained_model.PREPROCESSOR) or {}
        settings = {key: text[key] for key in _TEXT_SETTINGS if key in text}
        stated = metadata.get(_PACKAGE)
        settings |= stated if isinstance(stated, dict) else {}
    else:
        config = companion_files.read_config(folder)
    places = _places(stored)
    if checkpoint_names.WORD_EMBEDDINGS not in places:
        raise ValueError(
            f"{path} does not contain the weights of a model of this package but, for "
            f"example, {min(stored, default='nothing')}; expected those of one of "
            f"{', '.join(_CLASSES)}."
        )
    shapes = {name: stored[places[name]] for name in sorted(places)}
    task = companion_files.read_task(folder)
    values = {**task, **_class_values(name or ""), **settings}
    head = checkpoint_heads.head_of_task(shapes, values)
    unmapped = sorted(stored.keys() - places.values())
    if config is not None:
        is_plain = not checkpoint_heads.layers_between(unmapped)
        checked = head if is_plain else checkpoint_heads.Head(kind="encoder")
        checkpoint_heads.check_weights(path, shapes, config, checked)
    return source_module.Source(
        path=path,
        format="keras",
        shapes=shapes,
        read_each=lambda wanted: _read_each(path, places, wanted),
        head=head,
        config=config,
        text=_text(path, values),
        unmapped=tuple(n for n in unmapped if not n.startswith(_OPTIMIZER)),
        arguments={k: v for k, v in arguments.items() if k in _KEPT_ARGUMENTS},
    )


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a `Source`: Keras names weights by itself."""
    config = source.required_config()
    known = {
        *checkpoint_names.encoder_names(config.num_hidden_layers),
        *source.head.row.weights,
    }
    return source_module.Placement(
        places={name: name for name in source.shapes if name in known}
    )


def write(source: source_module.Source, path: str | os.PathLike[str]) -> None:
    """Writes a `.keras` file into an existing folder.

    The complete model is in memory once. A pooler that the source lacks gets a new
    model's values, which are the same every time.
    """
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    model = _model_of(source)
    # If the disk fills up, HDF5 crashes the process instead of raising an error.
    num_bytes = sum(weight.numpy().nbytes for weight in model.weights)
    if shutil.disk_usage(folder).free < 2 * (num_bytes + _OVERHEAD_BYTES):
        raise OSError(f"{path}: cannot be written: {os.strerror(errno.ENOSPC)}.")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".keras.") as temporary:
        saved = os.path.join(temporary, f"saved{SUFFIX}")
        model.save(saved)
        _copy_archive(saved, path, source)


def _serialized_model(path: str, values: Mapping[str, Any]) -> tuple[str, Any]:
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
    return class_name, arguments


def _text(path: str, values: Mapping[str, Any]) -> text_encoding.TextEncoding:
    tokens = values.get("vocabulary")
    if not isinstance(tokens, list):
        vocabulary = companion_files.read_vocabulary(os.path.dirname(path) or ".")
    else:
        vocabulary = vocabulary_module.Vocabulary(map(str, tokens), source=path)
    return text_encoding.TextEncoding.from_dict(
        values, path=path, vocabulary=vocabulary
    )


def _class_values(class_name: str) -> dict[str, str]:
    """Returns what a task.json would say about the models of a class.

    Unless it was given a name, a model is named like its class: bert_classifier.
    """
    class_name = class_name.replace("_", "").lower()
    for kind, row in checkpoint_heads.HEADS.items():
        for label_kind, name in row.models.items():
            if name.lower() == class_name:
                return {"task": kind, "label_kind": label_kind}
    return {}


def _places(stored: Collection[str]) -> dict[str, str]:
    """Returns {release's name: path in the file} of the weights in a file.

    The variables of a layer are numbered in the order of the release's names.
    """
    layers = {match[1] for match in map(_LAYER.search, stored) if match}
    names = checkpoint_names.encoder_names(len(layers))
    for row in checkpoint_heads.HEADS.values():
        names += row.weights
    places, numbers = {}, collections.Counter[str]()
    # The file of an encoder alone leaves the scope out.
    scope = f"{checkpoint_names.ENCODER_SCOPE}/"
    is_encoder = not any(path.startswith(scope) for path in stored)
    for name in dict.fromkeys(names):
        layer = name.rpartition("/")[0]
        if is_encoder:
            layer = layer.removeprefix(scope)
        for pattern, attributes in _ATTRIBUTES.items():
            layer = re.sub(pattern, attributes, layer)
        place = f"{layer}/vars/{numbers[layer]}".removeprefix("/")
        numbers[layer] += 1
        if place in stored:
            places[name] = place
    return places


def _read_each(
    path: str, places: Mapping[str, str], wanted: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    with _opened_weights(path) as weights:
        for name in wanted:
            stored = weights[places[name]]
            # HDF5 has no bfloat16: Keras writes its bytes and names the type.
            dtype = stored.attrs.get("dtype", stored.dtype)
            yield name, np.array(stored, dtype).astype("float32")


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
        for name in missing:
            del variables[name]
    source_module.assign(source.path, source.shapes, source.read_each, variables)
    return model


def _copy_archive(saved: str, path: str, source: source_module.Source) -> None:
    """Copies what Keras saved and adds to its metadata what Keras leaves out."""
    settings = source.task_values()
    if source.vocabulary is not None:
        settings["vocabulary"] = list(source.vocabulary.tokens)
    with (
        zipfile.ZipFile(saved) as old,
        files.complete_or_absent(path, "wb") as file,
        zipfile.ZipFile(file, "w") as new,
    ):
        for info in old.infolist():
            if info.filename == _METADATA_MEMBER:
                values = {**json.loads(old.read(info)), _PACKAGE: settings}
                new.writestr(info.filename, json.dumps(values, ensure_ascii=False))
                continue
            # zipfile does not know the size in advance, so allow for more than 4 GB.
            with (
                old.open(info) as source_member,
                new.open(info.filename, "w", force_zip64=True) as target_member,
            ):
                shutil.copyfileobj(source_member, target_member, _CHUNK_BYTES)


def _read_members(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the JSON members of a `.keras` file.

    Returns:
        The model as Keras serialized it (class_name, config, ...), and the metadata:
        keras_version, and what this package adds.
    """
    with _archive(path) as archive:
        config = _read_json(archive, "config.json", path)
        return config, _read_json(archive, _METADATA_MEMBER, path)


@contextlib.contextmanager
def _opened_weights(path: str) -> Iterator[Any]:
    """Yields the `h5py.File` with the weights of either file."""
    with contextlib.ExitStack() as stack:
        local = None
        if path.endswith(SUFFIX):
            # Keras can read them within the zip, but it seeks in them, and zipfile then
            # reads the member again from its start.
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            local = os.path.join(folder, _WEIGHTS_MEMBER)
            with _archive(path) as archive, open(local, "wb") as copy:
                shutil.copyfileobj(archive.open(_WEIGHTS_MEMBER), copy, _CHUNK_BYTES)
        # Keras before 3.15 reads values of other files.
        yield stack.enter_context(hdf5.opened(path, local))


@contextlib.contextmanager
def _archive(path: str) -> Iterator[zipfile.ZipFile]:
    """Yields a `.keras` file; reading a member to its end also checks its checksum."""
    try:
        with files.open_file(path, "rb") as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(set(names)) != len(names):
                raise ValueError(
                    f"{path} has a member twice; expected a file that model.save wrote."
                )
            yield archive
    except KeyError as error:
        raise ValueError(
            f"{path}: {error.args[0]}; expected a file that model.save wrote, with "
            "config.json, metadata.json and model.weights.h5."
        ) from None
    except (*_ZIP_ERRORS, OSError) as error:
        # A wrong offset in the list of members is an EINVAL.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise companion_files.damaged(path, error) from None


def _read_json(archive: zipfile.ZipFile, name: str, path: str) -> dict[str, Any]:
    text = archive.read(name)
    values = files.parse_json(text, f"{path}: its {name}", advice="save it again")
    if not isinstance(values, dict):
        raise ValueError(f"{path}: its {name} is not a JSON object.")
    return values
