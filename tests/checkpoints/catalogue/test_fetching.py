"""Released models by name: fetched once, by one process, for any state of the cache."""

import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import bert_tf
from bert_tf import locks
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.modeling import released
from bert_tf.tokenization import full
from tests.checkpoints.catalogue import http_double as http
from tests.checkpoints.catalogue import released_double as double

ZIP = f"{double.PATH}.zip"
CONFIG = f"{double.FOLDER}bert_config.json"
VOCAB = f"{double.FOLDER}vocab.txt"


@pytest.fixture(scope="module")
def released_files(tmp_path_factory):
    """{name in a zip: bytes} of the double."""
    folder = tmp_path_factory.mktemp("released")
    double.write_files(folder)
    return double.read_files(folder)


@pytest.fixture(scope="module")
def content(released_files):
    """The bytes of the double's zip."""
    return double.zipped(released_files)


@pytest.fixture
def server(content, monkeypatch):
    with http.serving(content) as server:
        listed(monkeypatch, server.url)
        yield server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(fetching, "BACK_OFF_S", (0.0,))


def listed(monkeypatch, url):
    double.list_in_catalogue(
        url, patch=monkeypatch.setattr, patch_item=monkeypatch.setitem
    )


def fetch(cache, **kwargs):
    """Fetches the double, and checks that it is complete."""
    folder = pathlib.Path(fetching.fetch(double.NAME, cache_dir=cache, **kwargs))
    assert folder == cache / double.PATH
    assert {path.name for path in folder.iterdir()} == {*double.FILES}
    return folder


def left_in(cache):
    """Names of unfinished files and folders below a cache."""
    done = cache / double.PATH
    paths = [path for path in cache.rglob("*") if path.is_file()]
    return {str(path.relative_to(cache)) for path in paths if done not in path.parents}


def put(cache, content):
    path = cache / ZIP
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def test_a_model_is_downloaded_once_and_then_cached(server, tmp_path):
    assert fetch(tmp_path) == fetch(tmp_path)
    assert [path for path, _ in server.asked] == [f"/{ZIP}"]
    # The zip is not kept: it would take the disk twice.
    assert left_in(tmp_path) == set()


def test_a_fetched_model_loads_by_its_name_with_its_casing(
    server, tmp_path, monkeypatch
):
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path))
    assert bert_tf.checkpoints.fetch(double.NAME) == str(tmp_path / double.PATH)
    model = loading.load_model(double.NAME)
    assert model.config == double.CONFIG
    assert formats.open_source(double.NAME).do_lower_case is True
    with pytest.raises(ValueError, match="do_lower_case=True"):
        starting_point.find(double.NAME, do_lower_case=False)
    folder = double.FOLDER.rstrip("/")
    assert starting_point.find(folder).vocabulary.tokens == double.TOKENS
    assert len(server.asked) == 1


