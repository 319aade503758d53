"""The format "keras": `.keras` and `.weights.h5` files, opened and written."""

import dataclasses
import json
import os
import shutil
import tempfile
import zipfile

import h5py
import keras

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.keras_files import archive
from bert_tf.checkpoints.keras_files import layout
from bert_tf.checkpoints.keras_files import settings as settings_module

NAME = "keras"
_SUFFIXES = (archive.ARCHIVE_SUFFIX, archive.WEIGHTS_SUFFIX)
# Weights without effect on a head's output that other formats leave out. They begin
# like those of a new model, and are the same in every file.
_OPTIONAL = "bert/pooler/"
_POOLER_SEED = 12345


def is_at(path):
    """Returns whether a path ends like one of Keras's files."""
    return os.fspath(path).endswith(_SUFFIXES)


def open_source(path):
    """Returns the `Source` of a `.keras` or `.weights.h5` file.

    What a file does not hold is looked for beside it, in bert_config.json, vocab.txt
    and task.json; only a `.weights.h5` may lack the configuration.

    Args:
        path: a file that `model.save`, `model.save_weights` or `write` wrote.

    Raises:
        OSError: there is no such file.
        ValueError: it is cut short or damaged, or holds another class's model, which
            is named and not made.
    """
    path = os.fspath(path)
    settings = settings_module.read(path)
    in_file = archive.shapes(path)
    weights = [name for name in in_file if not name.startswith(layout.OPTIMIZER)]
    kinds = _kinds(path, settings, weights)
    num_layers = layout.num_layers_of(weights)
    if settings.config is not None:
        num_layers = settings.config.num_hidden_layers
    places = layout.places(kinds[0], num_layers)
    _check_complete(path, places, in_file)
    shapes = {name: in_file[place] for name, place in sorted(places.items())}
    return source_module.Source(
        path=path,
        format=NAME,
        shapes=shapes,
        read_each=lambda wanted: _read_each(path, places, wanted),
        head=_head(shapes, kinds, settings),
        config=settings.config,
        vocabulary=settings.vocabulary,
        do_lower_case=settings.do_lower_case,
        unmapped=tuple(sorted(set(weights) - set(places.values()))),
        optimizer=tuple(sorted(set(in_file) - set(weights))),
        own_names=places,
        notes=tuple(_notes(settings)),
    )


def placement(source):
    """Returns the `Placement` of a `Source` in a `.keras` or `.weights.h5` file.

    Raises:
        ValueError: the source has no configuration.
    """
    config = _config_of(source)
    places = layout.places(source.head.kind, config.num_hidden_layers)
    return source_module.Placement(
        places={name: place for name, place in places.items() if name in source.shapes},
        without_place=tuple(sorted(set(source.shapes) - set(places))),
    )


def write(source, path):
    """Writes a `.keras` or a `.weights.h5` file, complete or not at all.

    The whole model is in memory once. A pooler that the source lacks gets a new
    model's values, the same ones every time.

    Args:
        source: `Source` with a configuration.
        path: the file, whose name's end says which of both it is.

    Raises:
        OSError: it cannot be written.
        ValueError: another end, no configuration, or a weight is missing.
    """
    path = os.fspath(path)
    suffix = next((suffix for suffix in _SUFFIXES if path.endswith(suffix)), None)
    if suffix is None:
        raise ValueError(
            f"{path}: expected a name that ends with {' or '.join(_SUFFIXES)}."
        )
    model = _model_of(source)
    beside = None if files.is_remote(path) else os.path.dirname(path) or "."
    if beside is not None:
        files.make_folders(beside)
    with tempfile.TemporaryDirectory(dir=beside, prefix=".keras.") as folder:
        saved = os.path.join(folder, f"saved{suffix}")
        if suffix == archive.ARCHIVE_SUFFIX:
            model.save(saved)
            _copy_archive(saved, path, source)
        else:
            model.save_weights(saved)
            _add_settings(saved, source)
            with open(saved, "rb") as old, files.complete_or_absent(path, "wb") as new:
                shutil.copyfileobj(old, new)


def _kinds(path, settings, weights):
    """Returns the kinds of head that a file may have, the likeliest first."""
    if settings.kind in checkpoint_heads.KINDS:
        return [settings.kind]
    kinds = layout.kinds_of(path, weights)
    if not kinds:
        raise ValueError(
            f"{path} holds the weights of none of this package's models, such as "
            f"{min(weights, default='nothing')}; expected those of one of "
            f"{', '.join(settings_module.KIND_OF_CLASS)}."
        )
    return [settings.task] if settings.task in kinds else kinds


