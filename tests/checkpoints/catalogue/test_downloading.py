"""Downloads arrive complete or fail with a one-line reason."""

import random
import urllib.request

import pytest

from bert_tf import file_errors
from bert_tf import files
from bert_tf.checkpoints.catalogue import downloading
from tests.checkpoints.catalogue import http_double as http

CONTENT = random.Random(1).randbytes(300_000)
OTHER = random.Random(2).randbytes(200_000)
FROM_THE_START = None


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(downloading, "BACK_OFF_S", (0.0, 0.0, 0.0))


@pytest.fixture
def server():
    with http.serving(CONTENT) as server:
        yield server


def download(server, folder, **kwargs):
    target = folder / "model.zip"
    values = {"max_bytes": 10**6, "stage": "download", **kwargs}
    downloading.download(f"{server.url}/a/model.zip", target, **values)
    return target.read_bytes()


def starts_asked_for(server):
    return [asked and int(asked[6:-1]) for _, asked, _ in server.asked]


@pytest.mark.parametrize(
    "script, starts",
    [
        # Nothing goes wrong.
        ([], [None]),
        # The connection breaks; the received part is kept, and only the rest is
        # requested.
        ([http.cut_after(1000)], [None, 1000]),
        ([http.cut_after(1000), http.cut_after(500)], [None, 1000, 1500]),
        ([http.cut_after(0)], [None, None]),
        ([http.cut_after(299_999)], [None, 299_999]),
        # It may break any number of times as long as some bytes arrive.
        ([http.cut_after(1)] * 9, [None, *range(1, 10)]),
        ([http.hang_up], [None, None]),
        # The server does not support ranges: start again.
        ([http.cut_after(1000), http.without_range], [None, 1000]),
        # It answers with the wrong part, or with that of another file.
        ([http.cut_after(1000), http.range_from(1)], [None, 1000, None]),
        ([http.cut_after(1000), http.range_of_another], [None, 1000, None]),
        ([http.cut_after(1000), http.status(416)], [None, 1000, None]),
        # Its trouble passes.
        ([http.status(500), http.status(503), http.status(429)], [None] * 4),
        ([http.cut_after(1000), http.status(502)], [None, 1000, 1000]),
        # It does not say how long the file is.
        ([http.without_length], [None]),
        ([http.chunked], [None]),
        ([http.cut_chunks, http.without_range], [None, 300_000]),
        # It says the file is longer than it is.
        ([http.with_length(400_000)], [None, 300_000, None]),
        ([http.redirect("/b/elsewhere.zip")], [None, None]),
    ],
)
def test_the_file_arrives_whole(server, tmp_path, script, starts):
    server.script = list(script)
    assert download(server, tmp_path) == CONTENT
    assert starts_asked_for(server) == starts
    assert [path.name for path in tmp_path.iterdir()] == ["model.zip"]


@pytest.mark.parametrize(
    "script, num_asked, message",
    [
        ([http.status(404)], 1, "^the server answered 404 Not Found$"),
        ([http.status(403)], 1, "^the server answered 403 Forbidden$"),
        ([http.status(500)] * 9, 4, "^the server answered 500 Internal Server Error$"),
        ([http.hang_up] * 9, 4, "^the connection broke"),
        ([http.cut_after(0)] * 9, 4, "^the connection ended after 0 of 300000 bytes$"),
        ([http.redirect("/a")] * 99, 5, "infinite loop$"),
        ([http.redirect("file:///etc/passwd")], 1, "not allowed$"),
        ([http.encoded], 1, "sent the file encoded"),
        ([http.with_length(10**9)], 1, "has 1000000000 bytes, expected at most"),
        # Always a byte too few, then nothing more: no endless loop.
        (
            [http.with_length(400_000), http.status(416)] * 9,
            5,
            "after 300000 of 400000",
        ),
    ],
)
def test_what_cannot_be_had_is_given_up_with_a_reason(
    server, tmp_path, script, num_asked, message
):
    server.script = list(script)
    with pytest.raises(OSError, match=message) as caught:
        download(server, tmp_path)
    assert "\n" not in str(caught.value)
    assert len(server.asked) == num_asked
    assert not (tmp_path / "model.zip").exists()


def test_a_download_that_stalls_is_continued(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "TIMEOUT_S", 2.0)
    server.script = [http.stall_after(1000, seconds=6)]
    assert download(server, tmp_path) == CONTENT
    assert starts_asked_for(server) == [None, 1000]


def test_a_server_that_never_sends_anything_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "TIMEOUT_S", 0.5)
    server.script = [http.stall_after(0, seconds=2)] * 9
    with pytest.raises(OSError, match=r"^nothing was received for 0\.5 s$"):
        download(server, tmp_path)
    assert len(server.asked) == 4


