"""Data sets of TensorFlow Datasets by name, for the flag --tfds_name.

A data set is downloaded and prepared on first use. Its records are dictionaries of
plain Python values:

    data = named_datasets.open_data_set("glue/mrpc", data_dir)
    next(data.records("train"))
    # {"idx": 0, "label": "equivalent", "sentence1": "...", "sentence2": "..."}

A task that reads files gets each split as a file in its own format (`part_file`), with
a checksum and line numbers like any other file.
"""

import dataclasses
import fnmatch
import functools
import json
import logging
import os
import re
import urllib.parse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import numpy as np

from bert_tf import files

logger = logging.getLogger(__name__)

_SPLIT_NAME = re.compile(r"[\w-]+")
# Names of the splits of each set, the preferred one first.
_SPLITS = {
    "train": ("train", "translate-train"),
    "dev": ("validation", "dev", "validation_matched", "test"),
    "test": ("test", "test_matched"),
}
# Folder of the written files, in that of the prepared data set. Increase the number
# when a task's conversion changes, so that files from before the change are not used.
_FOLDER = os.path.join("bert_tf", "v1")
_CACHE = "~/.cache/bert_tf"  # For what cannot be written there.

_Value = TypeVar("_Value")


def declared(values: Mapping[str, _Value], name: str) -> _Value | None:
    """Returns the value of the first pattern that matches a data set, or None.

    Args:
        values: values by pattern, such as "glue/mrpc" or "xquad/*".
        name: of a data set, such as "glue/mrpc:2.0.0"; the version is ignored.
    """
    name = name.partition(":")[0]
    matches = (v for key, v in values.items() if fnmatch.fnmatchcase(name, key))
    return next(matches, None)


@functools.cache
def open_data_set(name: str, data_dir: str | None) -> "DataSet":
    """Returns a data set, which is downloaded unless it is prepared.

    Args:
        name: such as "glue/mrpc" or "squad/v1.1:3.0.0".
        data_dir: the folder of TensorFlow Datasets. None: its default.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        ValueError: there is no data set of this name.
        OSError: the data set cannot be downloaded or prepared.
    """
    try:
        import tensorflow_datasets
    except ModuleNotFoundError:
        raise ImportError(
            "--tfds_name needs tensorflow-datasets, which is not installed; "
            "pip install 'bert_tf[datasets]'."
        ) from None
    try:
        builder = tensorflow_datasets.builder(name, data_dir=data_dir)
    except (tensorflow_datasets.core.DatasetNotFoundError, ValueError, KeyError) as e:
        reason = (str(e).strip().splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"--tfds_name={name}: the data set does not exist ({reason:.200})."
        ) from None
    if not builder.is_prepared():
        logger.info(
            "Downloading and preparing %s in %s. If there is no network, this fails "
            "after about three minutes.",
            name,
            builder.data_dir,
        )
    try:
        builder.download_and_prepare()
    # Builders raise errors of any class: each has its own code for its files.
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise OSError(
            f"--tfds_name={name} cannot be downloaded or prepared: {reason}. Without a "
            "network, prepare the data set on another machine (bert_tf does so with "
            f"the same --tfds_name) and copy its folder to {builder.data_dir}."
        ) from error
    return DataSet(name=name, builder=builder)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
    """A prepared data set. Create it with `open_data_set`."""

    name: str  # As the user gave it.
    builder: Any  # Of tensorflow-datasets.

    @property
    def full_name(self) -> str:
        """Name, configuration and version, such as "glue/mrpc/2.0.0"."""
        return self.builder.info.full_name

    @property
    def features(self) -> Any:
        """Features of TensorFlow Datasets by column."""
        return self.builder.info.features

    @property
    def splits(self) -> Mapping[str, Any]:
        """Facts about each split, such as `num_examples`, by name."""
        return self.builder.info.splits

    def check_split(self, split: str) -> None:
        """Raises a ValueError unless there is a split such as "train[:10%]"."""
        name = _SPLIT_NAME.match(split)
        if name is None or name[0] not in self.splits:
            raise ValueError(
                f"--tfds_name={self.name} has no split {split}, only "
                f"{', '.join(self.splits)}; write the splits to files of your own."
            )

    def split_of(self, part: str) -> str | None:
        """Returns the split of a set, "train", "dev" or "test"; None if it is missing.

        A data set without a development set is evaluated on its test set.
        """
        split = next(filter(self.splits.__contains__, _SPLITS[part]), None)
        if (part, split) == ("dev", "test"):
            logger.warning(
                "--tfds_name=%s has no development set, so its test set is evaluated. "
                "Scores that choose a step, a threshold or settings are then no test "
                "scores.",
                self.name,
            )
        return split

    def check_columns(self, names: Iterable[str]) -> None:
        """Raises a ValueError unless there are these columns."""
        for name in names:
            if name not in self.features:
                raise ValueError(
                    f"--tfds_name={self.name} has no column {name}; the columns are "
                    f"{', '.join(self.features)}."
                )

    def only_text(self) -> str:
        """Returns the name of the only column of text, or raises a ValueError."""
        texts = [
            name
            for name, feature in self.features.items()
            if feature.np_dtype in (object, str)
        ]
        if len(texts) != 1:
            raise ValueError(
                f"--tfds_name={self.name}: expected one column of text, got "
                f"{', '.join(texts) or 'none'}; choose with --text_column, and with "
                "--text_b_column for pairs."
            )
        return texts[0]

    def class_names(self, column: str) -> Sequence[str] | None:
        """Returns the names of the classes in a column; None if it has numbers.

        Raises:
            ValueError: it has neither names nor numbers.
        """
        feature = self.features[column]
        if np.dtype(feature.np_dtype).kind == "f":
            return None
        names = getattr(feature, "names", None)
        if not names:
            raise ValueError(
                f"--tfds_name={self.name}: the column {column} has no class names; "
                "choose another column with --label_column."
            )
        return names

    def records(self, split: str, class_names: bool = True) -> Iterator[dict[str, Any]]:
        """Yields the examples of a split, always in the same order.

        Args:
            split: such as "train" or "train[:10%]".
            class_names: whether a class is its name (and None if it is unknown) rather
                than its number.

        Raises:
            ValueError: there is no such split.
        """
        import tensorflow_datasets

        self.check_split(split)
        # Files are read one after the other, without shuffling.
        config = tensorflow_datasets.ReadConfig(
            interleave_cycle_length=1, try_autocache=False
        )
        dataset = self.builder.as_dataset(split=split, read_config=config)
        for record in dataset.as_numpy_iterator():
            yield _plain(record, self.features, class_names)


