"""Compares pretraining on a GPU with Hugging Face's model on PyTorch.

Both take the whole step (both heads, gradients, clipping, the optimizer) in bfloat16:
this package on Keras's JAX backend, PyTorch with its best attention on the same card.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --models tiny --lengths 16 --batch_sizes 2   # on a CPU

PyTorch is in another environment; see `report.peers_python`.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import sys
import tempfile

import report

SCRIPTS = report.ROOT / "benchmarks"
TITLE = "Pretraining on a GPU"
OURS, THEIRS = "bert_tf on JAX", "Hugging Face on PyTorch"
# Published dense bfloat16 figures, in FLOPs per second.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12}
MODELS = ("bert-base-uncased", "bert-large-uncased")
COLUMNS = ["model", "length", "batch", OURS, THEIRS, "ratio", "share of peak, both"]


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--models", nargs="+", default=list(MODELS), help="models; tiny is for tests")
    add("--lengths", nargs="+", type=int, default=[128, 512])
    add("--batch_sizes", nargs="+", type=int, default=[256, 64], help="one per length")
    add("--num_rounds", type=int, default=5, help="measurements of each library")
    add("--num_steps", type=int, default=10, help="steps of one measurement")
    return parser.parse_args()


def main():
    """Measures all cases and writes the section."""
    args = arguments()
    rows, device, versions = [], None, {}
    sizes = zip(args.lengths, args.batch_sizes, strict=True)
    for model, (length, batch) in itertools.product(args.models, list(sizes)):
        case = {"model": model, "max_seq_length": length, "batch_size": batch}
        case |= {"num_steps": args.num_steps, "num_predictions": -(-length * 15 // 100)}
        found, facts = measure(case, args.num_rounds)
        device, versions = facts["device"], facts["versions"]
        rows.append(_row(case, found, facts))
    peak = _peak(device)
    body = (
        f"Sequences per second in bfloat16 on {device}, median (smallest to "
        f"largest) of {args.num_rounds} measurements that take turns. "
        + (f"Published peak: {peak / 1e12:.0f} TFLOP/s.\n\n" if peak else "\n\n")
        + report.table(COLUMNS, rows)
    )
    report.write_section(TITLE, body, all_versions=versions, on_cpu=False)


def measure(case, num_rounds):
    """Returns {library: seconds per step} and the facts of both processes."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "case.json")
        file.write_text(json.dumps(case))
        jax = {"KERAS_BACKEND": "jax"}
        ours = report.Peer([sys.executable, SCRIPTS / "gpu_bert_tf.py", file], env=jax)
        peers = {OURS: ours}
        python = report.peers_python()
        if pathlib.Path(python).exists():
            script = SCRIPTS / "gpu_hugging_face.py"
            peers[THEIRS] = report.Peer([python, script, file])
        rounds = report.interleave(peers, num_rounds)
        facts = {
            "device": ours.facts["device"],
            "model_flops": ours.facts["model_flops"],
            "versions": {k: v for p in peers.values() for k, v in _versions(p)},
        }
    seconds = {
        name: [one["seconds"] for one in found] for name, found in rounds.items()
    }
    return seconds, facts


def _versions(peer):
    return peer.facts["versions"].items()


def _peak(device):
    return next((PEAKS[name] for name in PEAKS if name in device), None)


def _row(case, found, facts):
    batch, peak = case["batch_size"], _peak(facts["device"])
    speeds = {name: [batch / one for one in found[name]] for name in found}
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    shares = [
        f"{facts['model_flops'] * median / batch / peak:.0%}"
        for median in medians.values()
        if peak
    ]
    both = len(medians) == 2
    return [
        *(case["model"], case["max_seq_length"], batch),
        report.median_and_spread(speeds[OURS], 1),
        report.median_and_spread(speeds[THEIRS], 1) if both else None,
        medians[OURS] / medians[THEIRS] if both else None,
        ", ".join(shares) or None,
    ]


if __name__ == "__main__":
    main()
