"""An object store for tests: a local folder that counts and delays every request."""

import contextlib
import os
import threading
import time
import types

# TensorFlow reads in pieces of this size, and a seek reads one byte (measured with
# the number of system calls for file://).
PIECE_BYTES = 512 * 1024
SCHEME = "store://"


class ObjectStore:
    """Stands in for `tf.io.gfile`: store://name is a file of a local folder.

    Args:
        folder: the local folder.
        seconds: duration of a request.

    Attributes:
        requests: list of (operation, path), one for each request.
        num_bytes: bytes that were read.
    """

    def __init__(self, folder, *, seconds=0.0):
        self._folder = str(folder)
        self._seconds = seconds
        self._lock = threading.Lock()
        self.requests = []
        self.num_bytes = 0
        self.GFile = lambda path, mode: _File(self, path)

    def request(self, operation, path, num_bytes=0):
        """Counts a request and waits as long as it takes; returns the local path."""
        with self._lock:
            self.requests.append((operation, path))
            self.num_bytes += num_bytes
        time.sleep(self._seconds)
        return self.local(path)

    def local(self, path):
        return os.path.join(self._folder, path.removeprefix(SCHEME))

    @contextlib.contextmanager
    def counted(self):
        """Yields a list of the requests that the block makes."""
        before, found = len(self.requests), []
        yield found
        found += self.requests[before:]

    def exists(self, path):
        return os.path.exists(self.request("exists", path))

    def isdir(self, path):
        return os.path.isdir(self.request("isdir", path))

    def stat(self, path):
        found = os.stat(self.request("stat", path))
        return types.SimpleNamespace(length=found.st_size, mtime_nsec=found.st_mtime_ns)

    def glob(self, pattern):
        folder, _, end = self.request("glob", pattern).rpartition("/")
        start = end.removesuffix("*")
        names = [name for name in os.listdir(folder) if name.startswith(start)]
        return [pattern.rpartition("/")[0] + "/" + name for name in names]


class _File:
    """An open file: reads and seeks as `tf.io.gfile.GFile` does."""

    def __init__(self, store, path):
        self._store, self._path = store, path
        self._place = self._start = self._stop = 0
        self._piece = b""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def seek(self, place):
        if not self._start <= place <= self._stop:
            self._store.request("seek", self._path)
            self._start = self._stop = place
            self._piece = b""
        self._place = place

    def read(self, count=-1):
        if count < 0:
            size = os.path.getsize(self._store.request("stat", self._path))
            count = size - self._place
        found = b""
        while len(found) < count:
            if self._place == self._stop and not self._fill():
                break
            first = self._place - self._start
            part = self._piece[first : first + count - len(found)]
            found += part
            self._place += len(part)
        return found

    def _fill(self):
        local = self._store.local(self._path)
        if not os.path.exists(local):
            raise FileNotFoundError(self._path)
        with open(local, "rb") as file:
            file.seek(self._stop)
            self._piece = file.read(PIECE_BYTES)
        self._store.request("read", self._path, len(self._piece))
        self._start, self._stop = self._stop, self._stop + len(self._piece)
        return bool(self._piece)
