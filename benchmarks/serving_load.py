"""Load-tests servers at increasing request rates, and checks every answer.

The load is open: requests start at fixed times, whether or not earlier ones were
answered, and the time of a request counts from when it should have started. Each of the
clients is a process. Every answer is compared with that of the SavedModel on disk.

    python benchmarks/serving_load.py --export_dir=models/vectors/1 \\
        --model=all-MiniLM-L6-v2
    python benchmarks/serving_load.py --export_dir=models/topics/1 --hostile \\
        --server=http://localhost:8501/v1/models/topics

Without --server, it starts `serve_model`, also with OpenVINO if that is installed, and
with --model plain servers of other libraries. All servers run at the same time and take
turns, one rate after the other, and their memory is reported. With the defaults, each
is loaded for ten minutes. At the end, failed requests are counted by status or
exception.
"""

import collections
import concurrent.futures
import contextlib
import importlib.util
import math
import multiprocessing
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import report
import requests

# Shares of hostile requests with --hostile.
HOSTILE_SHARE = 0.05
DISCONNECT_SHARE = 0.02
SCRIPTS = [
    "Дождь пошёл ночью.",
    "雨が夜に降り始めた。",
    "बारिश रात को शुरू हुई।",
    "naïve café 😀",
]
HOSTILE = [
    "",
    "\x00\x01\u202e",
    "\ud800",
    "a" * 100_000,
    "雨" * 20_000,
    "e\u0301" * 5_000,
]
TOLERANCE = 1e-3
FAILED = "failed:"  # Begins the outcome of a failed request, which names the cause.
SERVER_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "TOKENIZERS_PARALLELISM": "false"}
TITLES = [
    *("server", "requests per second", "answered", "429", "504", "failed", "wrong"),
    *("texts per second", "p50 ms", "p95 ms", "p99 ms", "memory, MB, before", "after"),
]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--export_dir", required=True, help="SavedModel that takes one text per row")
    add("--server", help="address of the model; default: a new serve_model")
    add("--input_file", default=str(report.SAMPLE), help="texts, one per line")
    add("--model", help="folder or name of the encoder, for servers of other libraries")
    add("--only", nargs="+", help="names of the servers to load, as in the table")
    add("--rates", default="5,10,20,40", help="requests per second, one row each")
    add("--seconds", type=float, default=150, help="duration of each rate")
    add("--clients", type=int, default=8, help="processes that send requests")
    add("--hostile", action="store_true", help="add hostile texts and disconnections")
    return parser.parse_args()


def main():
    """Runs the rates, one after the other, and writes the section."""
    args = arguments()
    texts = all_texts(args.input_file) + (HOSTILE if args.hostile else [])
    golden = golden_answers(args.export_dir, texts)
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(running_server(command))
            for name, command in commands(args).items()
        }
        if args.server is not None:
            servers = {"server": (args.server, None)}
        pool = stack.enter_context(
            concurrent.futures.ProcessPoolExecutor(args.clients, mp_context=context)
        )
        # Each process has a job while the others start, so that all have started before
        # the first requests are due.
        list(pool.map(time.sleep, [5] * args.clients))
        bad, failures = 0, collections.Counter()
        for rate in args.rates.split(","):
            for name in servers:
                row, failed = row_of_rate(
                    args, pool, name, *servers[name], golden, float(rate)
                )
                bad += row[5] + row[6]
                for cause, count in failed.items():
                    failures[f"{name} at {rate}: {cause}"] += count
                # After every row, so that a killed run keeps what it found.
                report.write_table(
                    "Serving under load" + (", hostile" if args.hostile else ""),
                    *(TITLES, [row]),
                    num_keys=2,
                    versions=report.versions("tensorflow", "requests"),
                )
    for cause, count in failures.most_common():
        print(f"{count} x {cause}")
    return 1 if bad else 0


