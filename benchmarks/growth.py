"""Measures how the time grows with length, batch, layers, replicas and corpus size.

A step of a small BERT model with random weights is timed for several values of one
size, while the others stay fixed. The cases of an axis take turns. The fitted exponent
is the slope of the time over the size on logarithmic scales. Next to it is the same
slope of the step's FLOPs, the growth that the computation itself requires.

    python benchmarks/growth.py --input_file=wiki.txt --vocab_file=vocab.txt

The plot needs matplotlib (the extra `plots`).
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import report
import tensorflow as tf

import bert_tf
from bert_tf.training import building
from bert_tf.training import distribution
from bert_tf.training import optimizers
from bert_tf.training import options as training_options
from bert_tf.training import plots
from bert_tf.training import steps

WIDTH, VOCAB_SIZE = 256, 30522
USUAL = {"length": 128, "batch": 8, "layers": 2, "replicas": 1}
AXES = {
    "length": (64, 128, 256, 512),
    "batch": (4, 8, 16),
    "layers": (1, 2, 4),
    "replicas": (1, 2),
}
CORPUS_SHARES = (0.25, 0.5, 1.0)
TITLES = ["", "values", "seconds (median)", "exponent of the time", "of the FLOPs"]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--input_file", required=True, help="text with one sentence per line")
    add("--vocab_file", required=True, help="vocabulary with one word piece per line")
    add("--rounds", type=int, default=5, help="measurements of each case")
    add("--dtype", default="mixed_bfloat16", help="dtype policy of the model")
    return parser.parse_args()


def main():
    """Measures every axis, draws the plot and writes the section of RESULTS.md."""
    given = arguments()
    # Before TensorFlow first uses the CPU, which is divided into two devices.
    strategies = {2: strategy_of(2), 1: strategy_of(1)}
    found = {
        axis: step_seconds(axis, values, strategies, given)
        for axis, values in AXES.items()
    }
    found["corpus, MB"] = corpus_seconds(given)
    plot = report.plot_path(report.title_here("Growth"))
    draw(found, plot)
    rows = []
    for axis, seconds in found.items():
        flops = [one_flops(axis, value) for value in seconds]
        rows.append(
            [
                axis,
                ", ".join(f"{value:g}" for value in seconds),
                ", ".join(f"{value:.3f}" for value in seconds.values()),
                exponent(list(seconds), list(seconds.values())),
                exponent(list(seconds), flops),
            ]
        )
    report.write_section(
        "Growth",
        f"{report.table(TITLES, rows)}\n\n"
        f"![Time over each size](plots/{plot.name})\n\n"
        f"One training step in {given.dtype} of a span predictor with width {WIDTH}: "
        f"medians of {given.rounds} rounds. Sizes that a row does not vary: "
        f"{sizes_line()}. Two replicas share the same cores and the same global batch. "
        "The last row is create_pretraining_data with ten passes over each text, "
        "including start-up. With two replicas, no islands are compiled; at length 64 "
        "or batch 4, some tensors are too small for that.",
        all_versions=report.versions("tensorflow", "keras"),
    )


def sizes_line():
    """Returns the usual sizes as text."""
    return ", ".join(f"{name} {value}" for name, value in USUAL.items())


def strategy_of(replicas):
    """Returns the devices for a number of replicas."""
    device = {"device": "mirrored", "num_replicas": replicas} if replicas > 1 else {}
    options = training_options.DeviceOptions(**({"device": "cpu"} | device))
    return distribution.create_strategy(options)


def step_seconds(axis, values, strategies, given):
    """Returns {value: median seconds of a step}, each value for its axis."""
    runners = {}
    for value in values:
        sizes = USUAL | {axis: value}
        runners[value] = runner(sizes, strategies[sizes["replicas"]], given.dtype)
    seconds = {value: [] for value in values}
    for _ in range(given.rounds):
        for value, run in runners.items():
            started = time.perf_counter()
            run(2)
            seconds[value].append((time.perf_counter() - started) / 2)
    return {value: statistics.median(found) for value, found in seconds.items()}


def runner(sizes, strategy, dtype):
    """Returns a function that takes a number of steps, warmed up."""
    config = bert_tf.BertConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=WIDTH,
        num_hidden_layers=sizes["layers"],
        num_attention_heads=WIDTH // 64,
        intermediate_size=4 * WIDTH,
    )
    with strategy.scope():
        model = building.build_model(
            # It computes all layers at all positions.
            lambda: bert_tf.BertSpanPredictor(config, dtype=dtype)
        )
        optimizer = optimizers.create_optimizer(
            model,
            training_options.OptimizerOptions(),
            num_train_steps=1000,
            num_warmup_steps=100,
        )
    train_steps = steps.build_train_steps(model, optimizer, strategy, random_seed=1)
    iterator = distribution.distribute(batches(sizes), strategy)

    def run(count):
        train_steps(iterator, tf.constant(count))["loss"].numpy()

    run(1)
    run(1)
    return run


def batches(sizes):
    """Returns an endless dataset of one random batch."""
    rows, length = sizes["batch"], sizes["length"]
    ids = np.random.default_rng(1).integers(1000, VOCAB_SIZE, (rows, length), np.int32)
    batch = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "start_positions": np.arange(rows, dtype=np.int32) % length,
        "end_positions": np.arange(rows, dtype=np.int32) % length,
        steps.EXAMPLE_INDEX: np.arange(rows, dtype=np.int32),
        steps.STEP: np.zeros(rows, np.int32),
    }
    return tf.data.Dataset.from_tensors(batch).repeat()


def one_flops(axis, value):
    """Returns what the work is proportional to, for one value of an axis."""
    if axis not in USUAL:
        return value
    sizes = USUAL | {axis: value}
    per_token = sizes["layers"] * (12 * WIDTH**2 + 2 * sizes["length"] * WIDTH)
    return sizes["batch"] * sizes["length"] * per_token


def corpus_seconds(given):
    """Returns {megabytes: seconds} of data creation from parts of the text."""
    text = pathlib.Path(given.input_file).read_bytes()
    tool = report.ROOT / "tools" / "create_pretraining_data.py"
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for share in CORPUS_SHARES:
            part = pathlib.Path(folder, f"{share}.txt")
            part.write_bytes(text[: int(share * len(text))].rpartition(b"\n")[0])
            command = [
                *(sys.executable, str(tool), f"--input_file={part}"),
                *(
                    f"--output_file={folder}/records",
                    f"--vocab_file={given.vocab_file}",
                ),
                "--dupe_factor=10",
            ]
            seconds = []
            for _ in range(given.rounds):
                started = time.perf_counter()
                subprocess.run(command, capture_output=True, check=True)
                seconds.append(time.perf_counter() - started)
            found[share * len(text) / 1e6] = statistics.median(seconds)
    return found


def exponent(values, measured):
    """Returns the slope of `measured` over `values` on logarithmic scales."""
    slope = float(np.polyfit(np.log(values), np.log(measured), 1)[0])
    return round(slope, 2) + 0.0  # Not "-0.00".


def draw(found, path):
    """Writes the plot: one panel per axis, with lines of slope 1 and 2."""
    figure, panels = plots.create(1, len(found))
    for axes, (axis, seconds) in zip(panels, found.items(), strict=True):
        values, first = list(seconds), next(iter(seconds.values()))
        axes.loglog(values, list(seconds.values()), marker="o", label="measured")
        for power in (1, 2):
            line = [first * (value / values[0]) ** power for value in values]
            axes.loglog(values, line, "--", linewidth=0.8, label=f"slope {power}")
        axes.set_xlabel(axis)
        axes.set_ylabel("seconds")
    panels[0].legend()
    path.write_bytes(plots.image(figure))


if __name__ == "__main__":
    main()
