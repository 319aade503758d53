"""Released models by name: fetched once, by one process, for any state of the cache."""

import dataclasses
import hashlib
import logging
import os
import pathlib
import shutil
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
from bert_tf.checkpoints.catalogue import downloading
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.checkpoints.catalogue import models
from bert_tf.checkpoints.catalogue import unpacking
from tests.checkpoints.catalogue import http_double as http
from tests.checkpoints.catalogue import released_double as double

ZIP = f"{double.PATH}.zip"


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of the double's zip."""
    folder = tmp_path_factory.mktemp("released")
    double.write_files(folder)
    return double.zipped(double.read_files(folder))


@pytest.fixture
def server(content, monkeypatch):
    with http.serving(content) as server:
        listed(monkeypatch, server.url)
        yield server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(downloading, "BACK_OFF_S", (0.0,))


def listed(monkeypatch, url, **kwargs):
    double.list_in_catalogue(
        url, patch=monkeypatch.setattr, patch_item=monkeypatch.setitem, **kwargs
    )


def fetch(cache, **kwargs):
    return fetching.fetch(double.NAME, cache_dir=cache, **kwargs)


def left_in(cache):
    """Names of unfinished files and folders below a cache."""
    done = cache / double.PATH
    paths = [path for path in cache.rglob("*") if path.is_file()]
    return {str(path.relative_to(cache)) for path in paths if done not in path.parents}


def test_a_model_is_downloaded_once_and_then_found(server, tmp_path, content):
    folder = fetch(tmp_path)
    assert folder == str(tmp_path / double.PATH)
    assert unpacking.is_unpacked(folder)
    assert fetch(tmp_path) == folder
    assert [path for path, _, _ in server.asked] == [f"/{ZIP}"]
    # The zip is not kept: it would take the disk twice.
    assert left_in(tmp_path) == set()


def test_a_fetched_model_loads_by_its_name_with_its_casing(
    server, tmp_path, monkeypatch
):
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path))
    model = loading.load_model(double.NAME)
    assert model.config == double.CONFIG
    assert formats.open_source(double.NAME).do_lower_case is True
    with pytest.raises(ValueError, match="do_lower_case=True"):
        starting_point.find(double.NAME, do_lower_case=False)
    assert starting_point.find(double.ENTRY.folder).vocabulary.tokens == double.TOKENS
    assert len(server.asked) == 1


def test_fetch_is_public_and_progress_has_both_stages(server, tmp_path):
    told = []

    def progress(stage, done, total, *, unit):
        told.append((stage, done, total, unit))

    bert_tf.checkpoints.fetch(double.NAME, cache_dir=tmp_path, progress=progress)
    stages = ["download bert-double", "unpack bert-double"]
    assert list(dict.fromkeys(stage for stage, *_ in told)) == stages
    for stage in stages:
        *_, (_, done, total, unit) = (one for one in told if one[0] == stage)
        assert done == pytest.approx(total)
        assert unit == "MB"


def test_a_zip_that_was_put_there_is_taken_and_stays(server, tmp_path, content):
    path = tmp_path / ZIP
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert unpacking.is_unpacked(fetch(tmp_path))
    assert server.asked == []
    assert path.read_bytes() == content


def test_without_a_network_the_message_says_what_to_put_where(
    tmp_path, monkeypatch, content
):
    with http.serving(content) as server:
        listed(monkeypatch, server.url)
    with pytest.raises(OSError, match=r"loaded: Connection refused\. Without") as e:
        fetch(tmp_path)
    message = str(e.value)
    assert "\n" not in message
    assert f"{server.url}/{ZIP}" in message
    folder, name = os.path.split(tmp_path / ZIP)
    assert f"copy that file to {folder}/{name};" in message
    # Following the message's advice works.
    pathlib.Path(folder, name).write_bytes(content)
    assert unpacking.is_unpacked(fetch(tmp_path))


def test_a_download_that_broke_off_goes_on_in_the_next_fetch(server, tmp_path):
    server.script = [http.cut_after(1000), http.status(404)]
    with pytest.raises(
        OSError, match=r"404 Not Found\. The part received so far is kept"
    ):
        fetch(tmp_path)
    assert not (tmp_path / double.PATH).exists()
    assert unpacking.is_unpacked(fetch(tmp_path))
    assert server.asked[-1][1] == "bytes=1000-"


@pytest.mark.parametrize(
    "wrong, message",
    [
        (b"<html>Log in, please</html>", "is not a zip file"),
        (b"PK\x03\x04 and so on", "truncated or damaged"),
    ],
)
def test_a_wrong_download_is_removed_so_that_the_next_fetch_works(
    server, tmp_path, content, wrong, message
):
    server.content, server.etag = wrong, '"wrong"'
    with pytest.raises(ValueError, match=message):
        fetch(tmp_path)
    assert left_in(tmp_path) == set()
    server.content, server.etag = content, '"right"'
    assert unpacking.is_unpacked(fetch(tmp_path))


