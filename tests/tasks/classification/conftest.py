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
    options_class = classification_options.RunClassifierOptions
    return contract.CONTRACT.options(options_class, weather, golden, quick_config)
