"""The folder of a version, as TensorFlow Serving expects it."""

import os

import pytest

from bert_tf.serving import versions


@pytest.fixture
def model(tmp_path):
    """Folder of a model with the versions 2 and 10, and a folder that is none."""
    for name in ("topics/2", "topics/10", "topics/11", "topics/server"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("topics/2", "topics/10"):
        (tmp_path / name / "saved_model.pb").write_text("")
    return str(tmp_path / "topics")


@pytest.mark.parametrize(
    "given, chosen",
    [
        ("new", "new/1"),
        ("new/", "new/1"),
        ("new/7", "new/7"),
        ("topics", "topics/11"),  # 11 was never finished.
        ("topics/12", "topics/12"),
        ("gpt-2", "gpt-2/1"),
    ],
)
def test_the_next_version_is_chosen(model, given, chosen):
    root = os.path.dirname(model)
    assert versions.next_folder(f"{root}/{given}") == f"{root}/{chosen}"


@pytest.mark.parametrize("name", ["v3", "1.0", "2026-11-22", "-1", "007", str(2**63)])
def test_a_name_that_is_almost_a_version_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="is not a version of TensorFlow Serving"):
        versions.next_folder(str(tmp_path / name))


def test_the_latest_version_is_found(model, tmp_path):
    assert versions.latest_folder(model) == f"{model}/10"
    assert versions.latest_folder(f"{model}/2") == f"{model}/2"
    with pytest.raises(FileNotFoundError, match="and no version of a model"):
        versions.latest_folder(str(tmp_path))
