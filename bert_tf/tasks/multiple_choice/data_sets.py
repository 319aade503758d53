"""Data sets of this form, as they are published."""

import dataclasses
import os

from bert_tf import files
from bert_tf.tasks.multiple_choice import examples as examples_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """How a published data set lies in its folder."""

    train_file: str
    eval_file: str
    predict_file: str
    columns: examples_module.Columns


LAYOUTS = {
    # https://github.com/rowanz/swagaf, folder data. `startphrase` is sent1 and the
    # beginning of the next sentence, which every ending goes on.
    "SWAG": Layout(
        train_file="train.csv",
        eval_file="val.csv",
        predict_file="test.csv",
        columns=examples_module.Columns(
            start="startphrase",
            endings=("ending0", "ending1", "ending2", "ending3"),
        ),
    ),
    # https://github.com/Websail-NU/CODAH, a fold: tabs and no header.
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


def layout_of(data_dir: str) -> Layout:
    """Returns the layout of the data set in a folder.

    Raises:
        ValueError: there is no file of one.
    """
    for layout in LAYOUTS.values():
        names = (layout.train_file, layout.eval_file, layout.predict_file)
        if any(files.exists(os.path.join(data_dir, name)) for name in names):
            return layout
    raise ValueError(
        f"There is no data set in --data_dir={data_dir}; expected train.csv, val.csv, "
        "test.csv (SWAG) or train.tsv, dev.tsv, test.tsv (CODAH); give other files as "
        "--train_file, --eval_file and --predict_file."
    )