def test_a_wrong_zip_that_was_put_there_stays_and_is_named(server, tmp_path):
    path = tmp_path / ZIP
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match="truncated or damaged") as caught:
        fetch(tmp_path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"PK"


def test_a_checksum_is_compared_where_the_catalogue_has_one(
    server, tmp_path, monkeypatch, content
):
    wrong = dataclasses.replace(double.ENTRY, sha256="0" * 64)
    listed(monkeypatch, server.url, entry=wrong)
    with pytest.raises(ValueError, match=f"has the SHA-256 .*, expected {'0' * 64}"):
        fetch(tmp_path)
    assert left_in(tmp_path) == set()
    sha256 = hashlib.sha256(content).hexdigest()
    listed(monkeypatch, server.url, entry=dataclasses.replace(wrong, sha256=sha256))
    assert unpacking.is_unpacked(fetch(tmp_path))


def test_a_folder_with_files_missing_is_not_taken_for_the_model(server, tmp_path):
    folder = pathlib.Path(fetch(tmp_path))
    (folder / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"exists, but lacks vocab\.txt; remove it"):
        fetch(tmp_path)
    shutil.rmtree(folder)
    assert unpacking.is_unpacked(fetch(tmp_path))


def test_a_server_that_sends_far_too_much_is_stopped(server, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "max_bytes", lambda model: 1000)
    server.script = [http.chunked]
    with pytest.raises(OSError, match="it has more than 1000 bytes"):
        fetch(tmp_path)


@pytest.mark.parametrize(
    "name, cache, message",
    [
        ("bert-huge", "cache", "Unknown model name 'bert-huge'"),
        (double.NAME, "gs://bucket/cache", "expected a local folder, got gs://"),
    ],
)
def test_what_cannot_be_fetched_is_reported_before_any_request(
    server, name, cache, message
):
    with pytest.raises(ValueError, match=message):
        fetching.fetch(name, cache_dir=cache)
    assert server.asked == []


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        fetch(tmp_path / "file")


def test_the_name_that_two_models_have_is_explained(tmp_path, caplog):
    name = "uncased_L-12_H-768_A-12"
    folder = tmp_path / models.find(name).path
    folder.mkdir(parents=True)
    for file in unpacking.NEEDED:
        (folder / file).touch()
    with caplog.at_level(logging.WARNING):
        assert fetching.fetch(name, cache_dir=tmp_path) == str(folder)
    assert "that of 2018 is called bert-base-uncased" in caplog.text


@pytest.mark.parametrize(
    "platform, environment, expected",
    [
        ("linux", {"BERT_TF_CACHE": "/a/b", "XDG_CACHE_HOME": "/x"}, "/a/b"),
        ("linux", {"BERT_TF_CACHE": "~/models"}, "/home/me/models"),
        ("linux", {"BERT_TF_CACHE": ""}, "/home/me/.cache/bert_tf"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/bert_tf"),
        ("linux", {}, "/home/me/.cache/bert_tf"),
        ("darwin", {}, "/home/me/Library/Caches/bert_tf"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/bert_tf"),
    ],
)
def test_the_cache_is_where_the_system_keeps_such_things(
    monkeypatch, platform, environment, expected
):
    for name in ("BERT_TF_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(fetching.sys, "platform", platform)
    assert fetching.default_cache_dir() == expected


# Fetches in a separate process; "at_check" stops it when all is unpacked, but not
# yet at its place, until it is killed.
IN_A_PROCESS = """
import sys, time
from bert_tf.checkpoints.catalogue import fetching, unpacking
from tests.checkpoints.catalogue import released_double

url, cache, mode = sys.argv[1:]
released_double.list_in_catalogue(url)

def stop(*arguments):
    print("unpacked", flush=True)
    time.sleep(600)

if mode == "at_check":
    unpacking._check = stop
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


def test_a_process_killed_while_downloading_is_continued_by_the_next(
    server, tmp_path, project_root
):
    server.script = [http.slowly(seconds=600)]
    process = started(server.url, tmp_path, "", project_root)
    part = tmp_path / f"{ZIP}.download.part"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (part.exists() and part.stat().st_size):
        time.sleep(0.01)
    kill(process)
    size = part.stat().st_size
    assert 0 < size < len(server.content)
    assert unpacking.is_unpacked(fetch(tmp_path))
    assert server.asked[-1][1] == f"bytes={size}-"
    assert left_in(tmp_path) == set()


def test_a_process_killed_while_unpacking_leaves_nothing_to_the_next(
    server, tmp_path, project_root
):
    process = started(server.url, tmp_path, "at_check", project_root)
    assert process.stdout.readline() == "unpacked\n"
    kill(process)
    assert not (tmp_path / double.PATH).exists()
    assert any(path.endswith("vocab.txt") for path in left_in(tmp_path))
    assert unpacking.is_unpacked(fetch(tmp_path))
    assert len(server.asked) == 1  # The download was whole.
    assert left_in(tmp_path) == set()


def test_two_processes_download_the_same_model_once(
    server, tmp_path, project_root, monkeypatch
):
    is_waiting, logged = threading.Event(), []

    def log(text, *values):
        logged.append(text % values)
        is_waiting.set()

    monkeypatch.setattr(locks.logger, "info", log)
    server.script = [http.after(is_waiting)]
    process = started(server.url, tmp_path, "", project_root)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not server.asked:
        time.sleep(0.01)
    folder = fetch(tmp_path)
    assert f"Waiting for process {process.pid} on" in logged[0]
    assert process.communicate()[0] == f"{folder}\n"
    assert unpacking.is_unpacked(folder)
    assert len(server.asked) == 1
