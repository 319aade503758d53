"""The release's checkpoint format, written and read by name.

A checkpoint is called by its prefix, such as `run/model.ckpt-1000`. It is made of
`PREFIX.data-00000-of-00001` and, written after it, `PREFIX.index`.
"""

import contextlib
import dataclasses
import logging
import os
import re
import uuid

import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import names
from bert_tf.checkpoints import state_file

logger = logging.getLogger(__name__)

_PART = re.compile(r"\.(index|data-\d{5}-of-\d{5})$")
# A checkpoint that is being written has this in its name.
PARTIAL = ".partial"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What became of a checkpoint's tensors and a model's weights; names, sorted."""

    prefix: str  # The checkpoint that was read.
    read: tuple[str, ...]  # Weights that now have the checkpoint's values.
    missing: tuple[str, ...]  # Weights that the checkpoint lacks: left as they were.
    left_over: tuple[str, ...]  # Tensors of the checkpoint that the model has not.
    optimizer: tuple[str, ...]  # Slots and step: not weights, so not read here.

    def __str__(self):
        text = f"{self.prefix}: {len(self.read)} weights read"
        if self.missing:
            text += f"; not in it, so newly initialized: {', '.join(self.missing)}"
        if self.left_over:
            text += f"; in it, but not in the model: {', '.join(self.left_over)}"
        return text


def save(prefix, tensors):
    """Writes a checkpoint; its files appear whole, the index last.

    Args:
        prefix: path without `.index`. Folders above it are made.
        tensors: dict from name to a variable, tensor or array. Variables are not
            copied when they are in the host's memory.

    Raises:
        OSError: it cannot be written, for example because the disk is full. What was
            there before is as it was.
    """
    prefix = os.fspath(prefix)
    folder, name = os.path.split(prefix)
    files.make_folders(folder or ".")
    # Object stores cannot rename; there SaveV2 writes data, then index, by itself.
    temporary = prefix
    if "://" not in prefix:
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}{PARTIAL}")
    ordered = sorted(tensors)
    try:
        with _clear_write_errors(prefix):
            tf.raw_ops.SaveV2(
                prefix=temporary,
                tensor_names=ordered,
                shape_and_slices=[""] * len(ordered),
                tensors=[tf.convert_to_tensor(tensors[name]) for name in ordered],
            )
        if temporary != prefix:
            _rename_parts(temporary, prefix)
    except BaseException:
        if temporary != prefix:
            remove_partial(folder or ".", os.path.basename(temporary))
        raise


def remove_partial(folder, start):
    """Removes the files of unfinished checkpoints whose names begin with `start`.

    Only names that `save` gives to what it has not finished are touched.
    """
    for name in files.list_folder(folder):
        if name.startswith(start) and PARTIAL in name and name.startswith("."):
            files.remove(os.path.join(folder, name))


def read_names_and_shapes(path):
    """Returns {name: shape} of every tensor in a checkpoint.

    Args:
        path: a prefix, or a folder with a `checkpoint` file.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the path is no prefix, or the files cannot be read.
    """
    prefix = resolve(path)
    return dict(_open(prefix).get_variable_to_shape_map())


def read(path, wanted):
    """Returns {name: ndarray} of some tensors of a checkpoint.

    Args:
        path: a prefix, or a folder with a `checkpoint` file.
        wanted: names.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: a tensor is not in it, or the files are damaged.
    """
    return dict(read_each(path, wanted))


def read_each(path, wanted):
    """Yields (name, ndarray) of some tensors, one in memory at a time.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: a tensor is not in it, or the files are damaged.
    """
    prefix = resolve(path)
    reader = _open(prefix)
    shapes = reader.get_variable_to_shape_map()
    for name in wanted:
        if name not in shapes:
            raise ValueError(f"The checkpoint {prefix} has no tensor {name}.")
        with _clear_read_errors(prefix):
            tensor = reader.get_tensor(name)
        yield name, tensor


def assign(path, variables):
    """Gives variables the values that a checkpoint has for them.

    Shapes are compared before anything is assigned. One tensor is in memory at a time.

    Args:
        path: a prefix, or a folder with a `checkpoint` file.
        variables: {name in the checkpoint: variable}; works under any tf.distribute
            strategy.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: a tensor is not in it or has another shape, or the files are
            damaged.
    """
    prefix = resolve(path)
    shapes = read_names_and_shapes(prefix)
    for name, variable in variables.items():
        found, expected = shapes.get(name), list(variable.shape)
        if found is not None and list(found) != expected:
            raise ValueError(
                f"{name} has shape {list(found)} in the checkpoint {prefix}, expected "
                f"{expected}; give the bert_config.json that belongs to the checkpoint."
            )
    for name, tensor in read_each(prefix, variables):
        variables[name].assign(tensor)


def load_checkpoint(model, path):
    """Gives a model the weights of a checkpoint.

    Args:
        model: `BertModel` or any task's model; is built if it is not.
        path: a prefix such as `uncased_L-12_H-768_A-12/bert_model.ckpt`, or a folder
            with a `checkpoint` file, whose latest checkpoint is taken.

    Returns:
        A `LoadReport`: weights read, weights missing in the checkpoint (they keep
        their values), tensors left over.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: nothing of the encoder is in it, a shape differs, or the files
            cannot be read.

    Example:
        report = load_checkpoint(model, "uncased_L-12_H-768_A-12/bert_model.ckpt")
        print(report)
    """
    prefix = resolve(path)
    variables = names.checkpoint_variables(model)
    shapes = read_names_and_shapes(prefix)
    found = {name: variable for name, variable in variables.items() if name in shapes}
    if not any(name.startswith(f"{names.ENCODER_SCOPE}/") for name in found):
        example = min(shapes, default="none")
        raise ValueError(
            f"Nothing of the encoder was found in the checkpoint {prefix}: expected "
            f"names such as bert/embeddings/word_embeddings, got {example}; give a "
            "BERT checkpoint."
        )
    assign(prefix, found)
    others = set(shapes) - set(variables)
    optimizer = {name for name in others if names.is_of_optimizer(name)}
    report = LoadReport(
        prefix=prefix,
        read=tuple(sorted(found)),
        missing=tuple(sorted(set(variables) - set(found))),
        left_over=tuple(sorted(others - optimizer)),
        optimizer=tuple(sorted(optimizer)),
    )
    logger.info("%s", report)
    return report


def resolve(path):
    """Returns the prefix that a path stands for.

    Args:
        path: a prefix, or a folder with a `checkpoint` file.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the path is one of a checkpoint's files, or a file of another kind.
    """
    path = os.fspath(path)
    part = _PART.search(path)
    if part:
        raise ValueError(
            f"{path} is one file of a checkpoint; give the name that its files have in "
            f"common: {path[: part.start()]}"
        )
    if files.is_folder(path):
        state = state_file.read(path)
        if state is None:
            raise ValueError(
                f"{path} is a folder without a file named checkpoint; give the prefix "
                f"of a checkpoint in it, such as {os.path.join(path, 'model.ckpt')}"
            )
        path = state.latest
    if state_file.is_complete(path):
        return path
    for part in ("index", "data-00000-of-00001"):
        if not files.exists(f"{path}.{part}"):
            raise FileNotFoundError(f"No checkpoint {path}: there is no {path}.{part}")
    raise FileNotFoundError(f"No checkpoint {path}: its data file is missing.")


def _rename_parts(temporary, prefix):
    for path in (*state_file.data_files(temporary), f"{temporary}.index"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        files.rename(path, prefix + path.removeprefix(temporary))


def _open(prefix):
    with _clear_read_errors(prefix):
        return tf.train.load_checkpoint(prefix)


@contextlib.contextmanager
def _clear_read_errors(prefix):
    try:
        yield
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        reason = _first_line(error)
        raise ValueError(
            f"The checkpoint {prefix} cannot be read: it is damaged or cut off "
            f"({reason}); copy it again{_older(prefix)}."
        ) from error


def _older(prefix):
    """Returns the words that name the next older checkpoint of a run, if any."""
    try:
        state = state_file.read(os.path.dirname(prefix) or ".")
    except (OSError, ValueError):
        return ""
    if state is None or prefix not in state.prefixes:
        return ""
    older = state.prefixes[: state.prefixes.index(prefix)]
    older = [other for other in older if state_file.is_complete(other)]
    return f", or take the one before it, {older[-1]}" if older else ""


@contextlib.contextmanager
def _clear_write_errors(prefix):
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise OSError(
            f"The checkpoint {prefix} cannot be written: the disk or the memory is "
            f"full ({_first_line(error)}); earlier checkpoints are as they were."
        ) from error
    except tf.errors.OpError as error:
        raise OSError(
            f"The checkpoint {prefix} cannot be written ({_first_line(error)}); "
            "check the folder and its permissions."
        ) from error


def _first_line(error):
    message = getattr(error, "message", None) or str(error)
    return message.split("\n")[0].split(" [Op:")[0].rstrip(".")[:200]
