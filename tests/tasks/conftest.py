"""What the tests of all tasks share: their options, and one trained run of each."""

import importlib
import os
import shutil

import filelock
import pytest

from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import tasks


@pytest.fixture(scope="session")
def contract_of():
    """Returns the contract of a task: contract_of("retrieval")."""

    def find(kind):
        return importlib.import_module(f"tests.tasks.{kind}.contract").CONTRACT

    return find


@pytest.fixture(scope="session")
def task_data(contract_of, tmp_path_factory):
    """Returns the folder of the small data set that a task's contract writes."""
    folders = {}

    def write(kind):
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(f"{kind}_data")
            contract_of(kind).write_data(folders[kind])
        return folders[kind]

    return write


@pytest.fixture(scope="session")
def task_options(contract_of, task_data, golden, quick_config):
    """Returns a task's function that creates options; its keywords replace or add."""

    def create_of(kind):
        options_class = tasks.options_class(kind)
        folder = task_data(kind)
        return contract_of(kind).options(options_class, folder, golden, quick_config)

    return create_of


@pytest.fixture(scope="session")
def trained(contract_of, task_options, tmp_path_factory):
    """Returns the folder of a task's run that learned its data: trained("retrieval").

    One test process trains it, and each has a copy. Tests that change it copy it.
    """
    folders = {}
    runs = tmp_path_factory.getbasetemp() / "trained"
    if "PYTEST_XDIST_WORKER" in os.environ:
        runs = tmp_path_factory.getbasetemp().parent / "trained"
    runs.mkdir(exist_ok=True)

    def train(kind):
        contract, run = contract_of(kind), tmp_path_factory.mktemp("training") / kind
        report = fine_tuning_run.run(
            task_options(kind)(
                run, do_eval=True, do_predict=True, **contract.evaluations()
            )
        )
        assert f"Trained to step {contract.num_steps}, loss " in report
        assert f"{next(iter(contract.scores))} = " in report
        assert "Predictions are in " in report
        assert report.endswith(f"The run is in {run}.")
        run.rename(runs / kind)  # No other test copies a run that failed.

    def copy_of(kind):
        if kind not in folders:
            with filelock.FileLock(runs / f"{kind}.lock"):
                if not (runs / kind).exists():
                    train(kind)
            copy = tmp_path_factory.mktemp("runs") / kind
            folders[kind] = shutil.copytree(runs / kind, copy)
        return folders[kind]

    return copy_of


def options_of(name, kind):
    """Returns a fixture: a task's function that creates options for its data."""
    return pytest.fixture(
        lambda task_options: task_options(kind), scope="session", name=name
    )


weather_options = options_of("weather_options", "classification")
choice_options = options_of("choice_options", "multiple_choice")
retrieval_options = options_of("retrieval_options", "retrieval")
names_options = options_of("names_options", "token_classification")


@pytest.fixture(scope="session")
def weather_run(trained):
    """Folder of a run that learned the weather. Tests that change it copy it."""
    return trained("classification")


@pytest.fixture(scope="session")
def names_run(trained):
    """Folder of a run that learned the names. Tests that change it copy it."""
    return trained("token_classification")
