"""Times create_pretraining_data: the default settings against the plain path.

The plain path uses FullTokenizer and the release's sampler in one process. Both read
the same text with the same vocabulary. Each run is a process of its own, with start-up
included, and the two take turns.

    python benchmarks/data_creation.py --input_file=wiki.txt --vocab_file=vocab.txt
"""

import os
import subprocess
import sys
import tempfile
import time

import report

TOOL = report.ROOT / "tools" / "create_pretraining_data.py"
FLAGS = {
    "plain": ("--sampler=release", "--num_workers=1", "--shard_mb=100000"),
    "default": (),
}
TITLES = ["settings", "seconds", "processor seconds", "MB per second and pass"]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--input_file", required=True, help="text with one sentence per line")
    add("--vocab_file", required=True, help="vocabulary with one word piece per line")
    add("--dupe_factor", type=int, default=10, help="passes over the text")
    add("--rounds", type=int, default=5, help="runs of each setting")
    return parser.parse_args()


def run(options, flags, folder):
    """Returns wall and CPU seconds, and the peak memory in MB of one process."""
    command = [
        *(sys.executable, str(TOOL), f"--output_file={folder}/records"),
        f"--input_file={options.input_file}",
        f"--vocab_file={options.vocab_file}",
        f"--dupe_factor={options.dupe_factor}",
        *flags,
    ]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed.")
    return wall, used.ru_utime + used.ru_stime, round(used.ru_maxrss / 1000)


def main():
    """Runs the benchmark and prints the results."""
    options = arguments()
    runs = {name: [] for name in FLAGS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name, flags in FLAGS.items():
                runs[name].append(run(options, flags, folder))
                print(name, runs[name][-1], flush=True)
    megabytes = os.path.getsize(options.input_file) * options.dupe_factor / 1e6
    rows = []
    for name, values in runs.items():
        walls, cpus, memories = zip(*values, strict=True)
        speeds = [megabytes / wall for wall in walls]
        cells = [report.median_and_spread(x, 1) for x in (cpus, speeds)]
        rows.append([name, report.median_and_spread(walls, 2), *cells, max(memories)])
    print(report.table([*TITLES, "peak memory of a process, MB"], rows))


if __name__ == "__main__":
    main()
