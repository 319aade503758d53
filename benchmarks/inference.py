"""Compares the speed of sentence vectors with other libraries.

Every library computes the vectors of the same texts with the same encoder: all texts in
one call, which it may sort and batch as it likes, and then single texts. Vectors are
compared with those of sentence-transformers in float32.

    python benchmarks/inference.py --model=all-MiniLM-L6-v2 --squad_file=dev-v1.1.json

OpenVINO takes part if it is installed in both environments (`make benchmark-inference`
installs it).
"""

import json
import pathlib
import random
import statistics
import sys
import tempfile

import numpy as np
import report

REFERENCE = "sentence-transformers, float32"
TITLES = [
    *("library", "texts per second"),
    *("ratio to sentence-transformers in the same dtype", "one text, ms"),
    *("peak memory, GB", "largest difference of a vector's component"),
]
NUM_SINGLE = 15  # Texts that are computed one at a time.
MAX_LENGTH = 256
FLOATS = ("float32", "bfloat16")
# Library, peer, backend, package that it needs, dtypes.
LIBRARIES = [
    ("bert_tf", "bert_tf", "tensorflow", "tensorflow", FLOATS),
    ("bert_tf with OpenVINO", "bert_tf", "openvino", "openvino", FLOATS),
    ("sentence-transformers", "sentence_transformers", None, "torch", FLOATS),
    ("OpenVINO", "openvino", None, "openvino", FLOATS),
]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add(
        "--model",
        default="sentence-transformers/all-MiniLM-L6-v2",
        help="folder or name of a sentence encoder",
    )
    add("--squad_file", help="SQuAD file: as many paragraphs as questions of it")
    add("--input_file", default=str(report.SAMPLE), help="texts, one per line")
    add("--num_texts", type=int, default=1500)
    add("--num_rounds", type=int, default=5, help="measurements of each library")
    add("--only", nargs="+", help="parts of the names of the libraries to measure")
    return parser.parse_args()


