"""Times one pretraining step in three libraries, and its matrix products alone.

Every library trains the same model on the same batch with dropout, weight decay and
clipping. Hugging Face and this package compute both losses, KerasHub the masked-word
loss alone. The last rows of each table are the bounds: the step's matrix products
without anything else. This package computes the last layer only at the positions that
are read, so it has a bound of its own. The share of the bound is the time of the
library's products divided by that of its step.

    make benchmark-training_step                 # Everything; about 25 minutes.
    python benchmarks/training_step.py --sizes=mini --dtypes=bfloat16 --rounds=5
"""

import pathlib
import statistics
import sys

import report
import training_step_task

BOUND = "matrix products alone"
OUR_BOUND = "matrix products of bert_tf alone"
OURS = "bert_tf"
# Name in the table -> part of the script's name, and mode.
PEERS = {
    OURS: ("bert_tf", "eager"),
    "Hugging Face": ("hugging_face", "eager"),
    "Hugging Face, `torch.compile`": ("hugging_face", "compiled"),
    "KerasHub": ("keras_hub", "eager"),
    BOUND: ("matrix_products", "all"),
    OUR_BOUND: ("matrix_products", "read"),
}
HEADER = (
    "",
    "seconds per step (smallest to largest)",
    "processor seconds",
    "time / ours",
    "share of the bound",
    "first step, s",
    "peak memory, GB",
)


def main():
    """Measures every size and dtype, and writes a section of RESULTS.md for each."""
    given = arguments()
    for size in given.sizes.split(","):
        for dtype in given.dtypes.split(","):
            measure(size, dtype, given.rounds)


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    parser.add_argument("--sizes", default="base,mini", help="model sizes")
    parser.add_argument("--dtypes", default="bfloat16,float32", help="dtypes to run in")
    parser.add_argument("--rounds", type=int, default=9, help="measurements per peer")
    return parser.parse_args()


def measure(size, dtype, count):
    """Measures one model in one dtype and writes the table.

    Args:
        size: key of `training_step_task.BATCHES`.
        dtype: "float32" or "bfloat16".
        count: measurements per peer.
    """
    peers, versions = {}, {}
    # Started one after the other, so that each first step has the machine to itself.
    for name, (script, mode) in PEERS.items():
        # This package gets what its users have. Its steps are as fast on processors
        # without AMX, and its first step is faster with several arenas.
        env = {} if name == OURS else report.KEEPS_MEMORY
        peers[name] = report.Peer([*command(script), size, dtype, mode], env=env)
        versions.update(peers[name].facts["versions"])
    rounds = report.interleave(peers, count)
    seconds = {name: [one["seconds"] for one in rounds[name]] for name in peers}
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    rows = []
    for name, peer in peers.items():
        is_bound = name in (BOUND, OUR_BOUND)
        bound = medians[OUR_BOUND if name == OURS else BOUND]
        rows.append(
            [
                name,
                report.median_and_spread(seconds[name]),
                statistics.median(one["cpu_seconds"] for one in rounds[name]),
                medians[name] / medians[OURS],
                None if is_bound else f"{bound / medians[name]:.0%}",
                None if is_bound else round(peer.facts["first_seconds"], 1),
                peer.close() / 1e9,
            ]
        )
    num_rows, length, _ = training_step_task.BATCHES[size]
    report.write_section(
        f"Pretraining step: BERT-{size.capitalize()}, {num_rows} × {length}, {dtype}",
        f"{count} rounds.\n\n{report.table(HEADER, rows)}",
        all_versions=versions,
        bars={"seconds per step": seconds},
    )


def command(script):
    """Returns the command that starts a peer's script."""
    python = report.peers_python() if script == "hugging_face" else sys.executable
    return [python, pathlib.Path(__file__).with_name(f"training_step_{script}.py")]


if __name__ == "__main__":
    main()
