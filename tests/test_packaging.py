"""The archives contain all files, and make finds a Python and its versions."""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from bert_tf import subcommands

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search(
    r'^__version__ = "(.+)"$', (ROOT / "bert_tf" / "__init__.py").read_text(), re.M
)[1]
ADDRESS = "https://github.com/somebody/bert_tf"
PYTHONS = ("3.11", "3.12", "3.13")
BUILD = """
from setuptools import build_meta
build_meta.build_sdist("../dist")
build_meta.build_wheel("../dist")
"""
NOT_PACKAGED = shutil.ignore_patterns("__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Folder with the source archive and a wheel built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("packaging")
    sources = folder / "sources"
    sources.mkdir()
    for name in ("bert_tf", "tools", "requirements"):
        shutil.copytree(ROOT / name, sources / name, ignore=NOT_PACKAGED)
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, sources)
    shutil.copy(ROOT / "LICENSE", sources)
    project = sources / "pyproject.toml"
    text = project.read_text()
    text = re.sub("(?m)^repository = .*$", f'repository = "{ADDRESS}"', text)
    project.write_text(text)
    subprocess.run(
        [sys.executable, "-c", BUILD], cwd=sources, check=True, capture_output=True
    )
    return folder / "dist"


def packaged_files():
    """Returns the paths, from the root, of all files that an installation needs."""
    files = [
        path
        for folder in ("bert_tf", "tools")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    return {path.relative_to(ROOT).as_posix() for path in files}


@pytest.mark.slow
def test_the_source_archive_has_every_file(dist):
    [path] = dist.glob("*.tar.gz")
    assert path.name == f"bert_tf-{VERSION}.tar.gz"
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert packaged_files() <= names
    assert {"README.md", "LICENSE", "CHANGELOG.md", "setup.py"} <= names


@pytest.mark.slow
def test_the_wheel_has_every_file_and_command(dist):
    [path] = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        info = f"bert_tf-{VERSION}.dist-info"
        commands = archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    wanted = {re.sub(r"^tools/", "bert_tf/tools/", name) for name in packaged_files()}
    assert wanted <= names
    for subcommand in subcommands.SUBCOMMANDS:
        assert f"{subcommand.tool} = bert_tf.tools.{subcommand.tool}:main" in commands
    required = re.search(r"^Requires-Python: (.+)$", metadata, re.M)[1]
    assert set(required.split(",")) == {">=3.11", "<3.14"}
    assert "License-Expression: Apache-2.0\n" in metadata
    for version in PYTHONS:
        classifier = f"Classifier: Programming Language :: Python :: {version}\n"
        assert classifier in metadata
    assert "Provides-Extra: all\n" in metadata
    assert f"Project-URL: Source, {ADDRESS}\n" in metadata
    assert f"]({ADDRESS}/blob/main/docs/results.md)" in metadata  # In the README.


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(f"python-{v}" for v in PYTHONS), "tpu"])
def test_each_environment_has_pinned_versions_of_every_requirement(dist, name):
    [path] = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        metadata = archive.read(f"bert_tf-{VERSION}.dist-info/METADATA").decode()
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    pinned = {_normal(one) for one in re.findall(r"^([\w.-]+)==", text, re.M)}
    for line in re.findall(r"^Requires-Dist: (.+)$", metadata, re.M):
        required = _normal(re.match(r"[\w.-]+", line)[0])
        extra = re.search(r'extra == "(.+?)"', line)
        if name == "tpu":
            is_needed = extra is None and not required.startswith("tensorflow")
        else:
            is_needed = extra is None or extra[1] in ("dev", "docs")
        assert not is_needed or required in pinned, line


def test_the_first_section_of_the_change_log_is_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\S+)", text, re.M)[1] == VERSION


def _normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()
