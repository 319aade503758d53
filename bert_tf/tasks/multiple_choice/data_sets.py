"""The published multiple choice data sets: their files and columns."""

import dataclasses
import json
import os
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.tasks.multiple_choice import examples as examples_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """Files and columns of a published data set."""

    train_file: str
    eval_file: str
    predict_file: str
    columns: examples_module.Columns


LAYOUTS: dict[str, Layout] = {
    # https://github.com/rowanz/swagaf, folder data. `startphrase` is sent1 plus the
    # beginning of the next sentence, which every ending continues.
    "SWAG": Layout(
        train_file="train.csv",
        eval_file="val.csv",
        predict_file="test.csv",
        columns=examples_module.Columns(
            start="startphrase",
            endings=("ending0", "ending1", "ending2", "ending3"),
        ),
    ),
    # https://github.com/Websail-NU/CODAH, one fold: tabs between columns, no header.
    "CODAH": Layout(
        train_file="train.tsv",
        eval_file="dev.tsv",
        predict_file="test.tsv",
        columns=examples_module.Columns(
            start="start",
            endings=("ending0", "ending1", "ending2", "ending3"),
            header=(
                "category",
                "start",
                "ending0",
                "ending1",
                "ending2",
                "ending3",
                "label",
            ),
        ),
    ),
}


# Columns of data sets of TensorFlow Datasets. It has no SWAG; HellaSwag is its
# successor.
TFDS_COLUMNS: dict[str, examples_module.Columns] = {
    "hellaswag": examples_module.Columns(start="context", endings=("endings",)),
    "openbookqa": examples_module.Columns(
        start="question/stem",
        endings=tuple(f"question/choice_{letter}" for letter in "ABCD"),
        label="answerKey",
    ),
    "piqa": examples_module.Columns(start="goal", endings=("sol1", "sol2")),
}


def columns_of_tfds(
    tfds_name: str, known: examples_module.Columns
) -> examples_module.Columns:
    """Returns the columns of a TensorFlow dataset, or `known` if it is not listed.

    Args:
        tfds_name: such as "hellaswag:1.1.0".
        known: columns of the trained model, or the defaults.
    """
    return TFDS_COLUMNS.get(tfds_name.partition(":")[0].partition("/")[0], known)


def tfds_lines(features: Any, records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yields the lines of a table (.jsonl) with the examples of a TensorFlow dataset.

    Args:
        features: of the data set.
        records: its examples as NumPy values. Texts, numbers and lists of texts become
            columns. A class is its number, as `label` is.
    """
    for record in records:
        yield json.dumps(dict(_cells(record)), ensure_ascii=False) + "\n"


def _cells(values):
    """Yields (name, value of JSON); a value within another is named "outer/inner"."""
    for name, value in values.items():
        if isinstance(value, dict):
            for inner_name, inner_value in _cells(value):
                yield f"{name}/{inner_name}", inner_value
        elif (cell := _cell(value)) is not None:
            yield name, cell


def _cell(value):
    """Returns a value of a record as a value of JSON; None if it has another form."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == object:
        return [text.decode("utf-8") for text in value]
    return None


def layout_of(data_dir: str) -> Layout:
    """Returns the layout of the data set in a folder.

    Raises:
        ValueError: the folder contains no file of a known data set.
    """
    for layout in LAYOUTS.values():
        names = (layout.train_file, layout.eval_file, layout.predict_file)
        if any(files.exists(os.path.join(data_dir, name)) for name in names):
            return layout
    raise ValueError(
        f"--data_dir={data_dir} contains no data set; expected train.csv, val.csv, "
        "test.csv (SWAG) or train.tsv, dev.tsv, test.tsv (CODAH). For other files, use "
        "--train_file, --eval_file and --predict_file."
    )
