"""A task that a tiny model learns in seconds, and options to train on it."""

import json

import pytest

from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from tests.tasks.multiple_choice import contract


@pytest.fixture(scope="session")
def choice_options(golden, quick_config, tmp_path_factory):
    """Returns options for the task; keywords replace or add."""
    folder = tmp_path_factory.mktemp("endings")
    contract.write_data(folder)
    options_class = multiple_choice_options.RunSwagOptions
    return contract.CONTRACT.options(options_class, folder, golden, quick_config)


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path; a list is written as JSON lines."""

    def write_file(name, content):
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write_file