def commands(args):
    """Returns {server: its command}, apart from --port."""
    if args.server is not None:
        return {}
    export_dir = pathlib.Path(args.export_dir).resolve()
    tool = report.ROOT / "tools" / "serve_model.py"
    ours = [sys.executable, tool, f"--export_dir={export_dir}", "--model_name=model"]
    servers = {"serve_model": ours}
    if importlib.util.find_spec("openvino"):
        servers["serve_model, OpenVINO"] = [*ours, "--backend=openvino"]
    if args.model is not None:
        for name, library in [
            ("sentence-transformers, FastAPI", "sentence_transformers"),
            ("OpenVINO, FastAPI", "openvino"),
        ]:
            task = {"library": library, "model": args.model}
            servers[name] = report.command_of_peer(
                *(__file__, "library", task, report.peers_python())
            )
    unknown = set(args.only or []) - set(servers)
    if unknown:
        raise SystemExit(f"--only {unknown}: expected some of {list(servers)}.")
    return {name: servers[name] for name in args.only or servers}


def all_texts(path):
    """Returns texts of mixed lengths and scripts."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    lines = [line for line in lines if line.strip()][:40]
    return [*lines, *SCRIPTS, " ".join(lines), *(text * 9 for text in SCRIPTS)]


def golden_answers(export_dir, texts):
    """Returns {text: its outputs}, each computed alone, in a process that then ends."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_golden, export_dir, texts).result()


def _golden(export_dir, texts):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  # Registers its operations.

    model = tf.saved_model.load(export_dir)
    answers = {}
    for text in texts:
        try:
            outputs = model.signatures["serving_default"](text=tf.constant([text]))
        except (tf.errors.OpError, UnicodeError):  # The model refuses this text.
            outputs = {}
        answers[text] = {
            name: [_decoded(item) for item in np.ravel(value.numpy()).tolist()]
            for name, value in outputs.items()
        }
    return answers


