"""The weather: a task that a tiny model learns in seconds."""

import pytest


@pytest.fixture(scope="session")
def weather(task_data):
    """Folder with train.tsv (24 rows), dev.tsv (8) and test.tsv (5)."""
    return task_data("classification")


@pytest.fixture(scope="session")
def weather_options(task_options):
    """Returns options for the weather task; keywords replace or add."""
    return task_options("classification")


@pytest.fixture(scope="session")
def weather_run(trained):
    """Folder of a run that learned the weather. Tests that change it copy it."""
    return trained("classification")
