"""Workers: the processes, on one host or several, that take every step together."""

import contextlib
import os
import uuid

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.training import meeting_point

# The kinds of task in TF_CONFIG that train; the chief comes first.
_JOBS = ("chief", "worker")
_PROBE = ".shared-{token}"


def create_strategy(worker_hosts=(), worker_index=None):
    """Returns a MultiWorkerMirroredStrategy, once all workers are there.

    Args:
        worker_hosts: "name:port" of every worker, the same list on all; empty: what
            TF_CONFIG says, as TensorFlow reads it.
        worker_index: int, the place of this process among them.

    Raises:
        ValueError: neither says who the workers are.
        OSError: not all of them came.
    """
    cluster = tf.distribute.cluster_resolver
    if worker_hosts:
        resolver = cluster.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": list(worker_hosts)}),
            task_type="worker",
            task_id=worker_index,
            rpc_layer="grpc",
        )
    else:
        resolver = cluster.TFConfigClusterResolver()
    hosts, index = _hosts_and_index(resolver)
    meeting_point.wait_for_all(hosts, index)
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)


def _hosts_and_index(resolver):
    tasks = resolver.cluster_spec().as_dict()
    if not tasks:
        raise ValueError(
            "--device=multi_worker needs --worker_hosts and --worker_index, or the "
            "environment variable TF_CONFIG with cluster and task; got neither."
        )
    order = [(job, i) for job in _JOBS for i in range(len(tasks.get(job, ())))]
    task = (resolver.task_type, resolver.task_id)
    if task not in order:
        raise ValueError(
            f"TF_CONFIG makes this process task {task[1]} of {task[0]!r}; expected one "
            f"of the {len(order)} workers that it lists under {' or '.join(_JOBS)}."
        )
    return [tasks[job][i] for job, i in order], order.index(task)


class Workers:
    """The processes of a run, and how they agree.

    All of them make the same calls in the same order; each call is a meeting.

    Args:
        strategy: `tf.distribute.Strategy`.

    Attributes:
        count: int; 1 for a run of one process, whatever its devices.
        index: int, the place of this process; 0 is the chief, who alone writes.
    """

    def __init__(self, strategy):
        self.count, self.index = 1, 0
        self._strategy = strategy
        is_one_of_many = tf.distribute.MultiWorkerMirroredStrategy
        if isinstance(strategy, is_one_of_many):
            hosts, self.index = _hosts_and_index(strategy.cluster_resolver)
            self.count = len(hosts)

    @property
    def is_chief(self):
        """Whether this process writes checkpoints, metrics and scores."""
        return self.index == 0

    def gathered(self, value):
        """Returns float64 [count]: the number that each worker called it with.

        Raises:
            OSError: a worker is gone.
        """
        if self.count == 1:
            return np.array([value], np.float64)
        with self.clear_errors():
            rows = self._gather(tf.constant([value], tf.float64))
        return rows.numpy().reshape(self.count, -1)[:, 0]

    @property
    def _gather(self):
        if not hasattr(self, "_gather_function"):
            strategy = self._strategy

            def own(row):
                # A tensor from outside has no device, which all_gather asks for.
                context = tf.distribute.get_replica_context()
                return context.all_gather(tf.identity(row), axis=0)

            self._gather_function = tf.function(
                lambda row: strategy.experimental_local_results(
                    strategy.run(own, args=(row,))
                )[0]
            )
        return self._gather_function

    def meet(self):
        """Returns when all workers have called it."""
        self.gathered(0.0)

    def any(self, flag):
        """Returns whether one worker at least called it with True."""
        return bool(self.gathered(float(flag)).any())

    def of_chief(self, value):
        """Returns the chief's number, whatever this worker's is."""
        return float(self.gathered(value)[0])

    def check_shared(self, folder):
        """Checks that what the chief writes to a folder is seen by all workers.

        Raises:
            ValueError: it is not.
        """
        if self.count == 1:
            return
        # 52 bits pass through a float64 as they are.
        token = int(self.of_chief(float(uuid.uuid4().int >> 76)))
        probe = os.path.join(folder, _PROBE.format(token=token))
        if self.is_chief:
            with files.complete_or_absent(probe) as file:
                file.write("All workers see this file.\n")
        self.meet()
        sees = self.gathered(float(files.exists(probe)))
        if self.is_chief:
            files.remove(probe)
        if not sees.all():
            raise ValueError(
                f"--output_dir={folder} is not shared: worker {int(np.argmin(sees))} "
                "does not see what worker 0 writes there; give a folder that all "
                "workers see, such as one on NFS or gs://."
            )

    def check_same(self, what, value):
        """Checks that a number is the same on all workers.

        Raises:
            ValueError: it is not; `what` says in words what differs.
        """
        values = self.gathered(value)
        if len(set(values)) > 1:
            raise ValueError(
                f"The workers differ in {what}: {', '.join(f'{v:g}' for v in values)}; "
                "start all with the same command and the same files."
            )

    @contextlib.contextmanager
    def clear_errors(self):
        """Turns what TensorFlow raises where a worker is gone into an OSError."""
        try:
            yield
        except tf.errors.OpError as error:
            if self.count == 1 or not _says_that_one_is_gone(error):
                raise
            raise OSError(
                "Another worker is gone, so this one cannot go on. Start all workers "
                "again with the same command: the run continues from its last "
                "checkpoint."
            ) from error


def _says_that_one_is_gone(error):
    kinds = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.DeadlineExceededError,
    )
    return isinstance(error, kinds) or "Collective ops is aborted" in str(error)
