"""Serves an exported model over HTTP, without Docker.

One process: uvicorn's event loop in the main thread, the threads of `server_model` that
compute, and one that loads versions. So it cannot die in part.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from typing import Any

from bert_tf import files
from bert_tf.serving import server_options
from bert_tf.serving import versions

try:
    import uvicorn
    from uvicorn.protocols.http import h11_impl

    from bert_tf.serving import server_app
    from bert_tf.serving import server_model
except ImportError as error:
    raise ImportError(
        f"bert_tf serve needs {error.name}, which is not installed; run "
        "pip install 'bert_tf[server]'."
    ) from error

TOKEN_VARIABLE = "BERT_TF_SERVER_TOKEN"
_MAX_CONNECTIONS = 512
_GRACE_SECONDS = 30  # For requests in progress when the server stops.
_POLL_SECONDS = 2.0
_FIRST_TRIES = 5  # To load the first version: network storage may fail for a moment.
# Of a connection without a request in progress: for the headers of the next request,
# or the rest of the last request and its answer.
_IDLE_SECONDS = 10
# A batch that takes this many times the longest wait for an answer, and this many
# seconds, counts as stuck.
_STUCK = 3
_STUCK_SECONDS = 60


def run(options: server_options.ServeModelOptions) -> str:
    """Serves a model until SIGTERM or Ctrl-C, then finishes the requests in progress.

    Writes the address to standard output when the model is ready; returns a report.

    Raises:
        OSError: the model cannot be loaded or can no longer answer, or the port is in
            use.
        ValueError: OpenVINO cannot compute the model, or the token is empty.
    """
    return _Server(options).run()


def find_model(export_dir: str) -> tuple[str, str, int]:
    """Returns the folder of a SavedModel, its name and its version.

    Args:
        export_dir: the SavedModel, or a folder with versions, of which the newest is
            taken.

    Raises:
        FileNotFoundError: there is no SavedModel.
    """
    folder = versions.latest_folder(export_dir)
    above, last = os.path.split(os.path.abspath(folder))
    version = int(last) if last.isdecimal() else 1
    name = os.path.basename(above) if last.isdecimal() else last
    return folder, re.sub(r"[^\w.-]", "_", name) or "model", version


class _Server:
    """The parts of a server, and what ends it."""

    def __init__(self, options: server_options.ServeModelOptions):
        self._options = options
        self._error: Exception | None = None  # Why the server ends.
        self._seen: Any = None  # The newest version at the last look, and its files.
        self._tried: Any = None  # The last one that was loaded, or could not be.
        _, self._name, _ = find_model(options.export_dir)
        self._queue = server_model.Queue(options.max_queue_size, self._fail)
        self._app = server_app.Application(
            options, self._name, self._queue, log=self._log, token=_token()
        )
        self._uvicorn = _uvicorn_server(self._app)

    def run(self) -> str:
        """Serves until a signal or an error, and returns a report."""
        listener = _listener(self._options.host, self._options.port)
        previous = {
            number: signal.signal(number, self._stop)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        threading.Thread(target=self._load_versions, daemon=True).start()
        try:
            asyncio.run(self._uvicorn.serve(sockets=[listener]))
        finally:
            for number, action in previous.items():
                signal.signal(number, action)
        if self._error is not None:
            raise self._error
        return f"{self._name} is no longer served."

    def _stop(self, number, frame):
        if self._app.model is None:
            # The thread that loads the model cannot be interrupted.
            _exit("stopped before the model was loaded.", 128 + number)
        self._uvicorn.should_exit = True

    def _fail(self, error):
        self._error = self._error or error
        self._uvicorn.should_exit = self._uvicorn.force_exit = True

    def _load_versions(self):
        """Loads the newest version, then each new one; ends the server if it hangs."""
        limit = max(_STUCK_SECONDS, self._options.queue_timeout_seconds * _STUCK)
        tries = 0
        while self._error is None:
            try:
                self._load_newest()
            except Exception as error:
                tries += 1
                may_pass = isinstance(error, OSError) and tries < _FIRST_TRIES
                if self._app.model is None and not may_pass:
                    self._fail(error)
                elif self._seen is not None:
                    reason = f"Version {self._seen[0]} is not served: {error}"
                    self._log({"error": reason[:500]})
            time.sleep(_POLL_SECONDS)
            if self._queue.busy_seconds() > limit:
                # The thread that computes cannot be interrupted.
                _exit("The model does not answer.", 1)

    def _load_newest(self):
        """Loads a version beside the previous one, which it replaces if it works."""
        options, previous = self._options, self._app.model
        seen, self._seen = self._seen, None
        folder, _, version = find_model(options.export_dir)
        self._seen = (version, _sizes(folder))
        # A version that is still being copied changes.
        is_new = self._seen == seen and seen != self._tried
        if previous is not None and (not is_new or version == previous.version):
            return
        self._tried = self._seen
        self._app.model = server_model.LoadedModel(
            folder, options.backend, options.dtype, version
        )
        if previous is not None:
            self._log({"message": f"Version {version} is served."})
            return
        host = {"127.0.0.1": "localhost", "::": "[::]"}.get(options.host, options.host)
        sys.stdout.write(f"{self._name} is served at http://{host}:{options.port}.\n")
        sys.stdout.flush()

    def _log(self, fields: dict[str, Any]) -> None:
        """Writes a line of the log."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **fields}
        text = json.dumps(line)
        if self._options.log_format == "text":
            pairs = (
                (name, json.dumps(value).strip('"')) for name, value in line.items()
            )
            text = " ".join(map("=".join, pairs))
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _exit(message, code):
    """Ends the process although other threads run."""
    sys.stderr.write(f"bert_tf serve: {message}\n")
    sys.stderr.flush()
    os._exit(code)


