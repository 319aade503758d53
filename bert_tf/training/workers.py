"""Workers: the processes, on one host or several, that take every step together.

All workers run the same loop on the same batches, so most decisions follow from numbers
that they share anyway. The exceptions are decisions that depend on a clock or a signal:
the number of steps per call, the time limit, Ctrl-C. Here the workers must agree on
one answer (`Workers.broadcast_from_chief`, `Workers.any_worker`). If one of them
decided by itself, the others would wait forever in a collective operation that it never
joins.
"""

import contextlib
import json
import logging
import socket
import time
import zlib
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

logger = logging.getLogger(__name__)

# How long workers wait for each other when a run starts.
WAIT_SECONDS = 600.0
# The jobs in TF_CONFIG that train; the chief comes first.
_JOBS = ("chief", "worker")
_GREETING = b"bert_tf worker "
_ANSWER = b"all here\n"
_RETRY_SECONDS = 0.5
# Longest blocking call. Between calls Python notices signals, and we the deadline.
_POLL_SECONDS = 1.0


class Workers:
    """The processes of a run, and how they communicate.

    All workers must make the same calls in the same order. Each call is a barrier.

    Args:
        strategy: the devices.

    Attributes:
        count: int; 1 for a run of one process, regardless of its devices.
        index: int, position of this process; 0 is the chief, which alone writes files.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        # One process, regardless of its devices. Worker 0 is the chief.
        self.count, self.index = 1, 0
        self._strategy = strategy
        self._gather_function: Any = None
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            hosts, self.index = _hosts_and_index(strategy.cluster_resolver)
            self.count = len(hosts)

    @property
    def is_chief(self) -> bool:
        """Whether this is the process that writes checkpoints, metrics and scores."""
        return self.index == 0

    def gather(self, value: float) -> np.ndarray:
        """Returns float64 [count]: the value that each worker passed.

        Raises:
            OSError: a worker was lost.
        """
        if self.count == 1:
            return np.array([value], np.float64)
        if self._gather_function is None:
            self._gather_function = _build_gather(self._strategy)
        with self.clear_errors():
            rows = self._gather_function(tf.constant([value], tf.float64))
        return rows.numpy().reshape(self.count, -1)[:, 0]

    def any_worker(self, flag: bool) -> bool:
        """Returns whether at least one worker passed True."""
        return bool(self.gather(float(flag)).any())

    def broadcast_from_chief(self, value: float) -> float:
        """Returns the value that the chief passed."""
        return float(self.gather(value)[0])

    def check_same(self, what: str, value: Any) -> None:
        """Checks that all workers passed the same value.

        Other flags or data would give other results without an error, or make workers
        wait for each other forever, for example at a checkpoint that only one saves.

        Raises:
            ValueError: the values differ. `what` names them in the message.
        """
        text = json.dumps([what, value], sort_keys=True)
        checksums = self.gather(float(zlib.crc32(text.encode("utf-8"))))
        if other := int(np.argmax(checksums != checksums[0])):
            raise ValueError(
                f"Worker {other} differs from worker 0 in {what} (here, on worker "
                f"{self.index}, it is {value!r:.80}). Start all workers with the same "
                "command, version and files."
            )

    @contextlib.contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Turns TensorFlow's errors about a lost worker into an OSError.

        TensorFlow's coordination service notices a killed worker at once and a frozen
        one after 10 seconds.
        """
        try:
            yield
        except tf.errors.OpError as error:
            if self.count == 1 or not _reports_a_lost_worker(error):
                raise
            raise OSError(
                "Lost the connection to another worker. Start all workers again with "
                "the same command: training resumes from the latest checkpoint."
            ) from error


def create_strategy() -> tf.distribute.Strategy:
    """Waits for all workers in TF_CONFIG and returns their common strategy.

    Raises:
        ValueError: TF_CONFIG does not list the workers.
        OSError: not all of them connected.
    """
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    hosts, index = _hosts_and_index(resolver)
    wait_for_all(hosts, index)
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)


def index_of_this_process() -> int:
    """Returns the position of this process among the workers, without waiting.

    Raises:
        ValueError: TF_CONFIG does not list the workers.
    """
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return _hosts_and_index(resolver)[1]


