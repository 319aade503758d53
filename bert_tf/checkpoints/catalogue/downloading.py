"""Downloads a file over HTTP: complete or not at all, and resumed after a break.

The bytes received so far are in `TARGET.part`; `TARGET.part.json` beside it records
which version of which file it belongs to. The caller holds the lock of `fetching`.

This is our own code because the zips are up to 1.2 GB and have no published checksums.
A download must resume after a lost connection and after SIGKILL, and must never join
the parts of two versions (`If-Range`). pooch starts again from the first byte, and
huggingface_hub resumes downloads only from its own hub.
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
from collections.abc import Iterator
from typing import Any

from bert_tf import files
from bert_tf import progress as progress_module

logger = logging.getLogger(__name__)

# A server that sends nothing for this long is considered unreachable.
TIMEOUT_S = 60.0
# Waits after attempts that received nothing; then the download fails.
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0)
_CHUNK_BYTES = 1 << 20
_BYTES_PER_MB = 1e6
_RETRIED = {408, 425, 429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Version:
    """The file and version that a part belongs to."""

    url: str
    validator: str | None  # ETag, or else Last-Modified; None: the server sent neither.
    size: int | None  # Of the complete file, in bytes; None: the server did not say.


class _AttemptError(Exception):
    """A failed attempt that is worth repeating; the text says what happened."""


class _UnknownHostError(_AttemptError):
    """The host name is unknown, usually because there is no network."""


class _SameSchemeRedirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from HTTPS to anything else."""

    def redirect_request(self, request: Any, *arguments: Any) -> Any:
        new_url = arguments[-1]
        if request.full_url.startswith("https:") and not new_url.startswith("https:"):
            raise OSError(f"redirected from HTTPS to {new_url}")
        return super().redirect_request(request, *arguments)


def download(
    url: str,
    target: str,
    *,
    max_bytes: int,
    stage: str,
    progress: progress_module.Progress = progress_module.silent,
) -> None:
    """Downloads a file; an existing part of it is continued.

    Proxies are those of the environment (`https_proxy`, ...).

    Args:
        url: http or https.
        target: path; `TARGET.part` contains the bytes received so far and stays if the
            download fails.
        max_bytes: the size above which the download fails.
        stage: name for `progress`, which counts megabytes.
        progress: `progress.Progress`.

    Raises:
        OSError: the download failed; the message is the reason, without the URL.
    """
    part = f"{target}.part"
    report = _Monotonic(progress, stage)
    if not _is_complete(part, url):
        _attempt_until_complete(url, part, max_bytes, report)
    size = os.path.getsize(part)
    report(size, size)
    files.rename(part, target)
    _remove(_description(part))


def has_begun(target: str) -> bool:
    """Returns whether there is a part of a failed download."""
    return os.path.exists(f"{target}.part")


def discard(target: str) -> None:
    """Removes the part of a download."""
    for path in (_description(f"{target}.part"), f"{target}.part"):
        _remove(path)


def _attempt_until_complete(
    url: str, part: str, max_bytes: int, report: "_Monotonic"
) -> None:
    num_failed = 0
    most = first = _size(part)
    while True:
        try:
            return _attempt(url, part, max_bytes, report)
        except _AttemptError as failure:
            # A download that makes progress is never abandoned.
            num_failed = 0 if _size(part) > most else num_failed + 1
            most = max(most, _size(part))
            is_offline = isinstance(failure, _UnknownHostError) and most == first
            if is_offline or num_failed > len(BACK_OFF_S):
                raise OSError(str(failure)) from None
            wait = BACK_OFF_S[max(num_failed - 1, 0)]
            logger.warning("%s: %s; trying again in %g s.", url, failure, wait)
        time.sleep(wait)


