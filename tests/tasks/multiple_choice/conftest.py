"""A task that a tiny model learns in seconds, and options to train on it."""

import json

import pytest

from bert_tf.tasks.multiple_choice import options as multiple_choice_options

STARTS = ("the bee", "the lamp", "the baker", "the river")
RIGHT = ("and honey", "is warm", "is slow", "at midnight")
WRONG = ("queen queen", "ball ball", "wheel wheel", "twelve twelve")


def rows(first, count):
    """Returns (start, three endings, number of the one that is not a repetition)."""
    found = []
    for index in range(first, first + count):
        label = index % 3
        endings = [WRONG[index % 4], WRONG[(index + 1 + index // 4) % 4]]
        endings.insert(label, RIGHT[(index // 2) % 4])
        found.append((STARTS[index % 4], endings, label))
    return found


def table(examples, *, with_labels):
    lines = ["startphrase\tending0\tending1\tending2" + "\tlabel" * with_labels]
    for start, endings, label in examples:
        lines.append("\t".join([start, *endings, *([str(label)] * with_labels)]))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def endings(tmp_path_factory):
    """Folder with train.tsv (32 rows), dev.tsv (8) and unlabeled.tsv (5)."""
    folder = tmp_path_factory.mktemp("endings")
    (folder / "train.tsv").write_text(table(rows(0, 32), with_labels=True))
    (folder / "dev.tsv").write_text(table(rows(32, 8), with_labels=True))
    (folder / "unlabeled.tsv").write_text(table(rows(32, 5), with_labels=False))
    return folder


@pytest.fixture(scope="session")
def choice_options(golden, quick_config, endings):
    """Returns options for the task; keywords replace or add."""

    def create(output_dir, **values):
        defaults = {
            "output_dir": str(output_dir),
            "bert_config_file": quick_config,
            "vocab_file": str(golden / "vocab.txt"),
            "train_file": str(endings / "train.tsv"),
            "eval_file": str(endings / "dev.tsv"),
            "predict_file": str(endings / "unlabeled.tsv"),
            "do_train": True,
            "max_seq_length": 24,
            "train_batch_size": 8,
            "learning_rate": 1e-2,
            "num_train_epochs": 20.0,
        }
        return multiple_choice_options.RunSwagOptions(**defaults | values)

    return create


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path; a list is written as JSON lines."""

    def write_file(name, content):
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write_file
