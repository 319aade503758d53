"""Data sets by name: splits and failures."""

import types

import pytest

from bert_tf.data import named_datasets


def test_a_failed_download_names_the_folder_to_copy(tmp_path, monkeypatch):
    tensorflow_datasets = pytest.importorskip("tensorflow_datasets")

    def fail():
        raise ConnectionError("Max retries\nexceeded.")

    builder = types.SimpleNamespace(data_dir=tmp_path, download_and_prepare=fail)
    monkeypatch.setattr(tensorflow_datasets, "builder", lambda *_, **__: builder)
    with pytest.raises(OSError, match=r"Max retries exceeded\. Without.*copy its fold"):
        named_datasets.open_data_set("glue/mrpc", str(tmp_path))


def test_the_names_of_splits_decide_what_they_are_for(caplog):
    info = types.SimpleNamespace(splits=("train", "test"))
    data = named_datasets.DataSet(
        name="imdb_reviews", builder=types.SimpleNamespace(info=info)
    )
    assert data.split_of("train", is_needed=True) == "train"
    assert data.split_of("dev", is_needed=True) == "test"
    assert "has no development set" in caplog.text
    info.splits = ("train",)
    assert data.split_of("test", is_needed=False) is None
    with pytest.raises(ValueError, match="--tfds_name=imdb_reviews has no split t"):
        data.split_of("test", is_needed=True)
