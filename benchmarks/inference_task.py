"""Part of inference: what every library does. Needs only NumPy."""

import json
import pathlib
import statistics
import sys
import time

import numpy as np
import report

NUM_SINGLE = 15  # Texts that are computed one at a time.


def read_task():
    """Returns the task of the command line, with its `texts`."""
    task = json.loads(sys.argv[1])
    text = pathlib.Path(task["texts_file"]).read_text(encoding="utf-8")
    return {**task, "texts": json.loads(text)}


def serve(task, embed, *packages):
    """Warms up, writes the vectors, and answers the driver.

    Args:
        task: that of `read_task`.
        embed: from a list of texts to an array [N, H].
        *packages: whose versions are reported.
    """
    texts = task["texts"]
    np.save(task["vectors_file"], np.asarray(embed(texts), np.float32))

    def measure():
        started = time.perf_counter()
        embed(texts)
        seconds = time.perf_counter() - started
        single = []
        for text in texts[:NUM_SINGLE]:
            started = time.perf_counter()
            embed([text])
            single.append(time.perf_counter() - started)
        return {"seconds": seconds, "one_ms": 1000 * statistics.median(single)}

    report.serve(measure, versions=report.versions(*packages))