def test_without_a_network_the_message_says_what_to_put_where(
    tmp_path, monkeypatch, content
):
    with http.serving(content) as server:
        listed(monkeypatch, server.url)
    with pytest.raises(OSError, match="loaded: Connection refused") as caught:
        fetch(tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert f"{server.url}/{ZIP}" in message
    path = tmp_path / ZIP
    assert f"copy that file to {path};" in message
    # Following the message's advice works, and the file stays.
    path.write_bytes(content)
    fetch(tmp_path)
    assert path.read_bytes() == content


def test_an_interrupted_download_continues_in_the_next_fetch(server, tmp_path):
    server.script = [http.cut_after(1000), http.status(404)]
    with pytest.raises(OSError, match=r"404 Not Found\. What was received is kept"):
        fetch(tmp_path)
    assert not (tmp_path / double.PATH).exists()
    fetch(tmp_path)
    assert server.asked[-1][1] == "bytes=1000-"


def test_a_wrong_download_is_removed_and_a_wrong_zip_of_the_user_stays(
    server, tmp_path, content
):
    server.content = b"<html>Log in, please</html>"
    with pytest.raises(ValueError, match="not a zip"):
        fetch(tmp_path)
    assert left_in(tmp_path) == set()
    server.content = content
    fetch(tmp_path)
    path = put(tmp_path / "other", b"PK")
    with pytest.raises(ValueError, match="truncated, damaged or not a zip") as caught:
        fetch(tmp_path / "other")
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"PK"


def test_a_folder_with_files_missing_is_refused(server, tmp_path):
    (fetch(tmp_path) / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"exists, but lacks vocab\.txt; remove it"):
        fetch(tmp_path)


@pytest.mark.parametrize(
    "name, cache, message",
    [
        ("bert-huge", "cache", "Unknown model name 'bert-huge'"),
        (double.NAME, "gs://bucket/cache", "expected a local folder, got gs://"),
    ],
)
def test_wrong_arguments_are_reported_before_any_request(server, name, cache, message):
    with pytest.raises(ValueError, match=message):
        fetching.fetch(name, cache_dir=cache)
    assert server.asked == []


# The content of zips.


def with_file(name, content):
    return lambda files: double.zipped({**files, name: content})


def without(name):
    return lambda files: double.zipped(
        {n: c for n, c in files.items() if name not in n}
    )


def with_config(**values):
    config = {**double.CONFIG.to_dict(), **values}
    return with_file(CONFIG, json.dumps(config).encode())


def patched(find, offset, change):
    """A zip with one byte changed, counted from the last place of some bytes."""

    def patch(files):
        content = bytearray(double.zipped(files))
        place = content.rindex(find) + offset
        content[place] = change(content[place])
        return bytes(content)

    return patch


@pytest.mark.parametrize(
    "change",
    [
        # As the zips of 2020.
        lambda files: {n.removeprefix(double.FOLDER): c for n, c in files.items()},
        # Members that are not of the release are left out, wherever they point.
        lambda files: {"../x": b"x", "/etc/y": b"x", double.FOLDER: b"", **files},
        lambda files: {f"../../{n}": c for n, c in files.items()},
    ],
)
def test_only_the_files_of_a_model_are_unpacked_into_its_folder(
    server, tmp_path, released_files, change
):
    put(tmp_path, double.zipped(change(released_files)))
    folder = fetch(tmp_path)
    for name, content in released_files.items():
        assert (folder / name.removeprefix(double.FOLDER)).read_bytes() == content
    assert left_in(tmp_path) == {ZIP}


@pytest.mark.parametrize(
    "make, message",
    [
        (with_file("other/vocab.txt", b"x"), "has vocab.txt twice"),
        (with_file(VOCAB, bytes(10**8)), "would unpack to 1000.* bytes, expected at m"),
        # A password; bit 0 of the flags at byte 8 of a central header.
        (patched(b"PK\x01\x02", 8, lambda b: b | 1), "is encrypted"),
        # Content that was damaged on the way.
        (patched(b"PK\x03\x04", 80, lambda b: b ^ 255), "truncated, damaged or not"),
        (lambda files: double.zipped(files)[:-9], "truncated, damaged or not"),
        (without("data-00000"), r"has no bert_model.ckpt.data-00000-of-00001; this"),
        (without("vocab.txt"), r"has no vocab.txt; this is not the released file"),
        # A file whose content does not match its name.
        (with_file(f"{double.FOLDER}bert_model.ckpt.index", b"x"), r"bert_model.ckpt"),
        # Another model.
        (with_config(hidden_size=16), r"sizes of bert-double .* have .*\(9, 16\)"),
        (with_file(VOCAB, "\n".join(double.TOKENS[:8]).encode()), r"files have .* 8\)"),
    ],
)
def test_a_wrong_zip_is_refused_in_one_line_and_leaves_nothing(
    server, tmp_path, released_files, make, message
):
    put(tmp_path, make(released_files))
    with pytest.raises(ValueError, match=message) as caught:
        fetch(tmp_path)
    assert ZIP in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left_in(tmp_path) == {ZIP}


# Several processes.

# Fetches in a separate process; "at_check" stops it when all is unpacked, but not
# yet at its place, until it is killed.
IN_A_PROCESS = """
import sys, time
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import full
from tests.checkpoints.catalogue import released_double

url, cache, mode = sys.argv[1:]
released_double.list_in_catalogue(url)

def stop(*arguments):
    print("unpacked", flush=True)
    time.sleep(600)

if mode == "at_check":
    fetching._check = stop
print("ready", flush=True)
print(fetching.fetch(released_double.NAME, cache_dir=cache), flush=True)
"""


def started(url, cache, mode, project_root):
    """Returns a process that is about to fetch."""
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_PROCESS, url, cache, mode],
        cwd=project_root,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_until(is_done):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not is_done():
        time.sleep(0.01)


