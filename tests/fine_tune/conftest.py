"""What a tiny model needs to be trained in one call, and data frames."""

import pandas
import pytest


class Frame:
    """A data frame that has only what `bert_tf` asks of one."""

    def __init__(self, columns):
        self._values = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return iter(self._values[name])


@pytest.fixture(params=[Frame, pandas.DataFrame], ids=["double", "pandas"])
def new_frame(request):
    """Returns a data frame of a dictionary of columns."""
    return request.param


@pytest.fixture(scope="session")
def quick(golden, quick_config):
    """Keyword arguments of a model that learns in a second."""
    return {
        "bert_config_file": quick_config,
        "vocab_file": str(golden / "vocab.txt"),
        "max_seq_length": 24,
        "train_batch_size": 8,
        "learning_rate": 1e-2,
        "num_train_epochs": 10,
    }
