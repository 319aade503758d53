"""Times the pretraining step with and without --deterministic, on the CPU.

A second process without the flag shows how much two equal processes differ.

    python benchmarks/deterministic.py
"""

import argparse
import statistics

import report
import training_step

TITLE = "Cost of `--deterministic`"
SIZE = "mini"
MODES = {"default": "eager", "`--deterministic`": "deterministic", "default again": ""}
TEXT = """\
One step of BERT-Mini, 32 × 128 pieces, in processes that take turns. **Not measured on
a GPU**, where the flag replaces more operations.
"""


def main():
    """Measures both dtypes and writes the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each")
    given = parser.parse_args()
    rows = []
    for dtype in ("bfloat16", "float32"):
        peers = {
            name: report.Peer([*training_step.command("bert_tf"), SIZE, dtype, mode])
            for name, mode in MODES.items()
        }
        rounds = report.interleave(peers, given.rounds)
        for name, peer in peers.items():
            seconds = [one["seconds"] for one in rounds[name]]
            cpu_seconds = statistics.median(one["cpu_seconds"] for one in rounds[name])
            rows.append([dtype, name, report.median_and_spread(seconds), cpu_seconds])
            peer.close()
    columns = ["dtype", "", "seconds per step (smallest to largest)"]
    table = report.table([*columns, "processor seconds"], rows)
    versions = report.versions("tensorflow", "keras")
    report.write_section(TITLE, f"{TEXT}\n{table}", all_versions=versions)


if __name__ == "__main__":
    main()
