"""A file over HTTP that is there whole or not at all, and goes on where it stopped.

What has come so far is in `TARGET.part`; `TARGET.part.json` beside it says what it is
a part of. Whoever downloads holds the lock of `fetching`.
"""

import contextlib
import dataclasses
import http.client
import json
import logging
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.request

from bert_tf import files
from bert_tf import progress as progress_module

logger = logging.getLogger(__name__)

# A server that is silent for so long is taken for gone.
TIMEOUT_S = 60.0
# Waits after attempts that brought nothing; then the download is given up.
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0)
_CHUNK_BYTES = 1 << 20
_BYTES_A_MB = 1e6
_RETRIED = {408, 425, 429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Version:
    """What a part is a part of."""

    url: str
    validator: str | None  # ETag, or else Last-Modified; None: nothing tells versions.
    size: int | None  # Of the whole, in bytes; None where the server did not say.


class _AttemptError(Exception):
    """An attempt that may be worth another one; the text says what happened."""


class _UnknownHostError(_AttemptError):
    """There is no network, as a rule."""


class _SameSchemeRedirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from HTTPS to anything else."""

    def redirect_request(self, request, *arguments):
        new_url = arguments[-1]
        if request.full_url.startswith("https:") and not new_url.startswith("https:"):
            raise OSError(f"redirected from HTTPS to {new_url}")
        return super().redirect_request(request, *arguments)


def download(url, target, *, max_bytes, stage, progress=progress_module.silent):
    """Downloads a file; a part that is there already is continued.

    Proxies are those of the environment (`https_proxy`, ...).

    Args:
        url: http or https.
        target: path; `TARGET.part` holds what has come so far, and stays when it
            fails.
        max_bytes: int, the size at which it is given up.
        stage: name for `progress`, which counts megabytes.
        progress: `progress.Progress`.

    Raises:
        OSError: it cannot be had; the message is the reason, without the URL.
    """
    part = f"{target}.part"
    told = _Monotonic(progress, stage)
    if not _is_complete(part, url):
        _attempt_until_complete(url, part, max_bytes, told)
    size = os.path.getsize(part)
    told(size, size)
    files.rename(part, target)
    _remove(_description(part))


def has_begun(target):
    """Returns whether there is a part of a download that failed."""
    return os.path.exists(f"{target}.part")


def discard(target):
    """Removes what is there of a download."""
    for path in (_description(f"{target}.part"), f"{target}.part"):
        _remove(path)


def _attempt_until_complete(url, part, max_bytes, told):
    num_failed = 0
    most = first = _size(part)
    while True:
        try:
            return _attempt(url, part, max_bytes, told)
        except _AttemptError as failure:
            # What comes further than before is never given up.
            num_failed = 0 if _size(part) > most else num_failed + 1
            most = max(most, _size(part))
            is_offline = isinstance(failure, _UnknownHostError) and most == first
            if is_offline or num_failed > len(BACK_OFF_S):
                raise OSError(str(failure)) from None
            wait = BACK_OFF_S[max(num_failed - 1, 0)]
            logger.warning("%s: %s; trying again in %g s.", url, failure, wait)
        time.sleep(wait)


def _attempt(url, part, max_bytes, told):
    """Downloads what is missing of a part, or all of it.

    Raises:
        _AttemptError: the rest is missing still.
        OSError: it is not worth another attempt.
    """
    version = _read_version(part, url)
    start = _size(part) if version else 0
    headers = {"User-Agent": "bert_tf", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": version.validator}
    request = urllib.request.Request(url, headers=headers)
    with _failures(), _opened(request, part) as response:
        if response.status == 206:
            size = _size_of_range(response, start, version, part)
        else:
            start, size = 0, _length(response)
        if size is not None and size > max_bytes:
            raise OSError(f"it has {size} bytes, expected at most {max_bytes}")
        version = _Version(url=url, validator=_validator(response), size=size)
        if not start:
            _remove(part)  # What it is a part of must never be an older version's.
            _write_version(part, version)
        with files.open_file(part, "ab" if start else "wb") as file:
            sizes = {"start": start, "size": size, "max_bytes": max_bytes}
            _copy(response, file, told, **sizes)


def _copy(response, file, told, *, start, size, max_bytes):
    done = start
    told(done, size)
    while chunk := response.read1(_CHUNK_BYTES):
        file.write(chunk)
        file.flush()
        done += len(chunk)
        if done > max_bytes:
            raise OSError(f"it has more than {max_bytes} bytes")
        told(done, size)
    if size is not None and done < size:
        raise _AttemptError(f"the connection ended after {done} of {size} bytes")


@contextlib.contextmanager
def _opened(request, part):
    opener = urllib.request.build_opener(_SameSchemeRedirect)
    try:
        response = opener.open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            told = str(error.reason).partition("\n")[0]
            reason = f"the server answered {error.code} {told}".rstrip(" .")
        if error.code == 416:  # The part is none of the file that is there now.
            discard(part.removesuffix(".part"))
            raise _AttemptError(reason) from None
        if error.code in _RETRIED:
            raise _AttemptError(reason) from None
        raise OSError(reason) from None
    with response:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise OSError("the server sent it encoded, though that was not asked for")
        yield response


@contextlib.contextmanager
def _failures():
    """Turns what a network does into `_AttemptError`; a disk's errors stay."""
    try:
        yield
    except urllib.error.URLError as error:
        reason = error.reason
        text = getattr(reason, "strerror", None) or str(reason)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise OSError(text) from None
        if isinstance(reason, socket.gaierror):
            raise _UnknownHostError(text) from None
        raise _AttemptError(text) from None
    except TimeoutError:
        raise _AttemptError(f"nothing came for {TIMEOUT_S:g} s") from None
    except (ConnectionError, http.client.HTTPException) as error:
        raise _AttemptError(
            f"the connection broke ({error or 'no reason given'})"
        ) from None


def _size_of_range(response, start, version, part):
    """Returns the size of the whole; refuses a range that is no continuation."""
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    found = _validator(response)
    is_changed = found is not None and found != version.validator
    if match is None or int(match[1]) != start or is_changed:
        discard(part.removesuffix(".part"))
        raise _AttemptError("the server sent a part of another version")
    return version.size if match[2] == "*" else int(match[2])


def _length(response):
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _validator(response):
    """Returns what If-Range takes; a weak ETag says too little about bytes."""
    etag = response.headers.get("ETag")
    if etag and not etag.startswith("W/"):
        return etag
    return response.headers.get("Last-Modified")


def _is_complete(part, url):
    version = _read_version(part, url)
    return version is not None and version.size == _size(part)


def _read_version(part, url):
    """Returns the `_Version` of a part that can be continued, or None."""
    try:
        with open(_description(part), encoding="utf-8") as file:
            version = _Version(**json.load(file))
    except (OSError, TypeError, ValueError):
        return None
    is_ours = version.url == url and isinstance(version.validator, str)
    return version if is_ours and os.path.exists(part) else None


def _write_version(part, version):
    with files.complete_or_absent(_description(part)) as file:
        json.dump(dataclasses.asdict(version), file)


def _description(part):
    return f"{part}.json"


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


class _Monotonic:
    """Tells progress, which never falls, of a download that may start again."""

    def __init__(self, progress, stage):
        self._progress = progress
        self._stage = stage
        self._most = 0.0

    def __call__(self, done, total):
        self._most = max(self._most, done / _BYTES_A_MB)
        whole = None if total is None else max(total / _BYTES_A_MB, self._most)
        self._progress(self._stage, self._most, whole, unit="MB")
