"""What the tests of several pages share."""

import shutil

import pytest


@pytest.fixture(scope="session")
def tiny(golden, tmp_path_factory):
    """Folder of the recorded model, in place of a released one."""
    folder = tmp_path_factory.mktemp("tiny")
    for path in (*(golden / "model").glob("bert_*"), golden / "vocab.txt"):
        shutil.copy(path, folder)
    return folder
