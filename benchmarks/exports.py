"""Compares the kinds of exports: size, speed, score and answers of the same models.

Every kind computes the model for the predictors of this package, so tokenization and
windows are the same. The kinds take turns, and each turn is a process of its own, so
that only one model is in memory. The answers are compared with those of the model that
was exported, and those to single texts with those to the same texts in batches.

    python benchmarks/exports.py --mrpc_run=runs/mrpc --mrpc_file=MRPC/dev.tsv \
      --sst_run=runs/sst --sst_file=SST-2/dev.tsv \
      --names_run=runs/names --names_file=names/dev.txt \
      --sts_run=all-MiniLM-L6-v2 --sts_file=STS-B/dev.tsv \
      --squad_run=runs/squad --squad_file=dev-v1.1.json

A run is a fine-tuned model of that task; for STS-B it is a sentence encoder, whose
vectors are compared. The speed is that of the first task. LiteRT, ONNX and OpenVINO
take part if they are installed.
"""

import csv
import importlib.util
import json
import os
import pathlib
import statistics
import tempfile

import numpy as np
import report

# Task -> title of its score, and the key of what is compared in an answer.
TASKS = {
    "mrpc": ("MRPC accuracy", "label"),
    "sst": ("SST-2 accuracy", "label"),
    "names": ("names, accuracy per word", "tags"),
    "sts": ("STS-B Spearman", "embedding"),
    "squad": ("SQuAD F1", "answer"),
}
MAX_SEQ_LENGTH = 128
NUM_ALONE = 200  # Texts that are also computed one at a time.
PYTHON = "the exported model"
# Title -> format, dtype of the file, and OpenVINO's precision.
KINDS = {
    PYTHON: ("python", "float32", None),
    "SavedModel": ("saved_model", "float32", None),
    "SavedModel, bfloat16": ("saved_model", "bfloat16", None),
    "LiteRT": ("litert", "float32", None),
    "LiteRT, int8": ("litert", "int8", None),
    "ONNX": ("onnx", "float32", None),
    "ONNX, int8": ("onnx", "int8", None),
    "OpenVINO, computes in float32": ("openvino", "float32", "f32"),
    "OpenVINO, computes in bfloat16": ("openvino", "float16", "bf16"),
    "OpenVINO, int8": ("openvino", "int8", "bf16"),
}
PACKAGES = {
    "saved_model": ("tensorflow", "tensorflow"),
    "litert": ("ai_edge_litert", "ai-edge-litert"),
    "onnx": ("onnxruntime", "onnxruntime"),
    "openvino": ("nncf", "openvino"),
}


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    for task in TASKS:
        parser.add_argument(f"--{task}_run", help="output_dir of the fine-tuning")
        parser.add_argument(f"--{task}_file", help="file with the dev set")
    parser.add_argument("--num_rounds", type=int, default=3, help="0: no speeds")
    parser.add_argument("--num_texts", type=int, default=872, help="texts per task")
    return parser.parse_args()


