"""The names of the contract, options to train on them, and a run that learned them."""

import pytest


@pytest.fixture(scope="session")
def names(task_data):
    """Folder with train.txt (240 sentences), dev.txt (40) and test.txt (12)."""
    return task_data("token_classification")


@pytest.fixture(scope="session")
def names_options(task_options):
    """Returns options for the names; keywords replace or add."""
    return task_options("token_classification")


@pytest.fixture(scope="session")
def names_run(trained):
    """Folder of a run that learned the names. Tests that change it copy it."""
    return trained("token_classification")
