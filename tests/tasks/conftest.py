"""What the tests of all tasks share: their options, and one trained run of each."""

import importlib
import json

import pytest

from bert_tf.checkpoints import formats
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
def weather_options(task_options):
    """Returns options for the data of classification; keywords replace or add."""
    return task_options("classification")


@pytest.fixture(scope="session")
def weather_run(trained):
    """Folder of a run that learned the weather. Tests that change it copy it."""
    return trained("classification")


@pytest.fixture(scope="session")
def choice_options(task_options):
    """Returns options for the data of multiple choice; keywords replace or add."""
    return task_options("multiple_choice")


@pytest.fixture(scope="session")
def retrieval_options(task_options):
    """Returns options for the data of retrieval; keywords replace or add."""
    return task_options("retrieval")


@pytest.fixture(scope="session")
def names_options(task_options):
    """Returns options for the data of token classification; keywords replace or add."""
    return task_options("token_classification")


@pytest.fixture(scope="session")
def names_run(trained):
    """Folder of a run that learned the names. Tests that change it copy it."""
    return trained("token_classification")


@pytest.fixture(scope="session")
def trained(contract_of, task_options, tmp_path_factory):
    """Returns the folder of a task's run that learned its data: trained("retrieval").

    It is trained once per process. Tests that change it copy it.
    """
    folders = {}

    def train(kind):
        if kind in folders:
            return folders[kind]
        contract = contract_of(kind)
        folder = tmp_path_factory.mktemp("runs") / kind
        report = fine_tuning_run.run(
            task_options(kind)(
                folder, do_eval=True, do_predict=True, **contract.evaluations()
            )
        )
        assert f"Trained to step {contract.num_steps}, loss " in report
        assert f"{next(iter(contract.scores))} = " in report
        assert "Predictions are in " in report
        assert report.endswith(f"The run is in {folder}.")
        folders[kind] = folder
        return folder

    return train


@pytest.fixture
def opened_checkpoints(monkeypatch):
    """List of the paths that are opened as checkpoints during the test."""
    paths = []
    original = formats.open_source

    def record(path, **values):
        paths.append(str(path))
        return original(path, **values)

    monkeypatch.setattr(formats, "open_source", record)
    return paths


@pytest.fixture
def write(tmp_path):
    """Writes a text, bytes, or a list as JSON lines; returns the path of the file."""

    def write_file(name, content):
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file
