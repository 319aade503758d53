"""Names of models on Hugging Face's hub, and what its cache has of them.

The cache's layout is that of huggingface_hub: models--ORGANIZATION--NAME with refs and
snapshots.
"""

import pathlib
import shutil

import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.checkpoints.catalogue import hub_names

FOREIGN = pathlib.Path(__file__).resolve().parents[1] / "foreign" / "hugging_face"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Puts a folder into the hub's cache: cache("google-bert/bert-x", "encoder")."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def put(name, folder, version="5c4d1", *, is_main=True):
        model = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        snapshot = model / "snapshots" / version
        if folder is None:  # Only the tokenizer was fetched.
            snapshot.mkdir(parents=True)
            shutil.copy(FOREIGN / "encoder" / "tokenizer.json", snapshot)
        else:
            shutil.copytree(FOREIGN / folder, snapshot)
        if is_main:
            (model / "refs").mkdir(exist_ok=True)
            (model / "refs" / "main").write_text(version)
        return snapshot

    return put


def no_network(name, **_):
    raise OSError(f"{name} cannot be downloaded.")


@pytest.mark.parametrize(
    "stored, asked",
    [
        ("google-bert/bert-base-cased", "google-bert/bert-base-cased"),
        ("someone/bert.v2", "someone/bert.v2/"),
        ("bert-base-german-cased", "bert-base-german-cased"),  # From before 2024.
        ("google-bert/bert-base-german-cased", "bert-base-german-cased"),
        ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
    ],
)
def test_a_name_means_the_copy_in_the_cache(cache, stored, asked):
    snapshot = cache(stored, "classification")
    source = formats.open_source(asked)
    assert source.path == str(snapshot)
    assert source.head.labels == ("bad", "so so", "good")


def test_training_starts_from_a_name(cache):
    snapshot = cache("google-bert/bert-base-cased", "masked_lm")
    start = starting_point.find("google-bert/bert-base-cased")
    assert start.source.path == str(snapshot)
    assert start.do_lower_case is False
    assert len(start.vocabulary) == 40


def test_the_version_that_main_names_is_read(cache):
    cache("a/b", "encoder", "1111", is_main=False)
    newer = cache("a/b", "encoder", "2222")
    assert hub_names.cached_folder("a/b") == str(newer)


def test_several_versions_without_a_main_one_are_refused(cache):
    cache("a/b", "encoder", "1111", is_main=False)
    cache("a/b", "encoder", "2222", is_main=False)
    with pytest.raises(ValueError, match=r"has 2 versions, .* pass the folder of one"):
        formats.open_source("a/b")


def test_a_folder_is_never_taken_for_a_name(cache, tmp_path):
    cache("a/b", "classification")
    shutil.copytree(FOREIGN / "encoder", tmp_path / "a" / "b")
    for path in ("a/b", "a/b/", f"{tmp_path}/a/b//"):
        assert formats.open_source(path).head.kind == "encoder"


@pytest.mark.parametrize("stored", [None, "tokenizer"])
def test_a_name_without_a_copy_is_refused_with_the_way_to_get_one(cache, stored):
    if stored:
        cache("a/b", None)
    with pytest.raises(FileNotFoundError, match="run `hf download a/b --local-dir FOL"):
        formats.open_source("a/b")


def test_a_misspelled_path_is_not_taken_for_a_name(cache, tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(
        FileNotFoundError, match="There is no checkpoint runs/x, and no"
    ):
        formats.open_source("runs/x")


@pytest.mark.parametrize(
    "name, released",
    [
        ("google-bert/bert-base-uncased", "bert-base-uncased"),
        ("google/bert_uncased_L-2_H-128_A-2", "uncased_L-2_H-128_A-2"),
        ("google/electra-small", None),
        ("someone/bert-base-uncased", None),
        ("bert-base-uncased", None),
    ],
)
def test_the_authors_own_names_are_those_of_the_catalogue(name, released):
    assert hub_names.released_name(name) == released


def test_without_a_copy_the_authors_names_mean_the_release_s_files(
    cache, monkeypatch, released_folder, caplog
):
    monkeypatch.setattr(fetching, "fetch", lambda *_, **__: str(released_folder))
    source = formats.open_source("google-bert/bert-base-uncased")
    assert source.path == str(released_folder / "bert_model.ckpt")
    assert "release's own files" in caplog.text


def test_without_a_network_a_released_name_means_the_copy_in_the_cache(
    cache, monkeypatch, caplog
):
    monkeypatch.setattr(fetching, "fetch", no_network)
    with pytest.raises(OSError, match="bert-base-uncased cannot be downloaded"):
        formats.open_source("bert-base-uncased")
    snapshot = cache("google-bert/bert-base-uncased", "encoder")
    assert loading.load_model("bert-base-uncased/").built
    assert str(snapshot) in caplog.text
    assert "exact GELU" in caplog.text
