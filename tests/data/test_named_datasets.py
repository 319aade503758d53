"""Data sets by name: patterns, splits, and failures."""

import types

import pytest

from bert_tf.data import named_datasets

GLUE = {"glue/mrpc": 1, "xquad/*": 2}


@pytest.mark.parametrize(
    "name, value",
    [
        ("glue/mrpc", 1),
        ("glue/mrpc:2.0.0", 1),
        ("xquad/de", 2),
        ("glue/mrpc2", None),
    ],
)
def test_a_pattern_declares_what_is_read(name, value):
    assert named_datasets.declared(GLUE, name) == value


def test_a_failed_download_names_the_folder_to_copy(tmp_path, monkeypatch):
    tensorflow_datasets = pytest.importorskip("tensorflow_datasets")

    def fail():
        raise ConnectionError("Max retries\nexceeded.")

    builder = types.SimpleNamespace(
        data_dir=tmp_path, is_prepared=lambda: False, download_and_prepare=fail
    )
    monkeypatch.setattr(tensorflow_datasets, "builder", lambda *_, **__: builder)
    with pytest.raises(OSError, match=r"Max retries exceeded\. Without.*copy its fold"):
        named_datasets.open_data_set("squad/v1.1", str(tmp_path))


@pytest.mark.parametrize(
    "split, is_known",
    [
        ("train", True),
        ("train[:10%]", True),
        ("translate-train", True),  # Of xquad.
        ("translate", False),
        ("", False),
    ],
)
def test_a_split_is_a_name_or_a_part_of_it(split, is_known):
    info = types.SimpleNamespace(splits=("train", "translate-train"))
    data = named_datasets.DataSet(
        name="xquad/de", builder=types.SimpleNamespace(info=info)
    )
    if is_known:
        data.check_split(split)
        return
    with pytest.raises(ValueError, match="--tfds_name=xquad/de has no split"):
        data.check_split(split)
