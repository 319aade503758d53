"""Writes splits of TensorFlow Datasets as files in the format that a task reads.

From there on, a data set by name is like any other file: it has a checksum and line
numbers, check_data reads it, and other programs can read it too. A file is written
once, into the folder of the prepared data set.
"""

import functools
import logging
import os
import urllib.parse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from bert_tf import files
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.data import named_datasets

logger = logging.getLogger(__name__)

_FOLDER = "bert_tf"
# Folder inside it. Increase the number when a task's conversion changes, so that files
# from before the change are not used.
_VERSION = "v1"
_OTHER_NAMES = {"validation": "dev"}

# Features of a data set and its records -> pieces of the text of the file.
Convert = Callable[[Any, Iterable[dict[str, Any]]], Iterator[str]]


def has_split(options: Any, number: int) -> bool:
    """Returns whether the data set has one of `tfds_splits`.

    Args:
        options: of the run: `tfds_name`, `tfds_splits` and `data_dir`.
        number: index of the split in `tfds_splits`.

    Raises:
        ImportError, OSError, ValueError: see `named_datasets.prepared_builder`; or a
            split that was given does not exist.
    """
    builder = _builder(options)
    split = _split(options, builder, number)
    if _has_own_splits(options):
        named_datasets.check_split(builder, split)
        return True
    return split in builder.info.splits


def split_path(options: Any, number: int, convert: Convert, extension: str) -> str:
    """Returns the path of a split's file, which is written if there is none yet.

    Args:
        options: of the run: `tfds_name`, `tfds_splits` and `data_dir`.
        number: index of the split in `tfds_splits`.
        convert: yields the text of the file.
        extension: of the file, such as ".json".

    Raises:
        ImportError, OSError, ValueError: see `named_datasets.prepared_builder`; or
            there is no such split, the task cannot use this data set, or the file
            cannot be written.
    """
    builder = _builder(options)
    split = _split(options, builder, number)
    named_datasets.check_split(builder, split)
    return _written(builder, split, convert, extension)


@functools.cache
def _written(builder: Any, split: str, convert: Convert, extension: str) -> str:
    # A split can be "train[:10%]".
    name = "-".join([*builder.info.full_name.split("/"), urllib.parse.quote(split)])
    folder = os.fspath(builder.data_dir)
    name = os.path.join(_VERSION, name + extension)
    path = os.path.join(folder, _FOLDER, name)
    if files.exists(path):
        return path
    try:
        _write(path, builder, split, convert)
    except OSError as error:
        place = urllib.parse.quote(os.path.abspath(folder), safe="")
        own = os.path.join(fetching.default_cache_dir(), "tfds", place)
        logger.warning("%s Its files are written to %s instead.", error, own)
        path = os.path.join(own, name)
        _write(path, builder, split, convert)
    return path


def _write(path: str, builder: Any, split: str, convert: Convert) -> None:
    logger.info("Writing the split %s once as %s.", split, path)
    records = named_datasets.records(builder, split)
    with files.complete_or_absent(path) as file:
        for text in convert(builder.info.features, records):
            file.write(text)


def _builder(options: Any) -> Any:
    if options.tfds_name is None:
        raise ValueError("--tfds_name is missing.")
    return named_datasets.prepared_builder(options.tfds_name, options.data_dir)


def _split(options: Any, builder: Any, number: int) -> str:
    split = options.tfds_splits[number]
    is_known = _has_own_splits(options) or split in builder.info.splits
    return split if is_known else _OTHER_NAMES.get(split, split)


def _has_own_splits(options: Any) -> bool:
    """Returns whether tfds_splits was given."""
    return not options.is_default("tfds_splits")
