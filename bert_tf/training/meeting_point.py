"""Where the workers of a run wait for each other before TensorFlow starts.

TensorFlow itself waits for an hour, and hears neither Ctrl-C nor SIGTERM meanwhile.
"""

import contextlib
import logging
import socket
import time

logger = logging.getLogger(__name__)

WAIT_SECONDS = 600.0
_GREETING = b"bert_tf worker %d\n"
_ANSWER = b"all here\n"
_RETRY_SECONDS = 0.5
# So long at a stretch, then Python looks for signals and for the deadline.
_PATIENCE_SECONDS = 1.0


def wait_for_all(hosts, index, *, seconds=WAIT_SECONDS):
    """Returns when every worker has called it.

    Worker 0 listens at its own address for the others, who call until it answers.

    Args:
        hosts: "name:port" of every worker; worker 0 comes first.
        index: int, the place of this worker among them.
        seconds: float, how long to wait.

    Raises:
        OSError: they did not all come, or the port of worker 0 is in use.
        ValueError: an address has no port.
    """
    deadline = time.monotonic() + seconds
    name, port = _split(hosts[0])
    if len(hosts) == 1:
        return
    logger.info("Waiting for %d other workers.", len(hosts) - 1)
    if index == 0:
        _gather(hosts, port, deadline)
    else:
        _call(hosts[0], (name, port), index, deadline)


def _gather(hosts, port, deadline):
    try:
        listener = socket.create_server(("", port))
    except OSError as error:
        raise OSError(
            f"Worker 0 cannot listen at {hosts[0]} ({error.strerror}); give a port "
            "that is free on this machine."
        ) from error
    here = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(listener)
        listener.settimeout(_PATIENCE_SECONDS)
        while len(here) < len(hosts) - 1:
            if time.monotonic() > deadline:
                missing = [i for i in range(1, len(hosts)) if i not in here]
                raise OSError(
                    f"Worker {missing[0]} ({hosts[missing[0]]}) did not come; start "
                    f"all {len(hosts)} workers with the same command."
                )
            with contextlib.suppress(TimeoutError):
                connection = stack.enter_context(listener.accept()[0])
                index = _greeting_of(connection)
                if index is not None:
                    here[index] = connection
        for connection in here.values():
            with contextlib.suppress(OSError):
                connection.sendall(_ANSWER)


def _greeting_of(connection):
    """Returns the index that a caller names, or None for a stranger."""
    connection.settimeout(_PATIENCE_SECONDS)
    try:
        line = connection.recv(64)
    except OSError:
        return None
    start = _GREETING.split(b"%", 1)[0]
    text = line.removeprefix(start).strip()
    return int(text) if line.startswith(start) and text.isdigit() else None


def _call(host, address, index, deadline):
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(address, _PATIENCE_SECONDS) as connection:
                connection.sendall(_GREETING % index)
                if _is_answered(connection, deadline):
                    return
        except OSError:
            pass  # Worker 0 is not there yet.
        time.sleep(_RETRY_SECONDS)
    raise OSError(
        f"Worker 0 ({host}) does not answer; start every worker with the same command."
    )


def _is_answered(connection, deadline):
    connection.settimeout(_PATIENCE_SECONDS)
    while time.monotonic() < deadline:
        try:
            return connection.recv(64) == _ANSWER
        except TimeoutError:
            continue
    return False


def _split(host):
    name, _, port = host.rpartition(":")
    if not name or not port.isdecimal():
        raise ValueError(
            f"The worker {host!r} has no port; expected an address such as "
            "10.0.0.1:12345."
        )
    return name.strip("[]"), int(port)
