"""The published multiple choice data sets: their files and columns."""

import dataclasses
import functools
import os

from bert_tf import files
from bert_tf.data import named_datasets
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


# Columns of data sets of TensorFlow Datasets, by patterns of names. It has no SWAG;
# HellaSwag is its successor.
TFDS_COLUMNS: dict[str, examples_module.Columns] = {
    "hellaswag*": examples_module.Columns(start="context", endings=("endings",)),
    "openbookqa*": examples_module.Columns(
        start="question/stem",
        endings=tuple(f"question/choice_{letter}" for letter in "ABCD"),
        label="answerKey",
    ),
    "piqa*": examples_module.Columns(start="goal", endings=("sol1", "sol2")),
}


# The label is the number of an ending.
tfds_lines = functools.partial(named_datasets.table_lines, class_names=False)


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