def _sizes(folder):
    """Returns the sizes of a version's files."""
    inner = f"{folder}/variables"
    paths = [f"{folder}/{versions.MODEL_FILE}"]
    if files.is_folder(inner):
        paths += [f"{inner}/{name}" for name in files.list_folder(inner)]
    return {path: files.size(path) for path in paths}


def _token():
    """Returns the token that requests must have, or None."""
    token = os.environ.get(TOKEN_VARIABLE)
    if (path := os.environ.get(f"{TOKEN_VARIABLE}_FILE")) == "":
        raise ValueError(f"{TOKEN_VARIABLE}_FILE is empty; expected a path.")
    if path is not None:
        token = "\n".join(files.read_lines(path)).strip()
    if token == "":
        raise ValueError(
            f"{TOKEN_VARIABLE} is empty; expected a token, or no variable."
        )
    return token


def _listener(host, port):
    is_v6 = host == "::"
    family = socket.AF_INET6 if is_v6 else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=is_v6)
    except OSError as error:
        raise OSError(
            f"Cannot listen on port {port}: {error.strerror}. If another program uses "
            "it, stop that program, or pass another --port."
        ) from error


class _Protocol(h11_impl.H11Protocol):
    """Closes connections above the limit, and those without a request for long."""

    def connection_made(self, transport):
        super().connection_made(transport)
        if len(self.connections) > _MAX_CONNECTIONS:
            transport.close()
        self._watch(None, 0)

    def connection_lost(self, exc):
        self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self, previous, seconds):
        is_answered = self.cycle is None or self.cycle.response_complete
        is_idle = is_answered or self.transport.is_closing()
        state = (self.cycle, self.transport.get_write_buffer_size())
        seconds = seconds + 1 if is_idle and state == previous else 0
        if seconds > _IDLE_SECONDS:
            self.transport.abort()
        self._timer = self.loop.call_later(1, self._watch, state, seconds)


def _uvicorn_server(app):
    """Returns uvicorn with limits on connections and headers, and without signals."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=_IDLE_SECONDS,
        h11_max_incomplete_event_size=server_app.MAX_HEADER_BYTES,
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore
    return server
