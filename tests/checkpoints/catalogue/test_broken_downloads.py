"""Downloads arrive complete or fail with a one-line reason."""

import random

import pytest

from bert_tf import file_errors
from bert_tf import files
from bert_tf.checkpoints.catalogue import fetching
from tests.checkpoints.catalogue import http_double as http

CONTENT = random.Random(1).randbytes(300_000)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(fetching, "BACK_OFF_S", (0.0, 0.0, 0.0))


@pytest.fixture
def server():
    with http.serving(CONTENT) as server:
        yield server


def download(server, folder, **kwargs):
    target = folder / "model.zip"
    values = {"max_bytes": 10**6, "stage": "download", **kwargs}
    fetching.download(f"{server.url}/a/model.zip", target, **values)
    return target.read_bytes()


def requested_starts(server):
    return [asked and int(asked[6:-1]) for _, asked in server.asked]


@pytest.mark.parametrize(
    "script, starts",
    [
        ([], [None]),  # Nothing goes wrong.
        # The connection breaks; only the rest is requested.
        ([http.cut_after(1000), http.cut_after(500)], [None, 1000, 1500]),
        ([http.cut_after(299_999)], [None, 299_999]),
        # It may break any number of times as long as some bytes arrive.
        ([http.cut_after(1)] * 9, [None, *range(1, 10)]),
        ([http.hang_up], [None, None]),
        # The server does not support ranges: start again.
        ([http.cut_after(1000), http.without_range], [None, 1000]),
        ([http.cut_after(1000), http.status(416)], [None, 1000, None]),
        # Its trouble passes.
        ([http.status(500), http.status(503), http.status(429)], [None] * 4),
        ([http.chunked], [None]),  # The size is unknown.
        ([http.redirect("/b/elsewhere.zip")], [None, None]),
    ],
)
def test_the_complete_file_arrives(server, tmp_path, script, starts):
    server.script = list(script)
    assert download(server, tmp_path) == CONTENT
    assert requested_starts(server) == starts
    assert [path.name for path in tmp_path.iterdir()] == ["model.zip"]


@pytest.mark.parametrize(
    "script, num_requests, message",
    [
        ([http.status(404)], 1, "^the server answered 404 Not Found$"),
        ([http.status(500)] * 9, 4, "^the server answered 500 Internal Server Error$"),
        ([http.hang_up] * 9, 4, "^the connection broke"),
        ([http.cut_after(0)] * 9, 4, "^the connection ended after 0 of 300000 bytes$"),
        ([http.redirect("file:///etc/passwd")], 1, "not allowed$"),
        ([http.with_length(10**9)], 1, "has more than 1000000 bytes"),
        # Always a byte too few, then nothing more: no endless loop.
        ([http.with_length(400_000), http.status(416)] * 9, 5, "after 300000 of 4000"),
    ],
)
def test_a_download_fails_with_a_reason(
    server, tmp_path, script, num_requests, message
):
    server.script = list(script)
    with pytest.raises(OSError, match=message) as caught:
        download(server, tmp_path)
    assert "\n" not in str(caught.value)
    assert len(server.asked) == num_requests
    assert not (tmp_path / "model.zip").exists()


def test_a_download_that_stalls_is_continued(server, tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "TIMEOUT_S", 2.0)
    server.script = [http.slowly(seconds=12, num_parts=2)]
    assert download(server, tmp_path) == CONTENT
    assert requested_starts(server) == [None, 150_001]


def test_a_complete_part_is_used(server, tmp_path):
    (tmp_path / "model.zip.part").write_bytes(CONTENT)
    assert download(server, tmp_path) == CONTENT
    assert requested_starts(server) == [300_000]


def test_a_full_disk_is_named_and_not_tried_again(server, tmp_path, monkeypatch):
    def open_full(path, mode):
        return file_errors.open_local("/dev/full", "wb", path)

    monkeypatch.setattr(files, "open_file", open_full)
    with pytest.raises(OSError, match=r"model\.zip\.part: cannot be written: No space"):
        download(server, tmp_path)
    assert len(server.asked) == 1
