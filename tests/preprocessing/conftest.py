"""Folders of checkpoints for the tests of this folder."""

import json

import pytest

TEXTS = [
    "The rain.",
    "",
    "  \t\n ",
    "Crème brûlée, 中文 İstanbul ΟΔΟΣ!",
    "a\x00b\u200d \ufffd\u2028é e\u0301",
    "[MASK] the[SEP]rain [unused1]",
    "the " * 40,
    "x" * 300,
    "🏔️ 𝔘𝔫𝔦 ½ ﬁ ß",
]
TEXTS_B = [*TEXTS[1:], "rain"]


@pytest.fixture(scope="session")
def texts():
    """Texts that tokenizers get wrong, and a second text for each."""
    return TEXTS, TEXTS_B


@pytest.fixture(scope="session")
def hugging_face(project_root):
    """Folder of the models that transformers wrote."""
    return project_root / "tests" / "checkpoints" / "foreign" / "hugging_face"


@pytest.fixture
def released(copy_release, tmp_path):
    """Copies the recorded model: released("uncased_L-2_H-16_A-2", task={...})."""

    def write(name, task=None):
        folder = copy_release(tmp_path / name)
        if task is not None:
            (folder / "task.json").write_text(json.dumps(task))
        return folder

    return write
