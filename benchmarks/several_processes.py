"""Trains in several processes on this machine, over sockets, with failures.

The section "throughput" has one, two and four processes. Every process is tied to one
core, process i to core i modulo the number of cores. The section "failures" says what
happens to the others when one process is killed, stops, is slow or computes a
non-finite value, and how long it takes until a run that was started again has caught
up. Each section can be measured on its own:

    python benchmarks/several_processes.py --sections failures
"""

import dataclasses
import itertools
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import report

from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord

TITLE = "Several processes"
FAILURES_TITLE = "Several processes: failures"
WORKER = pathlib.Path(__file__).with_name("several_processes_worker.py")
LENGTH, PREDICTIONS, NUM_RECORDS = 128, 20, 4096
CONFIG = {
    "vocab_size": 30522,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
}
# The first calls compile; their times do not count.
STEPS_BEFORE_MEASURING = 20
STEP_OF_FAILURE = 12
STEPS_BETWEEN_CHECKPOINTS = 5
# A process that has not ended that many seconds after the failure hangs.
PATIENCE = 240.0
# Seconds for starting, compiling and the steps before the failure.
PATIENCE_BEFORE_FAILURE = 600.0
SECTIONS = ("throughput", "failures")
TEXT = """\
BERT-Tiny (two layers of width 128) in float32, with {batch} × {length} pieces per step
over all processes. The processes communicate through sockets on one machine with
{cores} cores. Each process is tied to one core.
"""
AFTER_THROUGHPUT = """\
Up to the number of cores, each process has its own core; additional processes share
them. Every step sends the gradients of 4.4 million weights through the sockets.
"""
FAILURES_TEXT = """\
What happens when something goes wrong in one of several processes. The failure
happens after step {step}; there is a checkpoint every {every} steps. Each failure was
observed once. "Others end" is the time from the failure until the last of the other
processes has ended. "Resumed" is the time from the restart of all processes until the
run has passed the step of the failure; it includes starting Python and TensorFlow and
compiling.
"""


FAILURE_COLUMNS = [
    *("failure", "processes", "others end, s", "exit codes", "resumed, s"),
    "last line of the others",
]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--sections", nargs="+", choices=SECTIONS, default=SECTIONS, help="sections")
    add("--counts", nargs="+", type=int, default=[1, 2, 4], help="processes")
    add("--num_steps", type=int, default=100, help="steps of a throughput run")
    add("--batch_size", type=int, default=32, help="sequences per step")
    add("--failures", nargs="+", choices=FAILURES, default=list(FAILURES), help="cases")
    return parser.parse_args()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
    """What happens to one process of a run."""

    words: str
    kind: str  # That of several_processes_worker.
    worker: int = 1
    count: int = 2  # Processes.
    restarts: bool = True  # Whether the run is started again afterwards.


FAILURES = {
    "worker_killed": Failure(words="kill -9 of worker 1", kind="kill"),
    "chief_killed": Failure(words="kill -9 of worker 0", kind="kill", worker=0),
    "worker_of_four_killed": Failure(
        words="kill -9 of worker 3", kind="kill", worker=3, count=4
    ),
    "worker_frozen": Failure(words="worker 1 frozen (SIGSTOP)", kind="freeze"),
    "chief_frozen": Failure(words="worker 0 frozen (SIGSTOP)", kind="freeze", worker=0),
    "not_a_number": Failure(
        words="weights of worker 1 not finite", kind="not_a_number", restarts=False
    ),
    "slow_worker": Failure(
        words="worker 1 waits 0.5 s in each step", kind="slow", restarts=False
    ),
    "slow_disk": Failure(
        words="writing a checkpoint takes 5 s",
        kind="slow_disk",
        worker=0,
        restarts=False,
    ),
}


