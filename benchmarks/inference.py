"""Compares the speed of sentence vectors with other libraries.

Every library computes the vectors of the same texts with the same encoder: all texts in
one call, which it may sort and batch as it likes, and then single texts. Vectors are
compared with those of sentence-transformers in float32.

    python benchmarks/inference.py --model=all-MiniLM-L6-v2 --squad_file=dev-v1.1.json

OpenVINO takes part if it is installed in both environments (`make benchmark-inference`
installs it), and its int8 weights if nncf is installed beside this package.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import report

SCRIPTS = report.ROOT / "benchmarks"
SAMPLE = report.ROOT / "bert_tf" / "sample_data" / "corpus.txt"
REFERENCE = "sentence-transformers, float32"
TITLES = [
    "library",
    "texts per second",
    "ratio to sentence-transformers in the same dtype",
    "one text, ms",
    "peak memory, GB",
    "largest difference of a vector's component",
]


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add(
        "--model",
        default="sentence-transformers/all-MiniLM-L6-v2",
        help="folder or name of a sentence encoder",
    )
    add("--squad_file", help="SQuAD file: as many paragraphs as questions of it")
    add("--input_file", default=str(SAMPLE), help="texts, one per line")
    add("--num_texts", type=int, default=1500)
    add("--num_rounds", type=int, default=5, help="measurements of each library")
    add("--only", nargs="+", help="parts of the names of the libraries to measure")
    return parser.parse_args()


def main():
    """Measures every library and writes the section."""
    args = arguments()
    texts = read_texts(args)
    with tempfile.TemporaryDirectory() as folder:
        texts_file = pathlib.Path(folder, "texts.json")
        texts_file.write_text(json.dumps(texts), encoding="utf-8")
        task = {"model": args.model, "texts_file": str(texts_file)}
        peers, vectors_files = started(task, folder, args.only)
        rounds = report.interleave(peers, args.num_rounds)
        vectors = {name: np.load(path) for name, path in vectors_files.items()}
        peaks = {name: peer.close() for name, peer in peers.items()}
    mean_length = statistics.mean(map(len, texts))
    report.write_section(
        "Inference",
        f"{report.table(TITLES, table_rows(rounds, len(texts), vectors, peaks))}\n\n"
        f"{pathlib.Path(args.model).name} on {len(texts)} texts with {mean_length:.0f} "
        "characters on average: median (smallest to largest).",
        all_versions={
            name: version
            for peer in peers.values()
            for name, version in peer.facts["versions"].items()
        },
        bars={
            "texts per second": {
                name: [len(texts) / one["seconds"] for one in found]
                for name, found in rounds.items()
            },
            "one text, ms": {
                name: [one["one_ms"] for one in found] for name, found in rounds.items()
            },
        },
    )


def read_texts(args):
    """Returns texts of mixed length, in random order."""
    generator = random.Random(7)
    if not args.squad_file:
        text = pathlib.Path(args.input_file).read_text(encoding="utf-8")
        lines = [line for line in text.split("\n") if line.strip()]
        return generator.choices(lines, k=args.num_texts)
    text = pathlib.Path(args.squad_file).read_text(encoding="utf-8")
    paragraphs = [
        paragraph
        for article in json.loads(text)["data"]
        for paragraph in article["paragraphs"]
    ]
    contexts = [paragraph["context"] for paragraph in paragraphs]
    questions = [row["question"] for one in paragraphs for row in one["qas"]]
    half = args.num_texts // 2
    texts = generator.sample(contexts, half)
    texts += generator.sample(questions, args.num_texts - half)
    generator.shuffle(texts)
    return texts


def started(task, folder, only):
    """Returns {name: Peer} and {name: path of its vectors}."""
    ours = ("inference_bert_tf.py", sys.executable)
    theirs = ("inference_{}.py", report.peers_python())
    peers, vectors_files = {}, {}
    floats = ("float32", "bfloat16")
    for library, (script, python), backend, needs, dtypes in [
        ("bert_tf", ours, "tensorflow", "tensorflow", floats),
        ("bert_tf with OpenVINO", ours, "openvino", "openvino", floats),
        ("bert_tf with OpenVINO", ours, "openvino", "nncf", ["int8"]),
        ("sentence-transformers", theirs, "sentence_transformers", "torch", floats),
        ("Hugging Face", theirs, "hugging_face", "torch", floats),
        ("OpenVINO", theirs, "openvino", "openvino", floats),
    ]:
        for dtype in dtypes:
            name = f"{library}, {dtype}"
            if only and not any(part in name for part in only):
                continue
            if not has_package(python, needs):
                print(f"{name} is left out: {python} has no {needs}.")
                continue
            vectors_files[name] = pathlib.Path(folder, f"{name}.npy")
            values = {
                **task,
                "dtype": dtype,
                "backend": backend,
                "vectors_file": str(vectors_files[name]),
            }
            path = SCRIPTS / script.format(backend)
            peers[name] = report.Peer(
                [python, path, json.dumps(values)], report.KEEPS_MEMORY
            )
    return peers, vectors_files


def has_package(python, name):
    """Returns whether a Python has a package."""
    code = (
        f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({name!r}))"
    )
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def table_rows(rounds, num_texts, vectors, peaks):
    """Returns the rows of the table."""
    speeds = {
        name: [num_texts / one["seconds"] for one in found]
        for name, found in rounds.items()
    }
    rows = []
    for name, found in rounds.items():
        peer = f"sentence-transformers, {name.split(', ')[1]}"
        ratio = difference = None
        if peer in speeds:
            ratio = statistics.median(speeds[name]) / statistics.median(speeds[peer])
        if REFERENCE in vectors:
            largest = np.abs(vectors[name] - vectors[REFERENCE]).max()
            difference = f"{largest:.1e}"
        rows.append(
            [
                name,
                report.median_and_spread(speeds[name], 0),
                ratio,
                report.median_and_spread([one["one_ms"] for one in found], 1),
                peaks[name] / 1e9,
                difference,
            ]
        )
    return rows


if __name__ == "__main__":
    main()
