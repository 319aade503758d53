"""Folders that transformers wrote, and copies of them to spoil."""

import json
import pathlib
import shutil

import pytest

FOREIGN = pathlib.Path(__file__).resolve().parents[1] / "foreign" / "hugging_face"


@pytest.fixture(scope="session")
def foreign():
    """Folder of what the foreign library wrote, a folder a model."""
    return FOREIGN


@pytest.fixture
def copied(tmp_path):
    """Copies a foreign folder: copied("encoder", vocab_size=7) changes config.json.

    Returns the copy's path; a value of None removes the key.
    """

    def copy(name, **changes):
        folder = tmp_path / name
        shutil.copytree(FOREIGN / name, folder)
        change_json(folder / "config.json", **changes)
        return folder

    return copy


@pytest.fixture
def change():
    """Changes keys of a JSON file: change(path, vocab_size=7)."""
    return change_json


def change_json(path, **changes):
    values = json.loads(path.read_text()) | changes
    values = {key: value for key, value in values.items() if value is not None}
    path.write_text(json.dumps(values))
