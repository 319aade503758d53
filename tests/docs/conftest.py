"""What the tests of several pages share."""

import pathlib
import runpy

import pytest


@pytest.fixture(scope="session")
def tiny(copy_release, tmp_path_factory):
    """Folder of the recorded model, in place of a released one."""
    return copy_release(tmp_path_factory.mktemp("release") / "tiny")


@pytest.fixture
def run_script(tiny, tmp_path, monkeypatch):
    """Runs a script with the tiny model in place of BERT-Base; returns its names."""

    def run(path):
        source = path.read_text()
        assert source.count('"bert-base-uncased"') == 1
        monkeypatch.chdir(tmp_path)
        script = pathlib.Path(path.name)
        script.write_text(source.replace('"bert-base-uncased"', repr(str(tiny))))
        return runpy.run_path(path.name)

    return run