def test_killed_processes_are_continued_by_the_next_and_leave_nothing(
    server, tmp_path, project_root
):
    server.script = [http.slowly(seconds=600)]
    process = started(server.url, tmp_path, "", project_root)
    part = tmp_path / f"{ZIP}.download.part"
    wait_until(lambda: part.exists() and part.stat().st_size)
    kill(process)
    size = part.stat().st_size
    assert 0 < size < len(server.content)
    process = started(server.url, tmp_path, "at_check", project_root)
    assert process.stdout.readline() == "unpacked\n"
    kill(process)
    assert server.asked[-1][1] == f"bytes={size}-"
    assert not (tmp_path / double.PATH).exists()
    assert any(path.endswith("vocab.txt") for path in left_in(tmp_path))
    fetch(tmp_path)
    assert len(server.asked) == 2  # The download was complete.
    assert left_in(tmp_path) == set()


def test_a_model_that_two_ask_for_is_downloaded_once(server, tmp_path, monkeypatch):
    is_waiting = threading.Event()
    monkeypatch.setattr(locks.logger, "info", lambda *_: is_waiting.set())
    server.script = [http.after(is_waiting)]
    folders = []
    other = threading.Thread(target=lambda: folders.append(fetch(tmp_path)))
    other.start()
    wait_until(lambda: server.asked)
    folders.append(fetch(tmp_path))
    other.join()
    assert is_waiting.is_set()
    assert folders == [tmp_path / double.PATH] * 2
    assert len(server.asked) == 1


# The list of models.


def test_there_are_33_models_each_with_a_url_of_its_own():
    assert len(released.MODELS) == len(set(fetching.PATHS.values())) == 33
    for name, path in fetching.PATHS.items():  # The folder's name shows the casing.
        casing = full.is_lower_cased(path.rpartition("/")[2])
        # The release also lowercases text for the Chinese model.
        assert casing is ("uncased" in name or "chinese" in name)


@pytest.mark.parametrize(
    "name, url",
    [
        ("bert-base-uncased", "2018_10_18/uncased_L-12_H-768_A-12.zip"),
        (
            "bert-large-cased-whole-word-masking",
            "2019_05_30/wwm_cased_L-24_H-1024_A-16.zip",
        ),
        ("bert-base-multilingual-cased", "2018_11_23/multi_cased_L-12_H-768_A-12.zip"),
        (
            "bert-base-multilingual-uncased",
            "2018_11_03/multilingual_L-12_H-768_A-12.zip",
        ),
        ("bert-base-chinese", "2018_11_03/chinese_L-12_H-768_A-12.zip"),
        ("bert-tiny", "2020_02_20/uncased_L-2_H-128_A-2.zip"),
        ("uncased_L-10_H-768_A-12", "2020_02_20/uncased_L-10_H-768_A-12.zip"),
        # Names of released folders; this one there are two of.
        ("uncased_L-12_H-768_A-12", "2020_02_20/uncased_L-12_H-768_A-12.zip"),
        ("chinese_L-12_H-768_A-12", "2018_11_03/chinese_L-12_H-768_A-12.zip"),
    ],
)
def test_a_name_means_a_released_zip(name, url):
    assert fetching.BASE_URL == "https://storage.googleapis.com/bert_models"
    assert f"{fetching.PATHS[fetching.ALIASES[name]]}.zip" == url
