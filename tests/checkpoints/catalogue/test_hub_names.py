"""Models on Hugging Face's hub: its API is a double, its cache is the library's own."""

import pathlib
import shutil

import pytest

import bert_tf
from bert_tf.checkpoints import formats
from bert_tf.checkpoints.catalogue import hub_names
from tests.checkpoints.catalogue import hub_double

FOREIGN = pathlib.Path(__file__).resolve().parents[1] / "foreign" / "hugging_face"


@pytest.fixture
def constants(tmp_path, monkeypatch):
    """The settings of huggingface_hub, with an empty cache and no hub."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return constants


@pytest.fixture
def hub(constants, monkeypatch):
    """A hub with the model someone/bert."""
    with hub_double.serving() as hub:
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        hub.models["someone/bert"] = FOREIGN / "classification"
        yield hub


@pytest.fixture
def cache(constants, tmp_path):
    """Puts a folder into the hub's cache: cache("google-bert/bert-x", "encoder")."""

    def put(name, folder, version=40 * "5", *, is_main=True):
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


def test_a_folder_is_never_taken_for_a_name(cache, tmp_path):
    cache("a/b", "classification")
    shutil.copytree(FOREIGN / "encoder", tmp_path / "a" / "b")
    for path in ("a/b", "a/b/", f"{tmp_path}/a/b//"):
        assert formats.open_source(path).head.kind == "encoder"


@pytest.mark.parametrize("stored", [None, "tokenizer"])
def test_a_name_that_is_neither_cached_nor_on_the_hub_is_refused(cache, stored):
    if stored:
        cache("a/b", None)
    with pytest.raises(OSError, match=r"path: a/b; .* not in the cache, and HF_HUB"):
        formats.open_source("a/b")


def test_a_model_is_downloaded_once_and_pinned(hub, constants, monkeypatch):
    source = formats.open_source("hf://someone/bert")
    commit = hub.commit_of("someone/bert")
    assert source.hub_name == f"hf://someone/bert@{commit}"
    assert source.head.labels == ("bad", "so so", "good")
    num_requests = len(hub.requests)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for name in ("someone/bert", f"hf://someone/bert@{commit}"):
        assert formats.open_source(name).path == source.path
    assert len(hub.requests) == num_requests


def test_everything_that_opens_a_checkpoint_takes_the_name(hub):
    name = "hf://someone/bert"
    classifier = bert_tf.load(name)
    assert classifier.predict(["rain"])[0]["label"] in ("bad", "so so", "good")
    assert bert_tf.embed(name, ["rain"]).shape == (1, 16)
    tokenizer = bert_tf.FullTokenizer(name)
    assert tokenizer.vocabulary.tokens == classifier.vocabulary.tokens
    for opened in (bert_tf.load, bert_tf.FullTokenizer, bert_tf.load_model):
        with pytest.raises(ValueError, match="expected hf://ORGANIZATION/MODEL"):
            opened("hf://some one/bert")


def test_only_the_files_that_are_read_are_downloaded(hub, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(FOREIGN / "classification", folder)
    for name in ("pytorch_model.bin", "tf_model.h5", "README.md", "onnx/model.onnx"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("never downloaded")
    hub.models["someone/more"] = folder
    assert formats.open_source("someone/more").head.kind == "classification"
    assert hub.downloaded() == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_an_interrupted_download_is_completed(hub, cache):
    # The files of the tokenizer came first; the weights are missing.
    cache("someone/bert", None, version=hub.commit_of("someone/bert"))
    assert formats.open_source("someone/bert").head.kind == "classification"
    assert "model.safetensors" in hub.downloaded()


def test_weights_are_downloaded_in_one_format():
    small = ["1_Pooling/config.json", "config.json", "vocab.txt"]
    weights = ["model-00001-of-00002.safetensors", "model.safetensors.index.json"]
    others = ["openvino/openvino_model.xml", "pytorch_model.bin", "tf_model.h5"]
    assert hub_names.wanted_files([*others, *small, *weights]) == (small, weights)


@pytest.mark.parametrize(
    "name, message",
    [
        ("hf://someone/else", "no such model on Hugging Face's hub, or it is private"),
        ("someone/else", "No such path: someone/else; hf://someone/else cannot"),
        ("hf://someone/bert@v9", "the model has no revision v9"),
        ("hf://someone/gated", "its authors grant access on request"),
        ("hf://someone/pickled", "has no weights that bert_tf reads.*pytorch_model"),
        ("hf://a/b/c", "expected hf://ORGANIZATION/MODEL or"),
        ("someone/bert_model.ckpt", "No such checkpoint: someone/bert_model.ckpt"),
    ],
)
def test_what_cannot_be_downloaded_is_one_clear_line(hub, tmp_path, name, message):
    hub.models["someone/gated"] = FOREIGN / "encoder"
    hub.gated.add("someone/gated")
    hub.models["someone/pickled"] = tmp_path / "pickled"
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises((OSError, ValueError), match=message) as caught:
        formats.open_source(name)
    assert "\n" not in str(caught.value)


def test_without_the_library_a_name_needs_the_extra(constants, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install 'bert_tf\[huggingface\]'"):
        formats.open_source("hf://someone/bert")
