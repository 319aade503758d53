"""Compares the speed of `InGraphTokenizer` with Hugging Face's fast tokenizer.

Each file is tokenized in one call, one text per line, without truncation. The table
also says for how many lines both give the same ids.

    make benchmark-tokenizing
    python benchmarks/tokenizing.py --vocab_file=vocab.txt --input_files en.txt zh.txt
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import report

OURS, THEIRS = "bert_tf", "Hugging Face"
TITLES = ["file", "MB", OURS, THEIRS, "ratio", "lines with equal ids"]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--vocab_file", help="default: a vocabulary that is learned from the sample")
    add("--cased", action="store_true", help="the vocabulary is cased")
    add("--input_files", nargs="+", default=[str(report.SAMPLE)], help="lines of text")
    add("--num_rounds", type=int, default=7, help="measurements of each library")
    return parser.parse_args()


def main():
    """Measures each file and writes its row."""
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        task = {
            "vocab_file": args.vocab_file or learned_vocabulary(folder),
            "do_lower_case": not args.cased,
        }
        for path in args.input_files:
            measure(task | {"input_file": path}, folder, args.num_rounds)


def learned_vocabulary(folder):
    """Learns a vocabulary from the sample with the tool. Returns its path."""
    path = str(pathlib.Path(folder, "vocab.txt"))
    tool = [sys.executable, "-m", "tools.build_vocabulary"]
    flags = [f"--input_file={report.SAMPLE}", f"--vocab_file={path}"]
    subprocess.run([*tool, *flags, "--vocab_size=2000"], check=True, cwd=report.ROOT)
    return path


def measure(task, folder, num_rounds):
    """Measures one file and writes its row."""
    peers, ids = {}, []
    for name, peer, python in [
        (OURS, "bert_tf", sys.executable),
        (THEIRS, "hugging_face", report.peers_python()),
    ]:
        ids_file = pathlib.Path(folder, f"{peer}.json")
        settings = task | {"ids_file": str(ids_file)}
        peers[name] = report.start(__file__, peer, settings, python=python)
        ids.append(json.loads(ids_file.read_text(encoding="utf-8")))
    rounds = report.interleave(peers, num_rounds)
    path = pathlib.Path(task["input_file"])
    size = path.stat().st_size / 1e6
    speeds = {name: [size / one["seconds"] for one in rounds[name]] for name in peers}
    for process in peers.values():
        process.close()
    ours, theirs = (statistics.median(values) for values in speeds.values())
    equal = statistics.mean(a == b for a, b in zip(*ids, strict=True))
    row = [path.name, size]
    row += [report.median_and_spread(values, 1) for values in speeds.values()]
    report.write_table(
        "Tokenizing",
        TITLES,
        [[*row, ours / theirs, f"{equal:.2%}"]],
        num_keys=1,
        versions=report.all_versions(peers),
    )


def serve(task, tokenize, ids_of, *packages):
    """Tokenizes once, writes the ids, and answers the driver."""
    pathlib.Path(task["ids_file"]).write_text(
        json.dumps(ids_of(tokenize())), encoding="utf-8"
    )

    report.serve(
        lambda: {"seconds": report.seconds_of(tokenize)},
        versions=report.versions(*packages),
    )


def read_lines(task):
    """Returns the texts of the task."""
    return pathlib.Path(task["input_file"]).read_text(encoding="utf-8").split("\n")


def serve_bert_tf(task):
    """Serves `InGraphTokenizer` of this package."""
    import tensorflow as tf

    from bert_tf.tokenization import in_graph

    texts = tf.constant(read_lines(task))
    tokenizer = in_graph.InGraphTokenizer(
        task["vocab_file"], do_lower_case=task["do_lower_case"]
    )
    serve(
        task,
        lambda: tokenizer.tokenize(texts),
        lambda ids: ids.to_list(),
        *("tensorflow", "tensorflow-text"),
    )


def serve_hugging_face(task):
    """Serves the fast tokenizer of the tokenizers library."""
    import tokenizers

    texts = read_lines(task)
    tokenizer = tokenizers.BertWordPieceTokenizer(
        task["vocab_file"], lowercase=task["do_lower_case"]
    )._tokenizer
    # As in the release. By default, words of more than 100 characters become [UNK], and
    # Thai text without blanks has many of them.
    tokenizer.model.max_input_chars_per_word = 200
    serve(
        task,
        lambda: tokenizer.encode_batch_fast(texts, add_special_tokens=False),
        lambda encodings: [encoding.ids for encoding in encodings],
        "tokenizers",
    )


if __name__ == "__main__":
    report.run(main, bert_tf=serve_bert_tf, hugging_face=serve_hugging_face)
