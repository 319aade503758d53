"""Data sets of TensorFlow Datasets by name, for the flag --tfds_name.

A data set is downloaded and prepared on first use. Each split becomes a table, with a
checksum and line numbers like any other file:

    data = named_datasets.open_data_set("glue/mrpc", data_dir)
    named_datasets.split_tables(data, needed=["train"])["train"]  # Path of a .jsonl.
    # {"idx": 0, "id": 0, "label": "equivalent", "sentence1": "...", ...}
"""

import dataclasses
import json
import logging
import os
import urllib.parse
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import machine

logger = logging.getLogger(__name__)

# Names of the splits of each set, the preferred one first.
_SPLITS = {
    "train": ("train",),
    "dev": ("validation", "dev", "validation_matched", "test"),
    "test": ("test", "test_matched"),
}
# Folder of the written tables, in that of the prepared data set. Increase the number
# when `_lines` changes, so that tables from before the change are not used.
_FOLDER = os.path.join("bert_tf", "v1")


def open_data_set(name: str, data_dir: str | None) -> "DataSet":
    """Returns a data set, which is downloaded unless it is prepared.

    Args:
        name: such as "glue/mrpc" or "imdb_reviews/plain_text:1.0.0".
        data_dir: the folder of TensorFlow Datasets. None: its default.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        ValueError: there is no data set of this name.
        OSError: the data set cannot be downloaded or prepared.
    """
    tensorflow_datasets = machine.package(
        "tensorflow_datasets", extra="datasets", needed_for="--tfds_name"
    )
    try:
        builder = tensorflow_datasets.builder(name, data_dir=data_dir)
    except (tensorflow_datasets.core.DatasetNotFoundError, ValueError, KeyError) as e:
        reason = (str(e).strip().splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"--tfds_name={name}: the data set does not exist ({reason:.200})."
        ) from None
    try:
        builder.download_and_prepare()
    # Builders raise errors of any class: each has its own code for its files.
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise OSError(
            f"--tfds_name={name} cannot be downloaded or prepared: {reason}. Without a "
            "network, prepare the data set on another machine and copy its folder to "
            f"{builder.data_dir}."
        ) from error
    return DataSet(name=name, builder=builder)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
    """A prepared data set. Create it with `open_data_set`."""

    name: str  # As the user gave it.
    builder: Any  # Of tensorflow-datasets.

    @property
    def features(self) -> Any:
        """Features of TensorFlow Datasets by column."""
        return self.builder.info.features

    def split_of(self, part: str, *, is_needed: bool) -> str | None:
        """Returns the split of a set, "train", "dev" or "test".

        A data set without a development set is evaluated on its test set. A missing
        split is None, or a ValueError if it is needed.
        """
        splits = self.builder.info.splits
        split = next(filter(splits.__contains__, _SPLITS[part]), None)
        if split is None and is_needed:
            raise ValueError(
                f"--tfds_name={self.name} has no split {_SPLITS[part][0]}, only "
                f"{', '.join(splits)}; write the splits to files of your own."
            )
        if (part, split) == ("dev", "test"):
            logger.warning(
                "--tfds_name=%s has no development set, so its test set is evaluated; "
                "do not choose a step, a threshold or settings by its scores.",
                self.name,
            )
        return split

    def check_columns(self, names: Iterable[str]) -> None:
        """Raises a ValueError unless there are these columns."""
        if missing := [name for name in names if name not in self.features]:
            raise ValueError(
                f"--tfds_name={self.name} has no column {missing[0]}; the columns are "
                f"{', '.join(sorted(self.features))}. Choose with --text_column, "
                "--label_column and, for pairs, --text_b_column."
            )

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


def split_tables(data: DataSet, needed: Iterable[str]) -> dict[str, str | None]:
    """Returns the path of each set as a table, which is written if there is none yet.

    Args:
        data: the data set.
        needed: the sets whose splits must exist; the path of another set may be None.

    Raises:
        OSError, ValueError: a split does not exist, or a table cannot be written.
    """
    folder = os.path.join(os.fspath(data.builder.data_dir), _FOLDER)
    name = data.builder.info.full_name.replace("/", "-")
    paths: dict[str, str | None] = {}
    for part in _SPLITS:
        paths[part] = None
        if split := data.split_of(part, is_needed=part in needed):
            file_name = f"{name}-{urllib.parse.quote(split)}.classes.jsonl"
            path = paths[part] = os.path.join(folder, file_name)
            if not files.exists(path):
                logger.info("Writing the split %s once as %s.", split, path)
                with files.complete_or_absent(path) as file:
                    file.writelines(_lines(data, split))
    return paths


def _lines(data, split):
    """Yields the lines of a table, always in the same order.

    A class is its name, or None if it is unknown. The column `id` names the examples.
    """
    import tensorflow_datasets

    # Files are read one after the other, without shuffling.
    config = tensorflow_datasets.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    dataset = data.builder.as_dataset(split=split, read_config=config)
    for values in dataset.as_numpy_iterator():
        record = _plain(values, data.features)
        if "idx" in record:
            record["id"] = record["idx"]
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _plain(value, feature):
    """Returns a NumPy value as plain Python; None if it has another form."""
    feature = getattr(feature, "feature", feature)  # That of a sequence's values.
    if isinstance(value, dict):
        return {n: _plain(v, feature[n]) for n, v in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(one, feature) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, np.generic):
        return None
    if hasattr(feature, "int2str"):
        # Test sets without labels contain -1.
        return feature.int2str(number) if (number := int(value)) >= 0 else None
    # float32 as its shortest text: 3.8, not 3.799999952316284.
    return float(str(value)) if isinstance(value, np.floating) else value.item()
