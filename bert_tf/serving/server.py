"""Serves an exported model over HTTP, without Docker.

LitServe brings the processes, the queue and the dynamic batches. See
docs/decisions/0026-server.md for the choice.
"""

import contextlib
import errno
import multiprocessing
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing import util
from typing import Any

from bert_tf import files
from bert_tf.serving import lit_api
from bert_tf.serving import saved_signatures
from bert_tf.serving import server_limits
from bert_tf.serving import server_options
from bert_tf.serving import server_routes
from bert_tf.serving import versions

_MEBIBYTE = 2**20


def run(
    options: server_options.ServeModelOptions,
    *,
    announce: Callable[[str], object] | None = None,
) -> str:
    """Serves a model until SIGTERM or Ctrl-C, then finishes the requests in progress.

    Args:
        options: the model, the address and the limits.
        announce: called with the address when the model is ready. Default: writes it
            to standard output.

    Returns:
        A report.

    Raises:
        ImportError: LitServe is not installed.
        OSError: the model cannot be loaded, its process died, or the port is in use.
        ValueError: the model has no signatures.
    """
    _check_installed()
    export_dir, name, version = find_model(options.export_dir)
    name = options.model_name or name
    _check_port(options.host, options.port)
    signatures = saved_signatures.read(export_dir)
    failures = multiprocessing.get_context("spawn").SimpleQueue()
    api = lit_api.create(
        export_dir,
        failures,
        options.backend,
        options.dtype,
        max_batch_size=options.max_batch_size,
        batch_timeout=options.batch_timeout_ms / 1000,
        # Never reached: our route of this path comes first.
        api_path=f"/v1/models/{name}:predict",
    )
    shown_host = {"127.0.0.1": "localhost", "::": "[::]"}.get(
        options.host, options.host
    )
    address = f"http://{shown_host}:{options.port}"
    show = announce or _announce
    server = _server_class(lambda: show(f"{name} is served at {address}."))(
        api,
        accelerator="cpu",  # Only a label: TensorFlow chooses the device.
        devices=1,
        workers_per_device=options.num_workers,
        timeout=options.queue_timeout_seconds,
        max_payload_size=options.max_body_mb * _MEBIBYTE,
        disable_openapi_url=True,
    )
    _connect(
        server,
        api,
        name=name,
        version=version,
        signatures=signatures,
        max_queue_size=options.max_queue_size,
        body_timeout_seconds=options.queue_timeout_seconds,
        limits=server_limits.ServerLimits(
            max_rows=options.max_rows,
            max_padded_bytes=options.max_body_mb * _MEBIBYTE,
        ),
    )
    _serve(server, options, export_dir, failures)
    return f"{name} is no longer served."


def _announce(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def find_model(export_dir: str) -> tuple[str, str, int]:
    """Returns the folder of a SavedModel, its name and its version.

    Args:
        export_dir: the SavedModel, or a folder with versions, of which the newest is
            taken.

    Raises:
        FileNotFoundError: there is no SavedModel.
    """
    folder = versions.latest_folder(export_dir.rstrip("/"))
    if not files.exists(os.path.join(folder, versions.MODEL_FILE)):
        raise FileNotFoundError(
            f"{export_dir} contains no {versions.MODEL_FILE} and no version of a "
            "model; expected a folder written by export_saved_model."
        )
    above, last = os.path.split(os.path.abspath(folder))
    if last.isdecimal():
        return folder, _as_name(os.path.basename(above)), int(last)
    return folder, _as_name(last), 1


def _as_name(name):
    return re.sub(r"[^\w.-]", "_", name) or "model"


def _check_installed():
    try:
        import litserve  # noqa: F401
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "serve_model needs LitServe, which is not installed; run "
            "pip install 'bert_tf[server]'."
        ) from error


def _check_port(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise OSError(
                f"Port {port} is in use; stop the program that uses it, or pass "
                "another --port."
            ) from error


def _server_class(announce):
    import litserve
    from litserve import utils

    class Server(litserve.LitServer):
        def _init_manager(self, num_api_servers):
            # systemd sends SIGTERM to all processes at once. This one has the queues,
            # which are needed until the last request is answered. Linux only: where
            # `multiprocessing` does not fork, such as on macOS, the new process
            # receives the signal.
            with _blocked(signal.SIGTERM):
                return super()._init_manager(num_api_servers)

        def launch_inference_worker(self, lit_api):
            workers = super().launch_inference_worker(lit_api)
            for worker in workers:
                worker.terminate = worker.kill  # It ignores SIGTERM.
            return workers

        def verify_worker_status(self):
            # The original waits forever for a process that was killed.
            starting = {utils.WorkerSetupStatus.STARTING}
            while set(self.workers_setup_status.values()) == starting:
                is_alive = all(worker.is_alive() for worker in self.inference_workers)
                # A process whose model cannot be loaded says so before it ends.
                if not is_alive and set(self.workers_setup_status.values()) == starting:
                    raise OSError(
                        "The process with the model died while it loaded the model, "
                        "perhaps for lack of memory; free memory, or lower "
                        "--num_workers."
                    )
                time.sleep(0.05)
            super().verify_worker_status()

        def _start_server(self, port, num_servers, log_level, sockets, *args, **kwargs):
            # Connections wait in the sockets until the started process accepts them.
            for one in sockets:
                one.listen()
            started = super()._start_server(
                port, num_servers, log_level, sockets, *args, **kwargs
            )
            announce()
            return started

    return Server


@contextlib.contextmanager
def _blocked(number):
    """Delays a signal; processes that are started meanwhile never receive it."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _connect(server, api, **settings):
    """Puts our paths before those of LitServe."""
    from litserve import server as litserve_server
    from starlette import exceptions

    requests = litserve_server.RegularRequestHandler(api, server)

    async def compute(request: dict[str, Any]) -> dict[str, Any]:
        return await requests.handle_request(request, dict)

    routes = server_routes.Routes(compute=compute, **settings)
    server.app.router.routes[:0] = routes.all()
    server.app.add_exception_handler(
        exceptions.HTTPException, server_routes.error_reply
    )


def _serve(server, options, export_dir, failures):
    main_process = os.getpid()

    def stop(number: int, frame: Any) -> None:
        # The process that speaks HTTP inherits this function and calls it after it has
        # answered its requests, or before it has started.
        if os.getpid() != main_process:
            os._exit(0)
        raise KeyboardInterrupt

    previous = {
        number: signal.signal(number, stop)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    server.inference_workers = []
    # Of the forked processes; that of the model is started afresh and calls it itself.
    util.register_after_fork(server, lambda _: lit_api.end_with_parent())
    try:
        server.run(
            host=options.host,
            port=options.port,
            num_api_servers=1,
            log_level="error",
            generate_client_file=False,
        )
    except (EOFError, ConnectionError) as error:
        raise OSError("The process with the model has died; start again.") from error
    except RuntimeError as error:
        if failures.empty():
            raise
        raise OSError(failures.get()) from error
    finally:
        for worker in server.inference_workers:
            worker.terminate()
        for number, handler in previous.items():
            signal.signal(number, handler)
