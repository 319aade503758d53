"""Downloads a file over HTTP: complete or not at all, and resumed after a break.

The bytes received so far are in `TARGET.part`. We do not use a library because the zips
are up to 1.2 GB: pooch and keras.utils.get_file restart a broken download at the first
byte, and huggingface_hub only resumes downloads from its own hub.
"""

import http.client
import logging
import os
import re
import socket
import time
import urllib.error
import urllib.request
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
_RETRIED = {408, 416, 425, 429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class _AttemptError(Exception):
    """A failed attempt that is worth repeating; the text says what happened."""


def download(url: str, target: str, *, max_bytes: int, stage: str) -> None:
    """Downloads a file; an existing part of it is continued.

    Proxies are those of the environment (`https_proxy`, ...). The caller makes sure
    that no other process downloads to the same target, and checks the content: a part
    of another version of the file would be continued, too.

    Args:
        url: http or https.
        target: path. `TARGET.part` stays if the download fails.
        max_bytes: the size above which the download fails.
        stage: name under which progress in megabytes is reported.

    Raises:
        OSError: the download failed; the message is the reason, without the URL.
    """
    part = f"{target}.part"
    num_failed, most = 0, _size(part)
    while True:
        try:
            _receive(url, part, max_bytes, stage)
            break
        except _AttemptError as failure:
            # A download that makes progress is never abandoned.
            num_failed = 0 if _size(part) > most else num_failed + 1
            most = max(most, _size(part))
            if num_failed > len(BACK_OFF_S):
                raise OSError(str(failure)) from None
            wait = BACK_OFF_S[max(num_failed - 1, 0)]
            logger.warning("%s: %s; trying again in %g s.", url, failure, wait)
        time.sleep(wait)
    files.rename(part, target)


def _receive(url: str, part: str, max_bytes: int, stage: str) -> None:
    """Downloads the rest of a part, or the complete file.

    Raises:
        _AttemptError: it is still incomplete.
        OSError: another attempt would not help.
    """
    start = _size(part)
    headers = {"User-Agent": "bert_tf", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            _save(response, part, start, max_bytes, stage)
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"the server answered {error.code} {error.reason}".splitlines()[0]
        if error.code == 416:  # There are no further bytes.
            if error.headers.get("Content-Range") == f"bytes */{start}":
                return
            os.remove(part)  # It does not belong to the current file.
        failure = _AttemptError if error.code in _RETRIED else OSError
        raise failure(reason.rstrip(" .")) from None
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or str(error.reason)
        is_offline = isinstance(error.reason, socket.gaierror) and not start
        raise (OSError if is_offline else _AttemptError)(reason) from None
    except TimeoutError:
        raise _AttemptError(f"nothing was received for {TIMEOUT_S:g} s") from None
    except (ConnectionError, http.client.HTTPException) as error:
        raise _AttemptError(f"the connection broke ({error or 'no reason'})") from None


def _save(response: Any, part: str, start: int, max_bytes: int, stage: str) -> None:
    sent = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if sent is not None and int(sent[1]) == start:
        size, mode = int(sent[2]), "ab"
    else:  # The server sends the complete file.
        size, start, mode = int(response.headers.get("Content-Length", 0)), 0, "wb"
    total_mb = size / _BYTES_PER_MB or None
    with files.open_file(part, mode) as file:
        while chunk := response.read1(_CHUNK_BYTES):
            file.write(chunk)
            file.flush()
            start += len(chunk)
            progress_module.report(stage, start / _BYTES_PER_MB, total_mb, unit="MB")
            if max(start, size) > max_bytes:
                raise OSError(f"it has more than {max_bytes} bytes")
    if start < size:
        raise _AttemptError(f"the connection ended after {start} of {size} bytes")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
