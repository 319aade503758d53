"""Compares SQuAD's preparation and post-processing with Hugging Face's scripts.

Two stages are measured: the windows of all training questions, from the JSON file to
arrays, and the answers to all questions of the dev file, from scores of windows (here
random ones) to texts. Hugging Face's stages are also measured with Python collecting
garbage as rarely as in this package's commands, which its scripts do not set.

    python benchmarks/squad.py --vocab_file=vocab.txt --train_file=train-v1.1.json \\
        --dev_file=dev-v1.1.json
"""

import argparse
import json
import statistics
import sys

import report

SCRIPTS = report.ROOT / "benchmarks"
OURS = "bert_tf"
THEIRS = "Hugging Face"
THEIRS_TUNED = "Hugging Face, rare garbage collection"
STAGES = {
    "features_seconds": "windows of the training questions, seconds",
    "answers_seconds": "answers to the dev questions, seconds",
}


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--vocab_file", required=True, help="vocabulary of an uncased model")
    add("--train_file", required=True, help="train-v1.1.json")
    add("--dev_file", required=True, help="dev-v1.1.json")
    add("--num_rounds", type=int, default=5, help="measurements of each library")
    return parser.parse_args()


def main():
    """Measures both libraries and writes the section."""
    args = arguments()
    task = {
        "vocab_file": args.vocab_file,
        "train_file": args.train_file,
        "dev_file": args.dev_file,
        "max_seq_length": 384,
        "doc_stride": 128,
        "n_best_size": 20,
        "max_answer_length": 30,
    }
    peers = {
        OURS: report.Peer(
            [sys.executable, SCRIPTS / "squad_bert_tf.py", json.dumps(task)]
        ),
    }
    for name in (THEIRS, THEIRS_TUNED):
        settings = json.dumps(task | {"collects_rarely": name == THEIRS_TUNED})
        peers[name] = report.Peer(
            [report.peers_python(), SCRIPTS / "squad_hugging_face.py", settings]
        )
    rounds = report.interleave(peers, args.num_rounds)
    rows = []
    for stage, title in STAGES.items():
        seconds = {name: [one[stage] for one in rounds[name]] for name in peers}
        medians = {name: statistics.median(seconds[name]) for name in peers}
        cells = [report.median_and_spread(seconds[name], 2) for name in peers]
        ratios = (medians[name] / medians[OURS] for name in (THEIRS, THEIRS_TUNED))
        rows.append([title, *cells, *ratios])
    counts = {name: rounds[name][0]["num_windows"] for name in peers}
    memory = {name: f"{peer.close() / 1e9:.1f} GB" for name, peer in peers.items()}
    rows.append(["windows of the training questions", *counts.values(), None, None])
    rows.append(["peak memory", *memory.values(), None, None])
    report.write_section(
        "SQuAD",
        f"{report.table(['', *peers, 'ratio', 'ratio, rare'], rows)}\n\n"
        "Median (smallest to largest). Hugging Face's stages are those of its "
        "`run_qa.py`, with the fast tokenizer on all cores: as its users run it, and "
        "with garbage collection as rare as in this package's commands.",
        all_versions={
            name: version
            for peer in peers.values()
            for name, version in peer.facts["versions"].items()
        },
        bars={
            title: {name: [one[stage] for one in rounds[name]] for name in peers}
            for stage, title in STAGES.items()
        },
    )


if __name__ == "__main__":
    main()
