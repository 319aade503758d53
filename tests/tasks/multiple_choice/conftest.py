"""A task that a tiny model learns in seconds, and options to train on it."""

import json

import pytest


@pytest.fixture(scope="session")
def choice_options(task_options):
    """Returns options for the task; keywords replace or add."""
    return task_options("multiple_choice")


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path; a list is written as JSON lines."""

    def write_file(name, content):
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write_file
