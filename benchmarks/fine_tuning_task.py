"""Part of fine_tuning: what both sides share. Needs only the standard library."""

import itertools
import json
import os
import sys

BATCH_SIZE = 32
MAX_LENGTH = 128
RATE = 5e-5
WARMUP_PROPORTION = 0.1
# Columns of GLUE's files: the texts and the label.
COLUMNS = {"MRPC": ((3, 4), 0), "SST-2": ((0,), 1)}


def read_settings():
    """Returns the settings on the command line."""
    return json.loads(sys.argv[1])


def read_rows(settings, name):
    """Returns [(texts, label)] of a file of the task.

    Args:
        settings: those of `read_settings`.
        name: "train" or "dev".
    """
    columns, label_column = COLUMNS[settings["task"]]
    path = os.path.join(settings["data_dir"], f"{name}.tsv")
    with open(path, encoding="utf-8-sig") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][1:]
    return [([row[c] for c in columns], int(row[label_column])) for row in rows]


def answer(accuracy, versions):
    """Prints the result of a run for the driver."""
    print(json.dumps({"accuracy": accuracy, "versions": versions}))


def copy_rows(source, target, given):
    """Copies a task's files, the first rows of the training data only."""
    target.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", given.num_rows), ("dev", None)):
        with (source / f"{name}.tsv").open(encoding="utf-8") as lines:
            kept = list(itertools.islice(lines, None if count is None else count + 1))
        (target / f"{name}.tsv").write_text("".join(kept), encoding="utf-8")
