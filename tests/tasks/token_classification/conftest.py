"""Files of names that a tiny model learns in seconds, and options to train on them."""

import random

import pytest

from bert_tf.tasks.token_classification import options as token_classification_options
from tests.tasks.token_classification import names as corpus


@pytest.fixture(scope="session")
def names(tmp_path_factory):
    """Folder with train.txt (240 sentences), dev.txt (40) and test.txt (12)."""
    folder = tmp_path_factory.mktemp("names")
    generator = random.Random(7)
    for name, count in (("train", 240), ("dev", 40), ("test", 12)):
        sentences = [corpus.sentence(generator) for _ in range(count)]
        (folder / f"{name}.txt").write_text(corpus.column_file(sentences))
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