def _check_complete(path, places, in_file):
    missing = sorted(name for name, place in places.items() if place not in in_file)
    if missing:
        raise ValueError(
            f"{path} lacks {len(missing)} of {len(places)} weights, such as "
            f"{missing[0]}; it is damaged, of another size than its configuration, or "
            f"of a Keras that lays files out otherwise than {keras.__version__}."
        )


def _read_each(path, places, wanted):
    wanted = list(wanted)
    unknown = [name for name in wanted if name not in places]
    if unknown:
        raise ValueError(f"{path} has no weight {unknown[0]}.")
    arrays = archive.read_each(path, [places[name] for name in wanted])
    for name, (_, array) in zip(wanted, arrays, strict=True):
        yield name, array


def _head(shapes, kinds, settings):
    kind = kinds[0] if len(kinds) == 1 else None
    label_kind = settings.label_kind or checkpoint_heads.LABEL_KINDS[0]
    head = checkpoint_heads.head_of(shapes, kind=kind, label_kind=label_kind)
    labels = settings.labels
    if labels is None or len(labels) != head.num_labels:
        return head
    return dataclasses.replace(head, labels=tuple(labels), is_known=True)


def _notes(settings):
    if settings.vocabulary is None:
        yield (
            "Keras's files hold no vocabulary, and there is no vocab.txt beside it; "
            "give --vocab_file."
        )
    if settings.do_lower_case is None:
        yield "Keras's files do not say whether the text was lower-cased."


def _config_of(source):
    if source.config is None:
        raise ValueError(
            f"There is no bert_config.json beside {source.path}; give "
            "--bert_config_file."
        )
    return source.config


def _model_of(source):
    """Returns a built model with the weights of a `Source`."""
    # A file must not depend on the dtype that this process happens to have.
    model = checkpoint_heads.create_model(
        _config_of(source), source.head, dtype="float32"
    )
    variables = checkpoint_names.checkpoint_variables(model)
    missing = [name for name in variables if name not in source.shapes]
    for name in missing:
        if not name.startswith(_OPTIONAL):
            raise ValueError(
                f"{source.path} has no {name}, without which there is no "
                f"{type(model).__name__}."
            )
    if missing:
        _initialize_pooler(model)
    wanted = [name for name in variables if name in source.shapes]
    for name, array in source.read_each(wanted):
        if tuple(array.shape) != tuple(variables[name].shape):
            raise ValueError(
                f"{name} has shape {list(array.shape)} in {source.path}, expected "
                f"{list(variables[name].shape)}; give the bert_config.json that "
                "belongs to it."
            )
        variables[name].assign(array)
    return model


def _initialize_pooler(model):
    encoder = getattr(model, "bert", model)
    dense = encoder.pooler.dense
    initializer = keras.initializers.TruncatedNormal(
        stddev=model.config.initializer_range, seed=_POOLER_SEED
    )
    dense.kernel.assign(initializer(dense.kernel.shape))
    dense.bias.assign(keras.ops.zeros_like(dense.bias))


def _add_settings(path, source):
    values = settings_module.values_of(source, with_vocabulary=False)
    values["config"] = source.config.to_dict()
    with h5py.File(path, "a") as weights:
        weights.attrs[archive.OWN_KEY] = json.dumps(values)


def _copy_archive(saved, path, source):
    """Copies what Keras saved, with what it leaves out added to its metadata."""
    own = settings_module.values_of(source, with_vocabulary=True)
    with (
        zipfile.ZipFile(saved) as old,
        files.complete_or_absent(path, "wb") as file,
        zipfile.ZipFile(file, "w") as new,
    ):
        for info in old.infolist():
            if info.filename == archive.METADATA_MEMBER:
                values = {**json.loads(old.read(info)), archive.OWN_KEY: own}
                new.writestr(info.filename, json.dumps(values, ensure_ascii=False))
                continue
            # The size is not known to the copy beforehand: allow for 4 GB and more.
            with (
                old.open(info) as source_member,
                new.open(info.filename, "w", force_zip64=True) as target_member,
            ):
                shutil.copyfileobj(source_member, target_member, 1 << 20)
