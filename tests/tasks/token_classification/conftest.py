"""A corpus of names that a tiny model learns in seconds, and options to train on it."""

import random

import pytest

from bert_tf.tasks.token_classification import options as token_classification_options

FIRST_NAMES = ("Anna", "Rod", "Otto", "Queen")
LAST_NAMES = ("Winter", "Horn", "Baker")
PLACES = (("Lund",), ("River", "Bend"), ("Rock", "End"), ("Bay",))
# P stands for a person, L for a place.
TEMPLATES = (
    "P makes bread in L .",
    "from L P counts the ships",
    "L is dark in winter , says P",
    "the keeper of L climbs the steps",
    "P and P dance at L !",
    "bees look for flowers .",
)


def person(generator):
    names = [generator.choice(FIRST_NAMES)]
    if generator.random() < 0.5:
        names.append(generator.choice(LAST_NAMES))
    return names


def sentence(generator):
    """Returns (word, tag) pairs in IOB2."""
    pairs = []
    for word in generator.choice(TEMPLATES).split():
        if word not in ("P", "L"):
            pairs.append((word, "O"))
            continue
        names = person(generator) if word == "P" else generator.choice(PLACES)
        kind = {"P": "PER", "L": "LOC"}[word]
        pairs += [
            (name, f"{'I' if index else 'B'}-{kind}")
            for index, name in enumerate(names)
        ]
    return pairs


def column_file(sentences, per_document=4):
    """Returns the text of a file with a document for every few sentences."""
    lines = []
    for index, pairs in enumerate(sentences):
        if index % per_document == 0:
            lines += ["-DOCSTART- O", ""]
        lines += [f"{word} {tag}" for word, tag in pairs] + [""]
    return "\n".join(lines)


@pytest.fixture(scope="session")
def names(tmp_path_factory):
    """Folder with train.txt (240 sentences), dev.txt (40) and test.txt (12)."""
    folder = tmp_path_factory.mktemp("names")
    generator = random.Random(7)
    for name, count in (("train", 240), ("dev", 40), ("test", 12)):
        sentences = [sentence(generator) for _ in range(count)]
        (folder / f"{name}.txt").write_text(column_file(sentences))
    return folder


@pytest.fixture(scope="session")
def names_options(golden, quick_config, names):
    """Returns options for the names; keywords replace or add."""

    def create(output_dir, **values):
        defaults = {
            "output_dir": str(output_dir),
            "bert_config_file": quick_config,
            "vocab_file": str(golden / "vocab.txt"),
            "data_dir": str(names),
            "do_train": True,
            "max_seq_length": 32,
            "train_batch_size": 16,
            "learning_rate": 4e-3,
            "num_train_epochs": 8.0,
        }
        return token_classification_options.RunNerOptions(**defaults | values)

    return create
