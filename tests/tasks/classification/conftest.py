"""A task that a tiny model learns in seconds, and options to train on it."""

import pytest

from bert_tf.tasks.classification import options as classification_options
from tests.tasks.classification import contract


@pytest.fixture(scope="session")
def weather(tmp_path_factory):
    """Folder with train.tsv (24 rows), dev.tsv (8) and test.tsv (5)."""
    folder = tmp_path_factory.mktemp("weather")
    contract.write_data(folder)
    return folder


@pytest.fixture(scope="session")
def weather_options(golden, quick_config, weather):
    """Returns options for the weather task; keywords replace or add."""

    def create(output_dir, **values):
        defaults = {
            "output_dir": str(output_dir),
            "bert_config_file": quick_config,
            "vocab_file": str(golden / "vocab.txt"),
            **contract.CONTRACT.data(weather),
            **contract.CONTRACT.values,
            "do_train": True,
        }
        return classification_options.RunClassifierOptions(**defaults | values)

    return create
