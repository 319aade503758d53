"""Reads whole files in blocks; requests to remote file systems run in parallel."""

import collections
import concurrent.futures
from collections.abc import Iterator

from bert_tf import files

_BLOCK_BYTES = 1 << 22


def blocks(path: str) -> Iterator[bytes]:
    """Yields the content of a file in blocks of 4 MB; remote ones are read ahead.

    Raises:
        OSError: the file cannot be read.
    """
    starts = range(0, files.size(path), _BLOCK_BYTES)
    if not files.is_remote(path):
        yield from (files.read_range(path, start, _BLOCK_BYTES) for start in starts)
        return
    with concurrent.futures.ThreadPoolExecutor(files.REQUESTS_AT_ONCE) as threads:
        ahead: collections.deque = collections.deque()
        try:
            for start in starts:
                ahead.append(
                    threads.submit(files.read_range, path, start, _BLOCK_BYTES)
                )
                if len(ahead) == files.REQUESTS_AT_ONCE:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for request in ahead:
                request.cancel()
