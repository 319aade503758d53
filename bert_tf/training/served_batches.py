"""Batches for hosts that run none of our Python: those of a TPU slice of several hosts.

Rows are read by Python functions within tf.data, and those run only in the process
that made the dataset. Here that process computes the batches, and the hosts fetch them
from it, each its own share.
"""

import socket

import tensorflow as tf


class BatchServer:
    """Computes datasets in this process, for other hosts to read.

    Args:
        host: name or address of this machine, as the others reach it; default: its own
            name.
    """

    def __init__(self, host=None):
        host = host or socket.getfqdn()
        service = tf.data.experimental.service
        self._dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
        port = self._dispatcher.target.rpartition(":")[2]
        self._address = f"{host}:{port}"
        self._worker = service.WorkerServer(
            service.WorkerConfig(
                dispatcher_address=self._address, worker_address=f"{host}:%port%"
            )
        )

    def served(self, dataset):
        """Returns a dataset of the same elements in the same order, for any host."""
        service = tf.data.experimental.service
        address = f"grpc://{self._address}"
        return service.from_dataset_id(
            service.ShardingPolicy.OFF,
            address,
            service.register_dataset(address, dataset),
            element_spec=dataset.element_spec,
        )