class Process:
    """A worker, its output and the times of its steps."""

    def __init__(self, command, core):
        self.lines, self.times = [], {}
        self._process = subprocess.Popen(
            list(map(str, command)),
            env={**os.environ, **report.environment(), "CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        self.failure = self.ended = None
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        for line in self._process.stdout:
            if line.startswith("STEP "):
                _, step, seconds = line.split()
                self.times[int(step)] = float(seconds)
            elif line.startswith("FAILURE "):
                self.failure = self.failure or float(line.split()[2])
            else:
                self.lines.append(line.strip())
        self._process.wait()
        self.ended = time.time()

    @property
    def exit_code(self):
        """None while it runs, and where it was stopped by a signal."""
        return self._process.returncode

    def end(self, deadline):
        """Waits until the deadline, then kills the process. Returns whether it hung."""
        self._thread.join(max(deadline - time.time(), 0))
        hangs = self._thread.is_alive()
        if hangs:
            self._process.send_signal(signal.SIGKILL)
            self._thread.join()
        return hangs


class Runs:
    """Starts runs on the same records.

    Args:
        folder: for records and runs.
        batch_size: sequences per step.
    """

    def __init__(self, folder, batch_size):
        self._folder, self._batch_size = folder, batch_size
        self._numbers = itertools.count()
        schema = schema_module.pretraining(LENGTH, PREDICTIONS)
        draws = np.random.default_rng(0)
        with tfrecord.Writer(folder / "records", schema) as writer:
            writer.write({one.name: _values(draws, one) for one in schema.columns})
        (folder / "config.json").write_text(json.dumps(CONFIG))

    def new_folder(self):
        """Returns an output_dir that does not exist."""
        return self._folder / f"run-{next(self._numbers)}"

    def start(self, output_dir, count, *, num_steps, failures=(), **flags):
        """Returns the started processes.

        Args:
            output_dir: of the run.
            count: number of processes.
            num_steps: of the run.
            failures: (worker, kind) pairs.
            **flags: further flags.
        """
        given = {
            "input_file": self._folder / "records",
            "bert_config_file": self._folder / "config.json",
            "output_dir": output_dir,
            "train_batch_size": self._batch_size,
            "max_seq_length": LENGTH,
            "max_predictions_per_seq": PREDICTIONS,
            "num_train_steps": num_steps,
            "num_warmup_steps": 1,
            "iterations_per_loop": 1,
            **flags,
        }
        given = ["--do_train", *(f"--{name}={value}" for name, value in given.items())]
        if count > 1:
            hosts = ",".join(_free_addresses(count))
            given += ["--device=multi_worker", f"--worker_hosts={hosts}"]
        kinds = dict(failures)
        return [
            Process(
                [
                    *(sys.executable, WORKER),
                    *(kinds.get(index, "none"), STEP_OF_FAILURE),
                    *given,
                    *([f"--worker_index={index}"] if count > 1 else []),
                ],
                core=index % os.cpu_count(),
            )
            for index in range(count)
        ]


def main():
    """Measures and writes the sections of RESULTS.md."""
    given = arguments()
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(pathlib.Path(name), given.batch_size)
        if "throughput" in given.sections:
            rows = [measure(runs, count, given) for count in given.counts]
            write_throughput(rows, given.batch_size)
        if "failures" in given.sections:
            rows = [observe(runs, FAILURES[name]) for name in given.failures]
            missing = [name for name in FAILURES if name not in given.failures]
            write_failures(rows, missing)


def write_throughput(rows, batch_size):
    """Writes the first section."""
    columns = ["processes", "sequences per second", "per process", "seconds per step"]
    text = TEXT.format(batch=batch_size, length=LENGTH, cores=os.cpu_count())
    body = "\n".join([text, report.table(columns, rows), "", AFTER_THROUGHPUT])
    report.write_section(TITLE, body, all_versions=versions())


def write_failures(rows, missing):
    """Writes the second section; `missing` has the names of cases that were not run."""
    text = FAILURES_TEXT.format(step=STEP_OF_FAILURE, every=STEPS_BETWEEN_CHECKPOINTS)
    texts = [text, report.table(FAILURE_COLUMNS, rows)]
    if missing:
        words = "; ".join(FAILURES[name].words for name in missing)
        texts.append(f"\nNot run: {words}.")
    body = "\n".join(texts)
    report.write_section(FAILURES_TITLE, body, all_versions=versions())


def versions():
    """Returns the versions of what trains."""
    return report.versions("tensorflow", "keras")


def measure(runs, count, given):
    """Returns a row of the first table."""
    processes = runs.start(runs.new_folder(), count, num_steps=given.num_steps)
    for one in processes:
        one.end(time.time() + 5 * PATIENCE)
    times = processes[0].times
    if len(times) < given.num_steps:
        raise RuntimeError("\n".join(processes[0].lines[-5:]))
    seconds = np.diff([times[n] for n in range(STEPS_BEFORE_MEASURING, max(times))])
    rate = given.batch_size / statistics.median(seconds)
    row = [count, f"{rate:.0f}", f"{rate / count:.0f}"]
    print(row, flush=True)
    return [*row, report.median_and_spread(seconds)]


def observe(runs, failure):
    """Returns a row of the second table."""
    folder = runs.new_folder()
    setting = {
        "num_steps": 3 * STEP_OF_FAILURE,
        "save_checkpoints_steps": STEPS_BETWEEN_CHECKPOINTS,
    }
    processes = runs.start(
        folder, failure.count, failures=[(failure.worker, failure.kind)], **setting
    )
    hit = processes[failure.worker]
    others = [one for one in processes if one is not hit]
    deadline = _deadline(hit)
    hang = False
    for one in others:
        hang |= one.end(deadline)
    hit.end(time.time() if failure.kind == "freeze" else deadline)
    ended = max(one.ended for one in others)
    seconds = "hang" if hang else None
    if hit.failure is not None and not hang:
        seconds = f"{ended - hit.failure:.1f}"
    codes = ", ".join(str(one.exit_code) for one in processes)
    line = others[0].lines[-1] if others[0].lines else ""
    resumed = _resumed(runs, folder, failure, setting) if failure.restarts else None
    row = [failure.words, failure.count, seconds, codes, resumed, _shown(line)]
    # An error shows as the last line: then steps are missing.
    is_slow = failure.kind in ("slow", "slow_disk")
    if is_slow and len(others[0].times) == setting["num_steps"]:
        row[-1] = _gaps(others[0].times)
    print(row, flush=True)
    return row


def _deadline(hit):
    """Waits for the failure. Returns the time after which a process hangs."""
    deadline = time.time() + PATIENCE_BEFORE_FAILURE
    while hit.failure is None and hit.ended is None and time.time() < deadline:
        time.sleep(1)
    return time.time() + PATIENCE


def _resumed(runs, folder, failure, setting):
    started = time.time()
    again = runs.start(folder, failure.count, **setting)
    deadline = started + PATIENCE_BEFORE_FAILURE + PATIENCE
    hangs = [one.end(deadline) for one in again]
    passed = again[0].times.get(STEP_OF_FAILURE + 1)
    if any(hangs) or passed is None:
        return f"failed: {again[0].lines[-1]}"
    return f"{passed - started:.1f}"


def _gaps(times):
    """Returns the duration of steps, in words."""
    gaps = np.diff([times[step] for step in sorted(times)])
    before, after = gaps[1 : STEP_OF_FAILURE - 1], gaps[STEP_OF_FAILURE:]
    return (
        f"no error; steps take {statistics.mean(before):.2f} s on average before, "
        f"{statistics.mean(after):.2f} s after, at most {max(after):.1f} s"
    )


def _shown(line):
    return line.replace("|", "/").removeprefix("run_pretraining: ")


def _values(draws, column):
    shape = (NUM_RECORDS, column.length) if column.length else (NUM_RECORDS,)
    if column.name in ("input_ids", "masked_lm_ids"):
        return draws.integers(1000, CONFIG["vocab_size"], shape)
    if column.name == "masked_lm_positions":
        return np.tile(np.arange(PREDICTIONS) * 5 + 1, (NUM_RECORDS, 1))
    if column.name in ("segment_ids", "next_sentence_labels"):
        return draws.integers(0, 2, shape)
    return np.ones(shape)


def _free_addresses(count):
    listeners = [socket.create_server(("localhost", 0)) for _ in range(count)]
    addresses = [f"localhost:{one.getsockname()[1]}" for one in listeners]
    for listener in listeners:
        listener.close()
    return addresses


if __name__ == "__main__":
    main()