def test_a_stream_without_length_ends_at_the_most_that_is_expected(server, tmp_path):
    server.script = [http.chunked]
    with pytest.raises(OSError, match="it has more than 100000 bytes"):
        download(server, tmp_path, max_bytes=100_000)


@pytest.mark.parametrize(
    "etag, other, start, first",
    [
        ('"one"', '"one"', 1000, CONTENT[:1000]),  # The same file: the rest.
        ('"one"', '"two"', 1000, b""),  # Another file: all of it.
        ('W/"one"', 'W/"one"', FROM_THE_START, b""),  # A weak one says too little.
        (None, None, FROM_THE_START, b""),
    ],
)
def test_a_later_download_goes_on_with_the_same_file_only(
    server, tmp_path, etag, other, start, first
):
    server.etag = etag
    server.script = [http.cut_after(1000), http.status(404)]
    with pytest.raises(OSError, match="404"):
        download(server, tmp_path)
    whole = OTHER if not first else CONTENT
    server.content, server.etag = whole, other
    server.asked.clear()
    assert download(server, tmp_path) == whole
    assert starts_asked_for(server) == [start]
    assert server.asked[0][2] == (etag if start else None)


def test_last_modified_serves_where_there_is_no_etag(server, tmp_path):
    date = "Thu, 18 Oct 2018 00:00:00 GMT"

    def dated(request):
        request.answer(200, Content_Length=len(CONTENT), Last_Modified=date)
        request.wfile.write(CONTENT[:1000])

    server.etag = date  # What If-Range is compared with.
    server.script = [dated]
    assert download(server, tmp_path) == CONTENT
    assert server.asked[1][1:] == ("bytes=1000-", date)


@pytest.mark.parametrize(
    "description",
    [
        "",
        "{",
        "[]",
        '{"url": 1}',
        '{"url": "http://elsewhere/x", "validator": "\\"one\\"", "size": 300000}',
    ],
)
def test_a_part_of_which_nothing_is_known_is_not_continued(
    server, tmp_path, description
):
    (tmp_path / "model.zip.part").write_bytes(b"x" * 1000)
    (tmp_path / "model.zip.part.json").write_text(description)
    assert download(server, tmp_path) == CONTENT
    assert starts_asked_for(server) == [None]


def test_a_part_that_is_complete_is_not_asked_for_again(server, tmp_path):
    server.script = [http.cut_after(1000), http.status(404)]
    with pytest.raises(OSError, match="404"):
        download(server, tmp_path)
    (tmp_path / "model.zip.part").write_bytes(CONTENT)
    server.asked.clear()
    assert download(server, tmp_path) == CONTENT
    assert server.asked == []


def test_progress_counts_megabytes_and_never_falls(server, tmp_path):
    server.script = [http.cut_after(200_000), http.without_range]
    told = []

    def progress(stage, done, total, *, unit):
        told.append((stage, done, total, unit))

    download(server, tmp_path, progress=progress)
    assert {(stage, total, unit) for stage, _, total, unit in told} == {
        ("download", 0.3, "MB")
    }
    amounts = [done for _, done, _, _ in told]
    assert amounts == sorted(amounts)
    assert amounts[-1] == 0.3


def test_an_unknown_host_is_given_up_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "BACK_OFF_S", (60.0,))
    with pytest.raises(OSError, match=r"(?i)name|address|resol"):
        downloading.download(
            "http://nowhere.invalid/a.zip",
            tmp_path / "a.zip",
            max_bytes=1,
            stage="download",
        )


def test_a_proxy_of_the_environment_is_used(server, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    target = tmp_path / "a.zip"
    url = "http://nowhere.invalid/a.zip"
    downloading.download(url, target, max_bytes=10**6, stage="download")
    assert target.read_bytes() == CONTENT
    assert server.asked[0][0] == url


def test_https_is_never_left_by_a_redirect():
    redirect = downloading._SameSchemeRedirect()
    request = urllib.request.Request("https://a/b.zip")
    arguments = (request, None, 302, "Found", {})
    with pytest.raises(OSError, match=r"redirected from HTTPS to http://c/d\.zip"):
        redirect.redirect_request(*arguments, "http://c/d.zip")
    followed = redirect.redirect_request(*arguments, "https://c/d.zip")
    assert followed.full_url == "https://c/d.zip"


def test_a_full_disk_is_named_and_not_tried_again(server, tmp_path, monkeypatch):
    def open_full(path, mode):
        return file_errors.open_local("/dev/full", "wb", path)

    monkeypatch.setattr(files, "open_file", open_full)
    with pytest.raises(OSError, match=r"model\.zip\.part: cannot be written: No space"):
        download(server, tmp_path)
    assert len(server.asked) == 1