# A data set and a split -> pieces of the text of a file.
Lines = Callable[[DataSet, str], Iterator[str]]


def table_lines(data: DataSet, split: str, class_names: bool = True) -> Iterator[str]:
    """Yields the lines of a table (.jsonl); a nested value is named "outer/inner"."""
    for record in data.records(split, class_names):
        yield json.dumps(dict(_cells(record)), ensure_ascii=False) + "\n"


def _cells(values):
    for name, value in values.items():
        if isinstance(value, dict):
            for inner_name, inner_value in _cells(value):
                yield f"{name}/{inner_name}", inner_value
        else:
            yield name, value


def part_file(
    options: Any, part: str, lines: Lines, extension: str, *, is_needed: bool = True
) -> str | None:
    """Returns the path of a set as a file, which is written if there is none yet.

    Args:
        options: of the run, with `tfds_name` and `data_dir`.
        part: the set, "train", "dev" or "test".
        lines: yields the text of the file.
        extension: of the file, such as ".json".
        is_needed: whether a missing split is an error. Otherwise, None is returned.

    Raises:
        ImportError, OSError, ValueError: as `open_data_set`; or the split does not
            exist, the task cannot use this data set, or the file cannot be written.
    """
    data = open_data_set(options.tfds_name, options.data_dir)
    split = data.split_of(part)
    if split is None and not is_needed:
        return None
    split = split or _SPLITS[part][0]
    data.check_split(split)
    name = data.full_name.replace("/", "-") + "-" + urllib.parse.quote(split)

    def written(folder):
        path = os.path.join(folder, _FOLDER, name + extension)
        if not files.exists(path):
            logger.info("Writing the split %s once as %s.", split, path)
            with files.complete_or_absent(path) as file:
                for text in lines(data, split):
                    file.write(text)
        return path

    folder = os.fspath(data.builder.data_dir)
    try:
        return written(folder)
    except OSError as error:
        cache = os.path.expanduser(os.environ.get("BERT_TF_CACHE") or _CACHE)
        place = urllib.parse.quote(os.path.abspath(folder), safe="")
        folder = os.path.join(cache, "tfds", place)
        logger.warning("%s Its files are written to %s instead.", error, folder)
        return written(folder)


def part_files(options: Any, lines: Lines, extension: str) -> dict[str, str | None]:
    """Returns `part_file` of each set; only those that the run reads are needed.

    Args:
        options: of the run, with `sets_to_read`.
        lines: see `part_file`.
        extension: of the files, such as ".jsonl".
    """
    return {
        part: part_file(
            options, part, lines, extension, is_needed=part in options.sets_to_read
        )
        for part in _SPLITS
    }


def _plain(value, feature, class_names):
    """Returns a NumPy value as plain Python; None if it has another form."""
    feature = getattr(feature, "feature", feature)  # That of a sequence's values.
    if isinstance(value, dict):
        return {n: _plain(v, feature[n], class_names) for n, v in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(one, feature, class_names) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, np.generic):
        return None
    if class_names and hasattr(feature, "int2str"):
        # Test sets without labels contain -1.
        return feature.int2str(number) if (number := int(value)) >= 0 else None
    # float32 as its shortest text: 3.8, not 3.799999952316284.
    return float(str(value)) if isinstance(value, np.floating) else value.item()
