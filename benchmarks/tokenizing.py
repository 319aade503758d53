"""Compares the speed of `InGraphTokenizer` with Hugging Face's fast tokenizer.

Each file is tokenized in one call, one text per line, without truncation. The table
also says for how many lines both give the same ids.

    make benchmark-tokenizing
    python benchmarks/tokenizing.py --vocab_file=vocab.txt --input_files en.txt zh.txt
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import report

SCRIPTS = report.ROOT / "benchmarks"
SAMPLE = report.ROOT / "bert_tf" / "sample_data" / "corpus.txt"
OURS = "bert_tf"
THEIRS = "Hugging Face"
TITLES = ["file", "MB", OURS, THEIRS, "ratio of the medians", "lines with equal ids"]


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--vocab_file", help="default: a vocabulary that is learned from the sample")
    add("--cased", action="store_true", help="the vocabulary is cased")
    add("--input_files", nargs="+", default=[str(SAMPLE)], help="texts, one per line")
    add("--num_rounds", type=int, default=7, help="measurements of each library")
    return parser.parse_args()


def main():
    """Measures each file and writes the section."""
    args = arguments()
    rows, speeds, versions = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        task = {
            "vocab_file": args.vocab_file or learned_vocabulary(folder),
            "do_lower_case": not args.cased,
        }
        for path in args.input_files:
            task["input_file"] = path
            rows.append(compared(task, folder, args.num_rounds, versions, speeds))
    report.write_section(
        "Tokenizing",
        f"{report.table(TITLES, rows)}\n\n"
        "Megabytes of text per second: median (smallest to largest).",
        all_versions=versions,
        bars={"megabytes per second": speeds},
    )


def learned_vocabulary(folder):
    """Learns a vocabulary from the sample with the tool. Returns its path."""
    path = str(pathlib.Path(folder, "vocab.txt"))
    tool = [sys.executable, "-m", "tools.build_vocabulary"]
    flags = [f"--input_file={SAMPLE}", f"--output_file={path}", "--vocab_size=2000"]
    subprocess.run([*tool, *flags], check=True, cwd=report.ROOT)
    return path


def compared(task, folder, num_rounds, versions, all_speeds):
    """Returns a file's row of the table; adds to `versions` and `all_speeds`."""

    def peer(name, python, script):
        ids_file = pathlib.Path(folder, f"{name}.json")
        arguments = json.dumps({**task, "ids_file": str(ids_file)})
        return report.Peer([python, SCRIPTS / script, arguments]), ids_file

    peers, ids = {}, []
    for name, python, script in [
        (OURS, sys.executable, "tokenizing_bert_tf.py"),
        (THEIRS, report.peers_python(), "tokenizing_hugging_face.py"),
    ]:
        peers[name], ids_file = peer(name, python, script)
        versions.update(peers[name].facts["versions"])
        ids.append(json.loads(ids_file.read_text(encoding="utf-8")))
    rounds = report.interleave(peers, num_rounds)
    size = pathlib.Path(task["input_file"]).stat().st_size / 1e6
    speeds = {
        name: [size / measured["seconds"] for measured in rounds[name]]
        for name in peers
    }
    for process in peers.values():
        process.close()
    file_name = pathlib.Path(task["input_file"]).name
    all_speeds |= {f"{file_name}, {name}": speeds[name] for name in peers}
    medians = [statistics.median(values) for values in speeds.values()]
    return [
        file_name,
        size,
        *(report.median_and_spread(values, 1) for values in speeds.values()),
        medians[0] / medians[1],
        f"{statistics.mean(a == b for a, b in zip(*ids, strict=True)):.2%}",
    ]


if __name__ == "__main__":
    main()
