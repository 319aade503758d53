"""Loads `serve_model` at fixed rates, attacks it, and checks every answer.

    python benchmarks/serving_load.py --export_dir=models/vectors/1 --roots . ../before

The servers of several checkouts take turns. Requests start at fixed times, whether or
not earlier ones were answered, and the time of a request counts from its start.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import report
import requests

from bert_tf.serving import client

UNREAD = '{"inputs": ["rain"], "unread": [' + ",".join(["[]"] * 2_796_000) + "]}"
LONG = ["the rain and the snow " * 60]  # About 300 words.


def main():
    """Runs the rates and the attacks on every server."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--export_dir", required=True, help="encoder, such as models/vectors/1")
    add("--roots", nargs="+", default=["."], help="checkouts to compare")
    add("--rates", default="5,10,20", help="requests per second")
    add("--seconds", type=float, default=30, help="duration of each rate")
    args = parser.parse_args()
    lines = pathlib.Path(report.SAMPLE).read_text(encoding="utf-8").split("\n")
    texts = [line for line in lines if line.strip()][:40]
    texts += [" ".join(texts), "Дождь пошёл ночью.", "雨が夜に降り始めた。" * 9]
    answers = client.open_saved_model(args.export_dir).ask(text=texts)
    golden = {t: a["embedding"] for t, a in zip(texts, answers, strict=True)}
    with contextlib.ExitStack() as stack:
        starts = [running(root, args.export_dir) for root in args.roots]
        servers = [stack.enter_context(start) for start in starts]
        for rate in map(float, args.rates.split(",")):
            for address, pid in servers:
                row = row_of_rate(address, golden, rate, args.seconds)
                print(address, f"{rate:g}/s", row, memory(pid), "MB", flush=True)
        for address, pid in servers:
            print(address, "large bodies:", large_bodies(address, pid), flush=True)
            print(address, "large request:", large_request(address), flush=True)
            print(address, "then:", row_of_rate(address, golden, 5, 10), flush=True)
            os.kill(group(pid)[-1], signal.SIGKILL)  # As if memory had run out.
            time.sleep(10)
            print(address, "after kill -9:", ask(address, ["a"], 10)[0], flush=True)


@contextlib.contextmanager
def running(root, export_dir):
    """Yields the address of the model and the process id of a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = pathlib.Path(export_dir).resolve()
    flags = [f"--export_dir={folder}", f"--port={port}", "--max_body_mb=8"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "tools/serve_model.py", *flags],
            cwd=root,
            env=os.environ | report.environment() | {"PYTHONPATH": "."},
            stderr=log,
            start_new_session=True,
        )
        address = f"http://localhost:{port}/v1/models/{folder.parent.name}:predict"
        try:
            while ask(address, ["rain"])[0] != 200:
                if process.poll() is not None:
                    log.seek(0)
                    raise OSError(f"The server of {root} ended: {log.read().strip()}")
                time.sleep(0.5)
            yield address, process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ask(address, texts, timeout=120, **body):
    """Returns the status of a request, or what failed, and the outputs."""
    body = body or {"json": {"inputs": texts}}
    try:
        reply = requests.post(address, timeout=timeout, **body)
    except requests.RequestException as error:
        return type(error).__name__, None
    return reply.status_code, reply.json().get("outputs")


def row_of_rate(address, golden, rate, seconds):
    """Sends requests at a rate; returns the counts and times of the answers."""
    chosen, start, jobs = random.Random(0), time.time(), []

    def timed(texts, due):
        status, outputs = ask(address, texts)
        taken = 1000 * (time.time() - due)
        expected = [golden[text] for text in texts]
        is_right = status == 200 and np.allclose(outputs, expected, atol=1e-3)
        return taken if is_right else f"wrong: {status}"

    with concurrent.futures.ThreadPoolExecutor(256) as pool:
        for number in range(int(rate * seconds)):
            due = start + number / rate
            time.sleep(max(0.0, due - time.time()))
            texts = chosen.choices(list(golden), k=chosen.randint(1, 8))
            jobs.append(pool.submit(timed, texts, due))
    found = [job.result() for job in jobs]
    times = [one for one in found if isinstance(one, float)]
    wrong = sorted({one for one in found if isinstance(one, str)})
    p50, p99 = np.percentile(times or [np.nan], [50, 99]).round()
    return {"right": len(times), "of": len(found), "p50": p50, "p99": p99}, wrong


def group(pid):
    """Returns the ids of a server's processes."""
    found = subprocess.run(["pgrep", "-g", str(pid)], capture_output=True, check=False)
    return [int(one) for one in found.stdout.split()]


def memory(pid):
    """Returns the megabytes of a server's processes."""
    total = 0
    for one in group(pid):
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text("ascii")
            total += int(text.split("Pss_Anon:")[1].split()[0]) // 1024
    return total


def large_bodies(address, pid):
    """Sends 24 bodies of 8 MiB at once; returns their statuses and the memory."""
    before = peak = memory(pid)
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        jobs = [pool.submit(ask, address, None, data=UNREAD) for _ in range(24)]
        while not all(job.done() for job in jobs):
            peak = max(peak, memory(pid))
    return [job.result()[0] for job in jobs], f"{before} to {peak} MB"


def large_request(address):
    """Returns the status of a large request and the longest wait of others.

    The clients of 100 other requests leave before.
    """
    for _ in range(100):
        ask(address, LONG * 20, 0.05)
    waits = []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        large = pool.submit(ask, address, LONG * 1000)
        time.sleep(1)
        while not large.done() and len(waits) < 200:
            start = time.time()
            waits.append((ask(address, ["rain"])[0], round(time.time() - start, 2)))
    return large.result()[0], max(waits, key=lambda one: one[1], default=None)


if __name__ == "__main__":
    report.run(main)
