"""Each notebook is what its source builds, and every cell of it runs."""

import pathlib
import re
import tomllib

import jupytext
import nbclient
import pytest

COLAB = pathlib.Path(__file__).resolve().parent.parent.parent / "colab"
SOURCES = sorted(COLAB.glob("*.py"))
QUICK = "sentence_classification"
LOG_LINES = ("WARNING:tensorflow", "INFO:tensorflow", "Assets written")


def _cells(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_there_is_a_notebook_for_each_source_and_no_other():
    built = {path.with_suffix(".py") for path in COLAB.glob("*.ipynb")}
    assert built == set(SOURCES)
    assert SOURCES


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_notebook_is_what_make_notebooks_builds(source):
    built = jupytext.read(source.with_suffix(".ipynb"))
    assert _cells(built) == _cells(jupytext.read(source)), "run: make notebooks"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_cell_uses_names_that_are_not_public(source):
    for cell in jupytext.read(source).cells:
        if cell.cell_type == "code":
            assert "import _" not in cell.source
            assert "._" not in cell.source
            assert "subprocess" not in cell.source


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_installs_a_pinned_version_and_says_where_it_ran(source):
    cells = jupytext.read(source).cells
    project = tomllib.loads((COLAB.parent / "pyproject.toml").read_text())
    address = project["tool"]["bert_tf"]["repository"].removeprefix("https://")
    badge = address.replace(".com", "") + f"/blob/main/colab/{source.stem}.ipynb)"
    assert badge in cells[0].source, "run: make notebooks"
    assert '==0.1.0"' in cells[1].source
    assert "is_checkout" in cells[1].source  # Before the release is published.
    assert f'notebook.prepare("{source.stem}", RUN_DIR)' in cells[1].source
    assert cells[-1].source == "print(setup.last_run_on())"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            path, marks=pytest.mark.slow if path.stem == QUICK else pytest.mark.long
        )
        for path in SOURCES
    ],
    ids=lambda path: path.stem,
)
def test_every_cell_runs(source, tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_TINY", "1")
    monkeypatch.setenv("RUN_DIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = jupytext.read(source)
    folder = {"metadata": {"path": str(COLAB.parent)}}
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources=folder
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "Last run on" in notebook.cells[-1].outputs[-1]["text"]
    printed = "".join(output.get("text", "") for output in outputs)
    assert not [line for line in LOG_LINES if line in printed]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_stored_outputs_are_of_a_whole_run_on_some_machine(source):
    cells = jupytext.read(source.with_suffix(".ipynb")).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "full form" in cells[-1].outputs[-1]["text"]
    shown = "".join(str(output) for output in outputs)
    for noise in ("/tmp/", "/home/", "oneDNN", *LOG_LINES):
        assert noise not in shown
    # Folders of the machine that made the outputs.
    printed = "".join(output.get("text", "") for output in outputs)
    assert not re.findall(r"(?<![\w.:/<])/\w+/\w+/", printed)
