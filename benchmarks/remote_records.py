"""Times reading records from an object store that takes 30 ms per request.

The store is a test double that counts and delays every request that TensorFlow's file
layer would make. For every order, and for 1 and 8 hosts that each read their share of
the batch, the table has the examples per second, the requests per batch and the peak
memory. The hosts are threads of one process here, so they share its processors.

    python benchmarks/remote_records.py
"""

import concurrent.futures
import os
import pathlib
import platform
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np
import report
import tensorflow as tf

from bert_tf import files
from bert_tf.data import batching
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from tests.data import store_double

BATCH_SIZE = 256
SEQ_LENGTH = 128
ROWS_PER_WRITE = 1 << 14
TITLES = [
    *("hosts", "--shuffle_buffer_size", "examples per second", "first batch, s"),
    *("opening, s", "requests per batch, all hosts"),
    "peak memory in each half of the batches, MB",
]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--num_records", type=int, default=1 << 18, help="records to create")
    add("--num_batches", type=int, default=1000, help="batches to read in each order")
    add("--seconds", type=float, default=0.03, help="duration of a request")
    return parser.parse_args()


def create(path, num_records):
    """Creates masked records of full length."""
    schema = schema_module.pretraining(SEQ_LENGTH, 20)
    draws = np.random.default_rng(0)
    with tfrecord.Writer(path, schema) as writer:
        for first in range(0, num_records, ROWS_PER_WRITE):
            size = min(ROWS_PER_WRITE, num_records - first)
            writer.write(
                {
                    column.name: draws.integers(
                        0,
                        30_000 if column.name.endswith("_ids") else 2,
                        (size, column.length) if column.length else size,
                    )
                    for column in schema.columns
                }
            )


def read(store, hosts, window, options):
    """Returns one row of the table."""
    size = BATCH_SIZE // hosts
    opened = time.perf_counter()
    sources = [
        batching.TFRecordSource(tfrecord.RecordFiles(["store://records"]))
        for _ in range(hosts)
    ]
    opening = time.perf_counter() - opened
    before, started = len(store.requests), time.perf_counter()
    memory = []

    def read_share(host):
        batches = batching.training_batches(
            sources[host],
            batch_size=BATCH_SIZE,
            num_steps=options.num_batches,
            seed=1,
            shuffle_buffer_size=window,
            share=range(host * size, (host + 1) * size),
        )
        seconds = []
        for _ in batches:
            seconds.append(time.perf_counter() - started)
            if not host:
                memory.append(resident_mb())
        return seconds

    with concurrent.futures.ThreadPoolExecutor(hosts) as threads:
        seconds = list(threads.map(read_share, range(hosts)))
    taken = max(times[-1] for times in seconds)
    requests = len(store.requests) - before
    half = len(memory) // 2
    return [
        *(hosts, window, f"{options.num_batches * BATCH_SIZE / taken:,.0f}"),
        *(max(times[0] for times in seconds), opening, requests / options.num_batches),
        f"{max(memory[:half]):,.0f}, {max(memory[half:]):,.0f}",
    ]


def resident_mb():
    """Returns the memory of this process now, in MB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    """Runs the benchmark and prints the table."""
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        create(os.path.join(folder, "records"), options.num_records)
        store = store_double.ObjectStore(folder, seconds=options.seconds)
        files._gfile = lambda: store
        size = os.path.getsize(os.path.join(folder, "records"))
        print(
            f"Python {platform.python_version()}, TensorFlow {tf.__version__}, "
            f"{report.num_cores()} cores, load {os.getloadavg()[0]:.1f}; "
            f"{options.num_records:,} records, {size / 1e6:,.0f} MB; "
            f"{options.seconds * 1e3:.0f} ms per request\n"
        )
        cases = [(hosts, window) for hosts in (1, 8) for window in (0, 1)]
        rows = [read(store, hosts, window, options) for hosts, window in cases]
        print(report.table(TITLES, rows))


if __name__ == "__main__":
    main()
