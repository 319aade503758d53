"""Times a pretraining step of BERT-Mini with and without --deterministic.

python benchmarks/deterministic.py --rounds=9
"""

import argparse
import pathlib
import statistics
import sys

import report
import training_step_task

TITLE = "Cost of --deterministic"
WORKER = pathlib.Path(__file__).with_name("training_step_bert_tf.py")
SIZE, DTYPES = "mini", ("float32", "bfloat16")
MODES = ("eager", "deterministic")
HEADER = (
    *("dtype", "seconds per step", "with --deterministic"),
    "ratio of the medians",
)
TEXT = """\
The step of BERT-Mini on {rows} × {length} pieces on the CPU: median (smallest to
largest) of {rounds} interleaved rounds. The batch is in memory; the section below
measures the input pipeline. **GPUs were not measured**; there, more operations have a
slower deterministic form.

"""


def main():
    """Measures and writes the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="measurements per mode")
    rounds = parser.parse_args().rounds
    peers = {
        (dtype, mode): report.Peer(
            [sys.executable, WORKER, SIZE, dtype, mode], env=report.KEEPS_MEMORY
        )
        for dtype in DTYPES
        for mode in MODES
    }
    found = {
        key: [one["seconds"] for one in measured]
        for key, measured in report.interleave(peers, rounds).items()
    }
    for peer in peers.values():
        peer.close()
    rows = [row(dtype, *(found[dtype, mode] for mode in MODES)) for dtype in DTYPES]
    num_rows, length, _ = training_step_task.BATCHES[SIZE]
    text = TEXT.format(rows=num_rows, length=length, rounds=rounds)
    versions = report.versions("tensorflow", "keras")
    report.write_section(
        TITLE, text + report.table(HEADER, rows), all_versions=versions
    )


def row(dtype, default, deterministic):
    """Returns a line of the table from the seconds per step of both modes."""
    ratio = statistics.median(deterministic) / statistics.median(default)
    return [
        dtype,
        report.median_and_spread(default),
        report.median_and_spread(deterministic),
        ratio,
    ]


if __name__ == "__main__":
    main()