def _attempt(url: str, part: str, max_bytes: int, report: "_Monotonic") -> None:
    """Downloads the rest of a part, or the complete file.

    Raises:
        _AttemptError: it is still incomplete.
        OSError: another attempt would not help.
    """
    version = _read_version(part, url)
    start = _size(part) if version else 0
    headers = {"User-Agent": "bert_tf", "Accept-Encoding": "identity"}
    if version is not None and version.validator and start:
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
            _remove(part)  # Before its description changes: never mix two versions.
            _write_version(part, version)
        with files.open_file(part, "ab" if start else "wb") as file:
            _copy(response, file, report, start=start, size=size, max_bytes=max_bytes)


def _copy(
    response: Any,
    file: Any,
    report: "_Monotonic",
    *,
    start: int,
    size: int | None,
    max_bytes: int,
) -> None:
    done = start
    report(done, size)
    while chunk := response.read1(_CHUNK_BYTES):
        file.write(chunk)
        file.flush()
        done += len(chunk)
        if done > max_bytes:
            raise OSError(f"it has more than {max_bytes} bytes")
        report(done, size)
    if size is not None and done < size:
        raise _AttemptError(f"the connection ended after {done} of {size} bytes")


@contextlib.contextmanager
def _opened(request: urllib.request.Request, part: str) -> Iterator[Any]:
    opener = urllib.request.build_opener(_SameSchemeRedirect)
    try:
        response = opener.open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            phrase = str(error.reason).partition("\n")[0]
            reason = f"the server answered {error.code} {phrase}".rstrip(" .")
        if error.code == 416:  # The part does not belong to the current file.
            discard(part.removesuffix(".part"))
            raise _AttemptError(reason) from None
        if error.code in _RETRIED:
            raise _AttemptError(reason) from None
        raise OSError(reason) from None
    with response:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise OSError("the server sent the file encoded, which was not requested")
        yield response


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Turns network errors into `_AttemptError`; errors of the disk pass through."""
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
        raise _AttemptError(f"nothing was received for {TIMEOUT_S:g} s") from None
    except (ConnectionError, http.client.HTTPException) as error:
        raise _AttemptError(
            f"the connection broke ({error or 'no reason given'})"
        ) from None


def _size_of_range(
    response: Any, start: int, version: _Version | None, part: str
) -> int | None:
    """Returns the size of the complete file; refuses a range that does not continue."""
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    found = _validator(response)
    is_changed = version is None or found not in (None, version.validator)
    if match is None or version is None or int(match[1]) != start or is_changed:
        discard(part.removesuffix(".part"))
        raise _AttemptError("the server sent part of a different version")
    return version.size if match[2] == "*" else int(match[2])


def _length(response: Any) -> int | None:
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _validator(response: Any) -> str | None:
    """Returns a value for If-Range; a weak ETag does not guarantee equal bytes."""
    etag = response.headers.get("ETag")
    if etag and not etag.startswith("W/"):
        return etag
    return response.headers.get("Last-Modified")


def _is_complete(part: str, url: str) -> bool:
    version = _read_version(part, url)
    return version is not None and version.size == _size(part)


def _read_version(part: str, url: str) -> _Version | None:
    """Returns the `_Version` of a part that can be continued, or None."""
    try:
        with open(_description(part), encoding="utf-8") as file:
            version = _Version(**json.load(file))
    except (OSError, TypeError, ValueError, RecursionError):
        return None
    is_ours = version.url == url and isinstance(version.validator, str)
    return version if is_ours and os.path.exists(part) else None


def _write_version(part: str, version: _Version) -> None:
    with files.complete_or_absent(_description(part)) as file:
        json.dump(dataclasses.asdict(version), file)


def _description(part: str) -> str:
    return f"{part}.json"


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


class _Monotonic:
    """Reports progress that never decreases, even if a download starts again."""

    def __init__(self, progress: progress_module.Progress, stage: str) -> None:
        self._progress = progress
        self._stage = stage
        self._most = 0.0

    def __call__(self, done: int, total: int | None) -> None:
        self._most = max(self._most, done / _BYTES_PER_MB)
        total_mb = None if total is None else max(total / _BYTES_PER_MB, self._most)
        self._progress(self._stage, self._most, total_mb, unit="MB")
