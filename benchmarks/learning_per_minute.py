"""Compares what a masked-word model learns in a given time in two libraries.

Every library ("peer") trains a model of the same size on the same text (ours reads the
text itself, the other one records of it) for the same wall time: one after the other,
each in a process of its own and in its fastest mode, with the same batch size, learning
rate, dropout and clipping, and with an allocator that keeps freed memory. The settings
come from this package's recipe, and so does the initialization of its weights
(`--config_overrides`). The other library uses its own initialization.

The time includes tracing and compiling. It does not include loading libraries and data,
finding the fastest mode, and evaluating. All models are evaluated in float32 on the
same held-out rows with the same masked positions.

    python benchmarks/learning_per_minute.py --minutes=30 --output_dir=/tmp/learning \\
        --train_text='wiki.train.txt' --heldout_text=wiki.heldout.txt \\
        --vocab_file=vocab.txt --hugging_face_python=/other/venv/bin/python \\
        --rates bert_tf=3e-4,6e-4,1e-3 hugging_face=1e-4,3e-4,6e-4 --seeds 1 2 3

Every peer is shown with each of its rates, and compared by the best one. Finished runs
are kept in `--output_dir`: the same command resumes, and more rates or seeds only add
runs. Use a new folder for other texts and after an update of a library.
"""

import json
import math
import os
import statistics
import subprocess
import sys

import learning_peers
import report
import training_step

PEERS = ("bert_tf", "hugging_face")
# Columns of the table, in order.
COLUMNS = ("steps", "rows_per_second", "masked_lm_loss", "masked_lm_accuracy", "mode")


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=30.0, help="wall time per peer")
    add("--output_dir", required=True, help="folder for data and runs")
    add(
        "--train_text",
        required=True,
        help="one sentence per line; patterns, comma-separated",
    )
    add("--heldout_text", required=True, help="held-out text, one sentence per line")
    add("--vocab_file", required=True)
    add("--num_hidden_layers", type=int, default=4)
    add("--hidden_size", type=int, default=256)
    add("--batch_size", type=int, default=16)
    add("--learning_rate", type=float, default=3e-4, help="for peers without --rates")
    add(
        "--rates",
        nargs="+",
        default=[],
        help="learning rates to try, for each peer: PEER=RATE,RATE",
    )
    add("--seeds", type=int, nargs="+", default=[12345], help="one run per seed")
    add("--dropout", type=float, default=0.0, help="rate; 0 suits short runs")
    add("--max_seq_length", type=int, default=128)
    add("--max_predictions_per_seq", type=int, default=20)
    add(
        "--max_heldout_rows",
        type=int,
        default=2048,
        help="first held-out rows to evaluate",
    )
    add(
        "--config_overrides",
        default="initializer_range=0.06,position_initializer=sinusoidal",
        help="initialization of bert_tf; empty: as the peers'",
    )
    add("--peers", default=",".join(PEERS), help="peers to run, in order")
    add(
        "--hugging_face_python",
        default=sys.executable,
        help="Python with transformers and torch",
    )
    return parser.parse_args()


def main():
    """Prepares the data, runs every peer and prints the table."""
    given = arguments()
    os.makedirs(given.output_dir, exist_ok=True)
    task = prepare(given)
    rates = rates_of_peers(given)
    runs = []
    # A seed is finished for all peers before the next one starts.
    for seed in given.seeds:
        for peer in rates:
            for rate in rates[peer]:
                runs.append(run_peer(given, task, peer, rate, seed))
                print(json.dumps(runs[-1]), flush=True)
    print(table(given, runs))


def rates_of_peers(given):
    """Returns {peer: its learning rates}, in the order of `--peers`."""
    rates = {peer: [given.learning_rate] for peer in given.peers.split(",")}
    for text in given.rates:
        peer, _, numbers = text.partition("=")
        if peer not in rates or not numbers:
            sys.exit(
                f"--rates {text}: expected PEER=RATE,RATE with a peer of --peers "
                f"({given.peers})."
            )
        rates[peer] = [float(number) for number in numbers.split(",")]
    return rates


