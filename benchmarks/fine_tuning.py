"""Fine-tunes a classifier with this package and with Hugging Face, as whole processes.

Both sides start from the same encoder, read the same files, draw their batches at
random, and train, evaluate and save. Every run is a process of its own, from its start
to its end. The runs of both sides take turns.

    python benchmarks/fine_tuning.py --model=all-MiniLM-L6-v2 --glue_dir=glue

With `--batches grouped`, both sides put sequences of similar length into a batch. With
`--compiled`, Hugging Face's model is also run with `torch.compile`.
Finished runs are kept in `--work_dir`, so that the same command resumes. After an
update of a library, use a new folder.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import fine_tuning_task
import report

SCRIPTS = report.ROOT / "benchmarks"
OURS, THEIRS = "bert_tf", "Hugging Face"
COMPILED = f"{THEIRS}, `torch.compile`"
# Library -> the end of its script's name.
SCRIPT_OF = {OURS: "bert_tf", THEIRS: "hugging_face", COMPILED: "hugging_face"}
TITLES = [
    "task",
    "dtype",
    "batches",
    "library",
    "seconds of the whole process",
    "time / ours",
    "accuracy, each seed",
]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add(
        "--model",
        default="sentence-transformers/all-MiniLM-L6-v2",
        help="folder of an encoder in Hugging Face's format",
    )
    add("--glue_dir", required=True, help="folder with the folders MRPC and SST-2")
    add("--tasks", nargs="+", default=["MRPC", "SST-2"], help="GLUE tasks")
    add("--dtypes", nargs="+", default=["bfloat16", "float32"], help="dtypes to run in")
    add("--seeds", nargs="+", type=int, default=[1, 2, 3], help="one run per seed")
    add("--num_rows", type=int, default=10000, help="maximum number of training rows")
    add("--num_epochs", type=int, default=3, help="passes over these rows")
    add("--batches", nargs="+", default=["random", "grouped"], help="kinds of batches")
    add("--compiled", action="store_true", help="also run Hugging Face compiled")
    add("--work_dir", help="folder that keeps finished runs; default: a temporary one")
    return parser.parse_args()


def main():
    """Runs everything that is missing and writes the section of RESULTS.md."""
    given = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        work_dir = pathlib.Path(given.work_dir or temporary)
        found = measure(given, work_dir)
    versions = {}
    for one in found.values():
        versions |= one["versions"]
    report.write_section(
        "Fine-tuning",
        f"{report.table(TITLES, table_rows(found, given.seeds))}\n\n"
        f"{pathlib.Path(given.model).name}, trained on at most {given.num_rows:,} rows "
        f"(epochs: {given.num_epochs}, batch size: {fine_tuning_task.BATCH_SIZE}, "
        f"pieces per row: at most {fine_tuning_task.MAX_LENGTH}, learning rate: "
        f"{fine_tuning_task.RATE}, seeds: {', '.join(map(str, given.seeds))}). "
        "Seconds: median (smallest to largest) over the seeds. Accuracy is on the "
        "development set. Hugging Face pads every batch to its longest row. The "
        "allocator keeps freed memory for all libraries.",
        all_versions=versions,
        bars={"seconds of the whole process": seconds_of_kinds(found)},
    )


def seconds_of_kinds(found):
    """Returns {task, dtype, kind of batches and library: seconds of its runs}."""
    seconds = {}
    for (*kind, _), one in found.items():
        seconds.setdefault(", ".join(kind), []).append(one["seconds"])
    return seconds


def measure(given, work_dir):
    """Returns {(task, dtype, batches, library, seed): its result}."""
    found = {}
    libraries = [OURS, THEIRS, *([COMPILED] if given.compiled else [])]
    for task in given.tasks:
        data_dir = work_dir / "data" / task
        fine_tuning_task.copy_rows(pathlib.Path(given.glue_dir, task), data_dir, given)
        for dtype in given.dtypes:
            for batches in given.batches:
                for index, seed in enumerate(given.seeds):
                    for library in libraries[:: 1 - 2 * (index % 2)]:
                        key = (task, dtype, batches, library, seed)
                        found[key] = run(key, given, data_dir, work_dir)
    return found


def run(key, given, data_dir, work_dir):
    """Returns the result of one run, which is made if it is not in `work_dir`."""
    task, dtype, batches, library, seed = key
    is_compiled = library == COMPILED
    mode = "compiled" if is_compiled else "eager"
    name = "-".join([task, dtype, batches, SCRIPT_OF[library], mode, str(seed)])
    folder = work_dir / name
    result_file = work_dir / f"{name}.json"
    settings = {
        "task": task,
        "dtype": dtype,
        "is_grouped": batches == "grouped",
        "is_compiled": is_compiled,
        "seed": seed,
        "model": given.model,
        "num_epochs": given.num_epochs,
        "num_rows": given.num_rows,
        "data_dir": str(data_dir),
        "output_dir": str(folder),
    }
    if result_file.exists():
        result = json.loads(result_file.read_text(encoding="utf-8"))
        if result["settings"] == settings:
            return result
    programs = work_dir / f"{name}-programs"
    for kept in (folder, programs):  # A run that was killed would resume.
        shutil.rmtree(kept, ignore_errors=True)
    script = f"fine_tuning_{SCRIPT_OF[library]}.py"
    python = sys.executable if library == OURS else report.peers_python()
    started = time.perf_counter()
    answer = subprocess.run(
        [python, SCRIPTS / script, json.dumps(settings)],
        env={
            **os.environ,
            **report.environment(),
            **report.KEEPS_MEMORY,
            # Empty, so that every run includes compiling.
            "TORCHINDUCTOR_CACHE_DIR": str(programs),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if answer.returncode:
        raise RuntimeError(f"{name} failed: {answer.stderr[-2000:]}")
    result = json.loads(answer.stdout.strip().split("\n")[-1])
    result |= {"seconds": seconds, "settings": settings}
    print(f"{name}: {seconds:.1f} s, accuracy {result['accuracy']:.3f}", flush=True)
    result_file.write_text(json.dumps(result), encoding="utf-8")
    return result


def table_rows(found, seeds):
    """Returns the rows of the table: the libraries of each task, dtype and batches."""
    kinds = dict.fromkeys(key[:4] for key in found)
    runs = {key: [found[*key, seed] for seed in seeds] for key in kinds}
    seconds = {
        key: [one["seconds"] for one in several] for key, several in runs.items()
    }
    rows = []
    for (*kind, library), several in runs.items():
        ours = statistics.median(seconds[*kind, OURS])
        of_library = seconds[*kind, library]
        accuracies = " ".join(f"{one['accuracy']:.3f}" for one in several)
        spread = report.median_and_spread(of_library, 1)
        ratio = statistics.median(of_library) / ours
        rows.append([*kind, library, spread, ratio, accuracies])
    return rows


if __name__ == "__main__":
    main()
