"""Serves an exported model over HTTP, without Docker.

One process: uvicorn's event loop in the main thread, a thread that computes, and one
that loads versions. So it cannot die in part.
"""

import os
import signal
import socket
import sys
import threading
import time

from bert_tf import files
from bert_tf.serving import export_layout
from bert_tf.serving import options as serving_options

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
# or the rest of the last request and its answer, also if another request follows it.
_IDLE_SECONDS = 10
# A call of the model that takes this many times the longest wait for an answer, and
# this many seconds, counts as stuck.
_STUCK = 3
_STUCK_SECONDS = 60


def run(options: serving_options.ServeModelOptions) -> None:
    """Serves a model until SIGTERM or Ctrl-C, then finishes the requests in progress.

    Writes the address to standard output when a version is ready. Ends the process,
    because a call of the model cannot be interrupted: with exit code 1 if the model
    cannot be loaded or can no longer answer.

    Raises:
        OSError: there is no model, or the port is in use.
        ValueError: the token, or the name of its file, is empty.
    """
    export_layout.latest_folder(options.export_dir)
    app = server_app.Application(options, _token())

    def stop(number, frame):
        """Ends the process; uvicorn sends the signal again after the last answer."""
        if app.model is None:
            server_model.end_process(
                "stopped before the model was loaded.", 128 + number
            )
        server_model.end_process("stopped.", 0)

    try:
        listener = socket.create_server((options.host, options.port))
    except OSError as error:
        raise OSError(
            f"Cannot listen on port {options.port}: {error.strerror}. If another "
            "program uses it, stop that program, or pass another --port."
        ) from error
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    threading.Thread(target=_load_versions, args=[options, app], daemon=True).start()
    _uvicorn_server(app).run([listener])


def _load_versions(options, app):
    """Loads the newest version, then each new one; ends the process if one hangs."""
    limit = max(_STUCK_SECONDS, options.queue_timeout_seconds * _STUCK)
    sizes = tried = None
    while app.queue.busy_seconds() < limit:
        previous, sizes = sizes, None
        try:
            folder = export_layout.latest_folder(options.export_dir)
            sizes = _sizes(folder)
            # A version that is still being copied changes.
            if app.model is None or sizes == previous != tried:
                tried = sizes
                app.model = server_model.ServedModel(folder, options.backend)
                name = f"{app.model.name}, version {app.model.version},"
                sys.stdout.write(
                    f"{name} is served at http://localhost:{options.port}.\n"
                )
                sys.stdout.flush()
        except Exception as error:
            if app.model is None:
                server_model.end_process(str(error), 1)
            if sizes is not None:  # Otherwise, the storage is away for a moment.
                app.log({"error": f"{folder} is not served: {error}"[:500]})
        time.sleep(_POLL_SECONDS)
    server_model.end_process("The model does not answer.", 1)


def _sizes(folder):
    """Returns the sizes of a version's files."""
    paths = [f"{folder}/{export_layout.MODEL_FILE}"]
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
        unread = self.transport.get_write_buffer_size()
        is_idle = is_answered or (unread and not self.cycle.response_started)
        is_idle = is_idle or self.transport.is_closing()
        state = (self.cycle, unread)
        seconds = seconds + 1 if is_idle and state == previous else 0
        if seconds > _IDLE_SECONDS:
            self.transport.abort()
        self._timer = self.loop.call_later(1, self._watch, state, seconds)


def _uvicorn_server(app):
    """Returns uvicorn with limits on connections and headers."""
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
    return uvicorn.Server(config)