def prepare(given):
    """Writes records and arrays. Returns the task, without rate and seed."""
    flags = [
        f"--max_seq_length={given.max_seq_length}",
        f"--max_predictions_per_seq={given.max_predictions_per_seq}",
        f"--vocab_file={given.vocab_file}",
        "--nonext_sentence",
        "--short_seq_prob=0",
        "--dupe_factor=1",
        "--num_workers=2",
    ]
    train = os.path.join(given.output_dir, "train.tfrecord")
    heldout = os.path.join(given.output_dir, "heldout.tfrecord")
    for text, path in ((given.train_text, train), (given.heldout_text, heldout)):
        if not os.path.exists(path):
            create(f"--input_file={text}", path, *flags)
    with open(given.vocab_file, encoding="utf-8") as file:
        vocabulary = file.read().split("\n")[:-1]
    task = {
        **vars(given),
        "train_records": train,
        "heldout_records": heldout,
        "arrays": os.path.join(given.output_dir, "arrays.npz"),
        "vocab_size": len(vocabulary),
        "mask_id": vocabulary.index("[MASK]"),
        "special_ids": [vocabulary.index(token) for token in ("[CLS]", "[SEP]")],
        "config": training_step.config_of(
            given.num_hidden_layers,
            given.hidden_size,
            vocab_size=len(vocabulary),
            dropout=given.dropout,
            positions=given.max_seq_length,
        ),
    }
    print(run_process(sys.executable, "arrays", task))
    return task


def create(text, records, *flags):
    """Runs create_pretraining_data."""
    tool = report.ROOT / "tools" / "create_pretraining_data.py"
    command = [sys.executable, tool, text, f"--output_file={records}", *flags]
    subprocess.run(command, check=True)


def run_peer(given, task, peer, rate, seed):
    """Returns the result of one run, which is made if it is not there yet."""
    task = task | {"learning_rate": rate, "seed": seed}
    name = f"{peer}-{rate:g}-{seed}"
    # What the other runs are, such as which rates they have, changes nothing.
    listed = ("rates", "seeds", "peers", "hugging_face_python")
    settings = {key: value for key, value in task.items() if key not in listed}
    result_file = os.path.join(given.output_dir, f"{name}.json")
    if os.path.exists(result_file):
        with open(result_file, encoding="utf-8") as file:
            result = json.load(file)
        if result["settings"] == settings:
            return result
    run_dir = os.path.join(given.output_dir, name)
    os.makedirs(run_dir, exist_ok=True)
    python = given.hugging_face_python if peer == "hugging_face" else sys.executable
    before = os.getloadavg()[0]
    result = run_process(python, peer, task | {"output_dir": run_dir})
    result |= {
        "peer": peer,
        "learning_rate": rate,
        "seed": seed,
        "settings": settings,
        "load_before": before,
        "load_after": os.getloadavg()[0],
    }
    with open(result_file, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
    return result


def run_process(python, peer, task):
    """Returns the result of a peer of `learning_peers.py`."""
    script, env = learning_peers.__file__, report.KEEPS_MEMORY
    return report.result_of_peer(script, peer, task, python=python, env=env)


def table(given, runs):
    """Returns the results as a table in Markdown, means over the seeds."""
    lines = [
        f"{given.num_hidden_layers} layers, width {given.hidden_size}, batch "
        f"{given.batch_size} × {given.max_seq_length}, {given.minutes:g} minutes each, "
        f"means of the seeds {', '.join(map(str, given.seeds))}; bert_tf with "
        f"{given.config_overrides or 'its own configuration'}:",
        "",
        f"| | rate | {' | '.join(COLUMNS).replace('_', ' ')} |",
        f"|---|---|{'---|' * len(COLUMNS)}",
    ]
    losses = {}
    for peer, rates in rates_of_peers(given).items():
        for rate in rates:
            several = [
                one
                for one in runs
                if (one["peer"], one["learning_rate"]) == (peer, rate)
            ]
            cells = [mean_of([one[column] for one in several]) for column in COLUMNS]
            lines.append(f"| {peer} | {rate:g} | {' | '.join(cells)} |")
            loss = statistics.mean(one["masked_lm_loss"] for one in several)
            losses[peer] = min(loss, losses.get(peer, math.inf))
    ours = losses.pop("bert_tf", None)
    if ours is not None and losses:
        best = min(losses, key=losses.get)
        lines.append(
            f"\nbert_tf is {losses[best] - ours:.3f} nats below the best other library "
            f"({best}), each with its best rate."
        )
    return "\n".join(lines)


def mean_of(values):
    """Returns the mean of numbers, or all different texts."""
    if isinstance(values[0], str):
        return ", ".join(sorted(set(values)))
    return f"{statistics.mean(values):.4g}"


if __name__ == "__main__":
    main()