def main():
    """Exports and measures every kind, and writes the rows."""
    args = arguments()
    tasks = [task for task in TASKS if getattr(args, f"{task}_run")]
    formats = [name for name in PACKAGES if importlib.util.find_spec(PACKAGES[name][0])]
    kinds = [title for title, (form, *_) in KINDS.items() if form in formats]
    turns = {title: [] for title in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            take_turn(args, folder, task, PYTHON)
        for index in range(max(1, args.num_rounds)):
            start = index % len(kinds)
            for title in kinds[start:] + kinds[:start]:
                # The other tasks have only scores.
                for task in tasks if index == 0 else tasks[:1]:
                    turns[title].append(take_turn(args, folder, task, title))
                    print(title, turns[title][-1], flush=True)
    titles = [TASKS[task][0] for task in tasks]
    rows = rows_of(turns, "differences", len(tasks))
    print(report.table(["different answers", "MB", *tasks], rows))
    if not args.num_rounds:
        return
    rows = rows_of(turns, "score", len(tasks))
    for row in rows:
        of_first = [turn for turn in turns[row[0]] if turn["task"] == tasks[0]]
        speeds = [speed for turn in of_first for speed in turn["speeds"]]
        row.insert(2, report.median_and_spread(speeds, 0))
    report.write_table(
        "Exports",
        ["export", "MB", "texts per second", *titles],
        rows,
        num_keys=1,
        versions=report.versions("bert_tf", *(PACKAGES[name][1] for name in formats)),
    )


def rows_of(turns, name, num_tasks):
    """Returns a row for each kind: its size and a figure of each task."""
    return [
        [title, several[0]["megabytes"], *(one[name] for one in several[:num_tasks])]
        for title, several in turns.items()
    ]


def take_turn(args, folder, task, title):
    """Returns size, score and speeds of a kind, which is exported if necessary."""
    settings = {
        "task": task,
        "title": title,
        "run": getattr(args, f"{task}_run"),
        "file": getattr(args, f"{task}_file"),
        "num_texts": args.num_texts,
        "num_passes": 3 * bool(args.num_rounds),
        "export_dir": f"{folder}/{task}/{title}/1",
        "expected_file": f"{folder}/{task}.npy",
    }
    # OpenVINO was several times slower in a process that had exported the model.
    turn = {"task": task} | report.result_of_peer(__file__, "export", settings)
    return turn | report.result_of_peer(__file__, "measure", settings)


def options_of(run):
    """Returns how a model is loaded: a run says it, a checkpoint is an encoder."""
    is_run = os.path.exists(f"{run}/run.json")
    return {} if is_run else {"head": "encoder", "max_seq_length": MAX_SEQ_LENGTH}


def export_model(settings):
    """Exports a model that does not exist yet, and prints the size of its files."""
    from bert_tf.serving import export
    from bert_tf.serving import options as serving_options

    form, dtype, _ = KINDS[settings["title"]]
    folder = pathlib.Path(settings["export_dir"])
    if form in RUNTIMES and not folder.exists():
        options = options_of(settings["run"])
        options["init_checkpoint" if options else "output_dir"] = settings["run"]
        options |= {"export_dir": str(folder), "format": form, "dtype": dtype}
        export.run(serving_options.ExportSavedModelOptions(**options))
    names = ("saved_model.pb", "model.*", "variables/*")
    paths = [path for name in names for path in folder.glob(name)]
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    print(json.dumps({"megabytes": f"{megabytes:.1f}"}))


def measure(settings):
    """Prints the score, the differences and the speeds of a model."""
    inputs, score = DATA[settings["task"]](settings["file"], settings["num_texts"])
    predict = predictor_of(settings)
    answers = predict(inputs)
    if settings["title"] == PYTHON:
        np.save(settings["expected_file"], answers)
    alone = np.concatenate([predict([one]) for one in inputs[:NUM_ALONE]])
    differences = [
        difference(answers, np.load(settings["expected_file"])),
        difference(alone, answers[: len(alone)]),
    ]
    passes = range(settings["num_passes"])
    speeds = [len(inputs) / report.seconds_of(predict, inputs) for _ in passes]
    figures = {"score": f"{score(answers):.3f}", "differences": "; ".join(differences)}
    print(json.dumps({**figures, "speeds": speeds}))


def difference(answers, others):
    """Returns the share of different answers, or vectors' least and median cosine."""
    if answers.ndim == 1:
        return f"{np.mean(answers != others):.2%}"
    cosines = np.sum(answers * others, axis=1)  # Of length 1.
    return f"{np.min(cosines):.4f}, {np.median(cosines):.4f}"


def predictor_of(settings):
    """Returns the function from inputs to an array of answers, computed by a kind."""
    import bert_tf

    form, _, precision = KINDS[settings["title"]]
    predictor = bert_tf.load(settings["run"], **options_of(settings["run"]))
    if form in RUNTIMES:
        compute = RUNTIMES[form](settings["export_dir"], precision)

        def outputs(features):
            # An encoder that is not exported needs no segments.
            features = {"segment_ids": 0 * features["input_ids"], **features}
            values = compute({n: np.asarray(x, np.int32) for n, x in features.items()})
            return values.get("logits", values.get("embedding", values))

        predictor._compiled = lambda *_: outputs
    key = TASKS[settings["task"]][1]

    def predict(inputs):
        answers = [answer[key] for answer in predictor.predict(inputs)]
        return np.concatenate(answers) if key == "tags" else np.asarray(answers)

    return predict


def saved_model(path, _):
    """Returns the function of a SavedModel."""
    import tensorflow as tf

    model = tf.saved_model.load(path)

    def compute(features):
        tensors = {name: tf.constant(value) for name, value in features.items()}
        outputs = model.signatures["ids"](**tensors)
        return {name: value.numpy() for name, value in outputs.items()}

    return compute


def litert(path, _):
    """Returns the function of a LiteRT model."""
    from ai_edge_litert import interpreter

    (file,) = pathlib.Path(path).glob("*.tflite")
    model = interpreter.Interpreter(str(file), num_threads=report.num_cores())
    runner = model.get_signature_runner()
    used = runner.get_input_details()
    return lambda features: runner(**{name: features[name] for name in used})


def onnx(path, _):
    """Returns the function of an ONNX model."""
    import onnxruntime

    (file,) = pathlib.Path(path).glob("*.onnx")
    session = onnxruntime.InferenceSession(str(file))
    names = [one.name for one in session.get_outputs()]
    used = [one.name for one in session.get_inputs()]

    def compute(features):
        outputs = session.run(names, {name: features[name] for name in used})
        return dict(zip(names, outputs, strict=True))

    return compute


def openvino(path, precision):
    """Returns the function of an OpenVINO model."""
    import openvino

    (file,) = pathlib.Path(path).glob("*.xml")
    settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"}
    model = openvino.compile_model(str(file), "CPU", settings)
    used = [one.any_name for one in model.inputs]

    def compute(features):
        outputs = model({name: features[name] for name in used})
        return {one.any_name: outputs[one] for one in model.outputs}

    return compute


RUNTIMES = {
    "saved_model": saved_model,
    "litert": litert,
    "onnx": onnx,
    "openvino": openvino,
}


def classes(columns, label_column):
    """Returns the reader of a GLUE task: inputs and their accuracy."""

    def read(path, num_texts):
        rows = table(path)[:num_texts]
        gold = [row[label_column] for row in rows]
        texts = [tuple(row[name] for name in columns) for row in rows]
        texts = [text for (text,) in texts] if len(columns) == 1 else texts
        return texts, lambda labels: np.mean(labels == gold)

    return read


def names(path, num_texts):
    """Returns the words of sentences in a column file, and their tags' accuracy."""
    from bert_tf.tasks.token_classification import examples

    columns = examples.resolved_columns(path, examples.Columns())
    sentences = examples.read_sentences(path, columns)[:num_texts]
    gold = [tag for sentence in sentences for tag in sentence.tags]
    return [one.words for one in sentences], lambda tags: np.mean(tags == gold)


def sts(path, num_texts):
    """Returns the texts of STS-B's pairs, and the correlation of their cosines."""
    from scipy import stats

    rows = table(path)[:num_texts]
    gold = [float(row["score"]) for row in rows]

    def score(vectors):
        cosines = np.sum(vectors[::2] * vectors[1::2], axis=1)  # Of length 1.
        return stats.spearmanr(cosines, gold).statistic

    return [row[name] for row in rows for name in ("sentence1", "sentence2")], score


def squad(path, num_texts):
    """Returns questions of SQuAD 1.1, and their F1."""
    from bert_tf.tasks.question_answering import examples
    from bert_tf.tasks.question_answering import scores

    questions = examples.read_squad(path).examples[:num_texts]

    def best_f1(question, answer):
        texts = [truth.text for truth in question.answers]
        return max(scores.word_f1(text, answer, empty_is_word=False) for text in texts)

    def score(answers):
        return statistics.mean(map(best_f1, questions, answers))

    return [(one.question_text, one.context.text) for one in questions], score


def table(path):
    """Returns the rows of a file of GLUE."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


DATA = {
    "mrpc": classes(("#1 String", "#2 String"), "Quality"),
    "sst": classes(("sentence",), "label"),
    "names": names,
    "sts": sts,
    "squad": squad,
}

if __name__ == "__main__":
    report.run(main, export=export_model, measure=measure)