def main():
    """Measures every library and writes the rows."""
    args = arguments()
    texts = read_texts(args)
    with tempfile.TemporaryDirectory() as folder:
        texts_file = pathlib.Path(folder, "texts.json")
        texts_file.write_text(json.dumps(texts), encoding="utf-8")
        task = {"model": args.model, "texts_file": str(texts_file)}
        peers, vectors_files = start_peers(task, folder, args.only)
        rounds = report.interleave(peers, args.num_rounds)
        vectors = {name: np.load(path) for name, path in vectors_files.items()}
        peaks = {name: peer.close() for name, peer in peers.items()}
    characters = statistics.mean(map(len, texts))
    print(f"{len(texts)} texts with {characters:.0f} characters on average")
    report.write_table(
        "Inference",
        TITLES,
        rows_of(rounds, len(texts), vectors, peaks),
        num_keys=1,
        versions=report.all_versions(peers),
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


def start_peers(task, folder, only):
    """Returns {name: Peer} and {name: path of its vectors}."""
    peers, vectors_files = {}, {}
    for library, peer, backend, package, dtypes in LIBRARIES:
        python = sys.executable if peer == "bert_tf" else report.peers_python()
        for dtype in dtypes:
            name = f"{library}, {dtype}"
            if only and not any(part in name for part in only):
                continue
            if not report.has_package(python, package):
                print(f"{name} is left out: {python} has no {package}.")
                continue
            vectors_files[name] = pathlib.Path(folder, f"{name}.npy")
            settings = {"dtype": dtype, "backend": backend}
            settings["vectors_file"] = str(vectors_files[name])
            peers[name] = report.start(
                *(__file__, peer, task | settings),
                python=python,
                env=report.KEEPS_MEMORY,
            )
    return peers, vectors_files


def rows_of(rounds, num_texts, vectors, peaks):
    """Returns the rows of the table."""
    speeds = {
        name: [num_texts / one["seconds"] for one in measured]
        for name, measured in rounds.items()
    }
    rows = []
    for name, measured in rounds.items():
        peer = f"sentence-transformers, {name.split(', ')[1]}"
        ratio = difference = None
        if peer in speeds:
            ratio = statistics.median(speeds[name]) / statistics.median(speeds[peer])
        if REFERENCE in vectors:
            largest = np.abs(vectors[name] - vectors[REFERENCE]).max()
            difference = f"{largest:.1e}"
        single = report.median_and_spread([one["one_ms"] for one in measured], 1)
        speed = report.median_and_spread(speeds[name], 0)
        rows.append([name, speed, ratio, single, peaks[name] / 1e9, difference])
    return rows


def serve(task, embed, *packages):
    """Warms up, writes the vectors, and answers the driver.

    Args:
        task: names the files of texts and vectors.
        embed: from a list of texts to an array [N, H].
        *packages: whose versions are reported.
    """
    texts = json.loads(pathlib.Path(task["texts_file"]).read_text(encoding="utf-8"))
    np.save(task["vectors_file"], np.asarray(embed(texts), np.float32))

    def measure():
        seconds = report.seconds_of(embed, texts)
        single = [report.seconds_of(embed, [text]) for text in texts[:NUM_SINGLE]]
        return {"seconds": seconds, "one_ms": 1000 * statistics.median(single)}

    report.serve(measure, versions=report.versions(*packages))


def serve_bert_tf(task):
    """Serves this package, with TensorFlow or with OpenVINO."""
    import bert_tf

    encoder = bert_tf.load(
        task["model"], head="encoder", dtype=task["dtype"], backend=task["backend"]
    )
    packages = ["tensorflow", "tensorflow-text", "keras"]
    if task["backend"] == "openvino":
        packages.append("openvino")
    serve(task, encoder.embed, *packages)


def embedder(library, model, dtype="float32"):
    """Returns a function from a list of texts to vectors [N, H].

    Args:
        library: "sentence_transformers" or "openvino".
        model: folder or name of the encoder.
        dtype: "float32" or "bfloat16".
    """
    import torch

    torch.set_num_threads(report.num_cores())
    if library == "sentence_transformers":
        return sentence_transformers_embedder(model, getattr(torch, dtype))
    return openvino_embedder(model, dtype)


def sentence_transformers_embedder(model, dtype):
    """Returns the library's own function, which sorts the texts by length."""
    import sentence_transformers

    encoder = sentence_transformers.SentenceTransformer(
        model, device="cpu", model_kwargs={"dtype": dtype}
    )

    def embed(texts):
        return encoder.encode(texts, batch_size=32, normalize_embeddings=True)

    return embed


def openvino_embedder(model, dtype):
    """Returns a converted transformers model, in sorted batches of 32 texts."""
    import openvino
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    encoder = transformers.AutoModel.from_pretrained(model).eval()
    example = dict(tokenizer(["one", "two"], return_tensors="pt"))
    precision = {"float32": "f32", "bfloat16": "bf16"}[dtype]
    compiled = openvino.compile_model(
        openvino.convert_model(encoder, example_input=example),
        "CPU",
        {"INFERENCE_PRECISION_HINT": precision},
    )
    columns = ("input_ids", "attention_mask", "token_type_ids")

    def embed(texts):
        order = np.argsort([-len(text) for text in texts], kind="stable")
        vectors = []
        for start in range(0, len(texts), 32):
            features = tokenizer(
                [texts[number] for number in order[start : start + 32]],
                padding=True,
                truncation=True,
                max_length=MAX_LENGTH,
                return_tensors="np",
            )
            states = compiled({name: features[name] for name in columns})[0]
            weights = features["attention_mask"][:, :, None].astype(np.float32)
            means = (states * weights).sum(axis=1) / weights.sum(axis=1)
            vectors.append(means / np.linalg.norm(means, axis=1, keepdims=True))
        return np.concatenate(vectors)[np.argsort(order)]

    return embed


def serve_library(library, *packages):
    """Returns a peer that serves another library."""

    def serve_task(task):
        embed = embedder(library, task["model"], task["dtype"])
        serve(task, embed, "torch", "transformers", *packages)

    return serve_task


if __name__ == "__main__":
    report.run(
        main,
        bert_tf=serve_bert_tf,
        sentence_transformers=serve_library(
            "sentence_transformers", "sentence-transformers"
        ),
        openvino=serve_library("openvino", "openvino"),
    )
