"""Serves an exported model over HTTP, without Docker.

One process: uvicorn's event loop in the main thread, the threads of `server_model` that
compute, and one that loads versions. So it cannot die in part.
"""

import asyncio
import contextlib
import functools
import json
import os
import re
import signal
import socket
import sys
import threading
import time

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
# Of a connection without a request in progress: for the headers of the next request,
# or the rest of the last request and its answer.
_IDLE_SECONDS = 10
# A call of the model that takes this many times the longest wait for an answer, and
# this many seconds, counts as stuck.
_STUCK = 3
_STUCK_SECONDS = 60


def run(options: server_options.ServeModelOptions) -> str:
    """Serves a model until SIGTERM or Ctrl-C, then finishes the requests in progress.

    Writes the address to standard output when the model is ready; returns a report.
    Ends the process with exit code 1 if the model cannot be loaded or can no longer
    answer: a call of the model cannot be interrupted.

    Raises:
        OSError: there is no model, or the port is in use.
        ValueError: the token is empty.
    """
    _, name, _ = find_model(options.export_dir)
    app = server_app.Application(
        options,
        name,
        log=functools.partial(_log, options.log_format),
        fail=functools.partial(_exit, code=1),
        token=_token(),
    )
    listener = _listener(options.host, options.port)
    server = _uvicorn_server(app)

    def stop(number, frame):
        if app.model is None:
            _exit("stopped before the model was loaded.", 128 + number)
        server.should_exit = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    threading.Thread(target=_load_versions, args=[options, app], daemon=True).start()
    asyncio.run(server.serve(sockets=[listener]))
    return f"{name} is no longer served."


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


def _load_versions(options, app):
    """Loads the newest version, then each new one; ends the process if one hangs."""
    limit = max(_STUCK_SECONDS, options.queue_timeout_seconds * _STUCK)
    seen = tried = None
    while app.queue.busy_seconds() < limit:
        previous = seen
        try:
            seen = None
            # Later on, the storage may be away for a moment.
            with contextlib.suppress(*([] if app.model is None else [OSError])):
                folder, name, version = find_model(options.export_dir)
                seen = (version, _sizes(folder))
            # A version that is still being copied changes.
            if app.model is None or (seen == previous and seen not in (None, tried)):
                tried = seen
                model = server_model.ServedModel(
                    folder, options.backend, options.dtype, version
                )
                previous_model, app.model = app.model, model
                if previous_model is None:
                    _announce(name, options)
                else:
                    app.log({"message": f"Version {version} is served."})
        except Exception as error:
            if app.model is None:
                _exit(str(error), 1)
            app.log({"error": f"Version {version} is not served: {error}"[:500]})
        time.sleep(_POLL_SECONDS)
    _exit("The model does not answer.", 1)


def _announce(name, options):
    host = {"127.0.0.1": "localhost", "::": "[::]"}.get(options.host, options.host)
    sys.stdout.write(f"{name} is served at http://{host}:{options.port}.\n")
    sys.stdout.flush()


def _log(log_format, fields):
    """Writes a line of the log."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **fields}
    values = {name: json.dumps(value) for name, value in line.items()}
    text = " ".join(f"{name}={value}" for name, value in values.items())
    sys.stderr.write(f"{text if log_format == 'text' else json.dumps(line)}\n")
    sys.stderr.flush()


def _exit(message, code):
    """Ends the process although other threads run."""
    sys.stderr.write(f"bert_tf serve: {message}\n")
    sys.stderr.flush()
    os._exit(code)


def _sizes(folder):
    """Returns the sizes of a version's files."""
    paths = [f"{folder}/{versions.MODEL_FILE}"]
    if files.is_folder(inner := f"{folder}/variables"):
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
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=_IDLE_SECONDS,
        h11_max_incomplete_event_size=server_app.MAX_HEADER_BYTES,
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore
    return server
