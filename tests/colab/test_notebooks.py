"""Each notebook is what its source builds, and every cell of it runs."""

import pathlib

import jupytext
import nbclient
import pytest

COLAB = pathlib.Path(__file__).resolve().parent.parent.parent / "colab"
SOURCES = sorted(COLAB.glob("*.py"))


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
def test_every_cell_runs(source, tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_TINY", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = jupytext.read(source.with_suffix(".ipynb"))
    folder = {"metadata": {"path": str(COLAB.parent)}}
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources=folder
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(shown) >= 2  # The curves, and the accuracies.
    answers = notebook.cells[-1].outputs[-1]["data"]["text/plain"]
    assert "'label'" in answers