def _decoded(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


@contextlib.contextmanager
def running_server(command):
    """Yields the address of the model, and the process of a server that it starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [*map(str, command), f"--port={port}"],
        env=os.environ | report.environment() | SERVER_ENVIRONMENT,
    )
    try:
        while not is_ready(port):
            if process.poll() is not None:
                raise SystemExit(f"{command[1]} did not start; its message is above.")
            time.sleep(0.5)
        yield f"http://localhost:{port}/v1/models/model", process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def is_ready(port):
    """Returns whether a server answers that it is healthy."""
    try:
        return requests.get(f"http://localhost:{port}/health", timeout=5).ok
    except requests.RequestException:
        return False


def row_of_rate(args, pool, name, address, process, golden, rate):
    """Sends requests at a rate. Returns the cells of a row, and {failure: number}."""
    before = None if process is None else memory_of(process.pid)
    start = time.time() + 1
    jobs = [
        pool.submit(
            client, address, golden, rate / args.clients, args.seconds, start, seed
        )
        for seed in range(args.clients)
    ]
    results = [result for job in jobs for result in job.result()]
    seconds = sorted(s for outcome, s, _ in results if outcome == "answered")
    counts = {
        outcome: sum(one == outcome for one, _, _ in results)
        for outcome in ("answered", "429", "504", "failed", "wrong")
    }
    failures = collections.Counter(
        outcome for outcome, _, _ in results if outcome.startswith(FAILED)
    )
    counts["failed"] = failures.total()
    num_texts = sum(size for outcome, _, size in results if outcome == "answered")
    # Until the last answer, if the server is behind.
    duration = max(args.seconds, time.time() - start)
    row = [
        name,
        f"{rate:g}",
        *counts.values(),
        round(num_texts / duration),
        *(f"{1000 * percentile(seconds, share):.0f}" for share in (0.5, 0.95, 0.99)),
        before and round(before),
        None if process is None else round(memory_of(process.pid)),
    ]
    print(dict(zip(TITLES, row, strict=True)), dict(failures), flush=True)
    return row, failures


def percentile(values, share):
    """Returns the value below which a share of sorted values lies; NaN for none."""
    return values[math.ceil(share * len(values)) - 1] if values else math.nan


def client(address, golden, rate, seconds, start, seed):
    """Sends requests at a rate. Returns (outcome, seconds, texts) for each."""
    chosen = random.Random(seed)
    usual = [text for text in golden if text not in HOSTILE]
    hostile = [text for text in golden if text in HOSTILE]
    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=256)
    session.mount("http://", adapter)
    jobs = []
    with concurrent.futures.ThreadPoolExecutor(256) as pool:
        # Clients start at different moments of the first interval.
        due = start + chosen.random() / rate
        while due < start + seconds:
            time.sleep(max(0.0, due - time.time()))
            texts = chosen.choices(usual, k=chosen.randint(1, 8))
            if hostile and chosen.random() < HOSTILE_SHARE:
                texts.append(chosen.choice(hostile))
            leaves = bool(hostile) and chosen.random() < DISCONNECT_SHARE
            jobs.append(pool.submit(ask, session, address, golden, texts, due, leaves))
            due += 1 / rate
        return [job.result() for job in jobs]


def ask(session, address, golden, texts, due, leaves):
    """Sends one request. Returns (outcome, seconds, texts)."""
    timeout = (60, 0.001) if leaves else 120
    try:
        reply = session.post(
            f"{address}:predict", json={"inputs": texts}, timeout=timeout
        )
    except requests.RequestException as error:
        return ("left" if leaves else failure(type(error).__name__, error)), 0.0, 0
    taken = time.time() - due
    if reply.status_code in (429, 504):  # The queue is full, or the wait too long.
        return str(reply.status_code), taken, 0
    refused = any(not golden[text] for text in texts)  # By the model, also on disk.
    if not reply.ok:
        if refused and reply.status_code == 400:
            return "refused", 0.0, 0
        return failure(f"status {reply.status_code}", reply.text), 0.0, 0
    outputs = reply.json()["outputs"]
    names = list(golden[texts[0]])
    columns = outputs if isinstance(outputs, dict) else {names[0]: outputs}
    for index, text in enumerate(texts):
        for name, expected in golden[text].items():
            if not equal(flat(columns[name][index]), expected):
                return "wrong", taken, 0
    return "answered", taken, len(texts)


def failure(kind, message):
    """Returns the outcome of a failed request: its kind and the message's first line.

    Addresses of objects are left out, so that equal failures are counted together.
    """
    first_line = str(message).split("\n")[0]
    return f"{FAILED} {kind}: {re.sub(' at 0x[0-9a-f]+', '', first_line)[:160]}"


def flat(value):
    """Returns the items of nested lists."""
    if not isinstance(value, list):
        return [value]
    return [item for part in value for item in flat(part)]


def equal(found, expected):
    """Returns whether an output is the golden one, apart from rounding and padding."""
    return len(found) >= len(expected) and all(
        abs(one - other) <= TOLERANCE if isinstance(other, float) else one == other
        for one, other in zip(found, expected, strict=False)
    )


def memory_of(pid):
    """Returns the megabytes of a process and its children, shared pages in parts.

    Mapped files are left out: other processes that use the same libraries share them.
    """
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    total = sum(memory_of(int(child)) for child in found.stdout.split())
    try:
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return total
    [line] = [line for line in rollup.splitlines() if line.startswith("Pss_Anon:")]
    return total + int(line.split()[1]) / 1024


def serve_library(task):
    """Serves vectors of another library as FastAPI servers usually do.

    A function computes the vectors of a request in one of FastAPI's threads, at the
    path and in the form of TensorFlow Serving. Requests are not computed together.
    """
    import fastapi
    import inference
    import uvicorn

    embed = inference.embedder(task["library"], task["model"])
    embed(["a", "a longer text"])
    # OpenVINO's compiled model computes one request at a time, with all processors.
    is_openvino = task["library"] == "openvino"
    lock = threading.Lock() if is_openvino else contextlib.nullcontext()
    app = fastapi.FastAPI()

    @app.get("/health")
    def health():
        return "ok"

    @app.post("/v1/models/model:predict")
    def predict(request: dict[str, Any]):
        with lock:
            return {"outputs": embed(request["inputs"]).tolist()}

    port = int(sys.argv[4].removeprefix("--port="))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    report.run(main, library=serve_library)