def wait_for_all(
    hosts: Sequence[str], index: int, *, seconds: float = WAIT_SECONDS
) -> None:
    """Returns when every worker has called it.

    Worker 0 listens at its own address; the others call it until it answers. This
    happens over plain sockets before TensorFlow starts, because TensorFlow's own wait
    lasts an hour and ignores Ctrl-C and SIGTERM.

    Args:
        hosts: "name:port" of every worker; worker 0 comes first.
        index: position of this worker among them.
        seconds: how long to wait.

    Raises:
        OSError: not all of them connected in time, or the port of worker 0 is in use.
        ValueError: an address has no port.
    """
    deadline = time.monotonic() + seconds
    name, port = _split_address(hosts[0])
    if len(hosts) == 1:
        return
    logger.info("Waiting for %d other workers.", len(hosts) - 1)
    if index == 0:
        _wait_for_callers(hosts, port, deadline)
    else:
        _call_worker_0(hosts[0], (name, port), index, deadline)


def _wait_for_callers(hosts, port, deadline):
    try:
        listener = socket.create_server(("", port))
    except OSError as error:
        raise OSError(
            f"Worker 0 cannot listen at {hosts[0]} ({error.strerror}); choose a port "
            "that is free on this machine."
        ) from error
    callers: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(listener)
        listener.settimeout(_POLL_SECONDS)
        while len(callers) < len(hosts) - 1:
            if time.monotonic() > deadline:
                missing = min(set(range(1, len(hosts))) - callers.keys())
                raise OSError(
                    f"Worker {missing} ({hosts[missing]}) did not connect; start all "
                    f"{len(hosts)} workers with the same command."
                )
            # A caller that is not a worker sends no number.
            with contextlib.suppress(OSError, ValueError):
                connection = stack.enter_context(listener.accept()[0])
                connection.settimeout(_POLL_SECONDS)
                callers[int(connection.recv(64).partition(_GREETING)[2])] = connection
        for connection in callers.values():
            with contextlib.suppress(OSError):
                connection.sendall(_ANSWER)


def _call_worker_0(host, address, index, deadline):
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),  # Worker 0 does not listen yet.
            socket.create_connection(address, _POLL_SECONDS) as connection,
        ):
            connection.sendall(b"%s%d\n" % (_GREETING, index))
            while time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):
                    if connection.recv(64) == _ANSWER:
                        return
                    break
        time.sleep(_RETRY_SECONDS)
    raise OSError(
        f"Worker 0 ({host}) does not answer; start all workers with the same command."
    )


def _split_address(host):
    name, _, port = host.rpartition(":")
    if not name or not port.isdecimal():
        raise ValueError(
            f"The worker address {host!r} has no port; expected an address such as "
            "10.0.0.1:12345."
        )
    return name.strip("[]"), int(port)


def _hosts_and_index(resolver):
    tasks = resolver.cluster_spec().as_dict()
    if not tasks:
        raise ValueError(
            "--device=multi_worker requires the environment variable TF_CONFIG with "
            "cluster and task."
        )
    order = [(job, i) for job in _JOBS for i in range(len(tasks.get(job, ())))]
    task = (resolver.task_type, resolver.task_id)
    if task not in order:
        raise ValueError(
            f"TF_CONFIG makes this process task {task[1]} of {task[0]!r}; expected one "
            f"of the {len(order)} workers that it lists under {' or '.join(_JOBS)}."
        )
    return [tasks[job][i] for job, i in order], order.index(task)


def _build_gather(strategy):
    """Returns a function [1] -> [replicas of all workers]."""

    def gather(row):
        # all_gather requires a device, which a tensor from outside does not have.
        context = tf.distribute.get_replica_context()
        return context.all_gather(tf.identity(row), axis=0)

    @tf.function
    def gather_all(row):
        rows = strategy.run(gather, args=(row,))
        return strategy.experimental_local_results(rows)[0]

    return gather_all


def _reports_a_lost_worker(error):
    kinds = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.DeadlineExceededError,
    )
    return isinstance(error, kinds) or "Collective ops is aborted" in str(error)
