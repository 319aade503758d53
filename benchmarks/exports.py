"""Compares the kinds of exports: size, speed and score of the same trained models.

Every kind computes the model for the predictors of this package, so tokenization,
windows and answers are the same. The kinds take turns, and each turn is a process of
its own, so that only one model is in memory.

    python benchmarks/exports.py --mrpc_run=runs/mrpc --mrpc_file=MRPC/dev.tsv \
      --sst_run=runs/sst --sst_file=SST-2/dev.tsv \
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
import subprocess
import tempfile
import time

import numpy as np
import report

# Task -> title of its score.
TASKS = {
    "mrpc": "MRPC accuracy",
    "sst": "SST-2 accuracy",
    "sts": "STS-B Spearman",
    "squad": "SQuAD F1",
}
MAX_SEQ_LENGTH = 128
# Title -> format, dtype of the file, and OpenVINO's precision.
KINDS = {
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
    parser.add_argument("--num_rounds", type=int, default=3, help="turns per kind")
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
        for index in range(args.num_rounds):
            start = index % len(kinds)
            for title in kinds[start:] + kinds[:start]:
                # The other tasks have only scores.
                for task in tasks if index == 0 else tasks[:1]:
                    turns[title].append(take_turn(args, folder, task, title))
                    print(title, turns[title][-1], flush=True)
    report.write_table(
        "Exports",
        ["export", "MB", "texts per second", *(TASKS[task] for task in tasks)],
        [row_of(title, turns[title], tasks) for title in kinds],
        num_keys=1,
        versions=report.versions("bert_tf", *(PACKAGES[name][1] for name in formats)),
    )


def row_of(title, turns, tasks):
    """Returns the cells of a kind."""
    scores = {turn["task"]: turn["score"] for turn in turns}
    speeds = [s for turn in turns if turn["task"] == tasks[0] for s in turn["speeds"]]
    size = f"{turns[0]['bytes'] / 1e6:.1f}"
    scores = [f"{scores[task]:.3f}" for task in tasks]
    return [title, size, report.median_and_spread(speeds, 0), *scores]


def take_turn(args, folder, task, title):
    """Returns size, score and speeds of a kind, which is exported if necessary."""
    settings = {
        "task": task,
        "title": title,
        "run": getattr(args, f"{task}_run"),
        "file": getattr(args, f"{task}_file"),
        "num_texts": args.num_texts,
        "export_dir": f"{folder}/{task}/{title}/1",
    }
    # OpenVINO was several times slower in a process that had exported the model.
    for peer in ("export", "measure"):
        command = report.command_of_peer(__file__, peer, settings)
        env = {**os.environ, **report.environment()}
        done = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, text=True, check=True
        )
    return json.loads(done.stdout.strip().split("\n")[-1]) | {"task": task}


def source_of(settings):
    """Returns the options of what is exported: a run, or a checkpoint's encoder."""
    if os.path.exists(f"{settings['run']}/run.json"):
        return {"output_dir": settings["run"]}
    return {
        "init_checkpoint": settings["run"],
        "head": "encoder",
        "max_seq_length": MAX_SEQ_LENGTH,
    }


def export_model(settings):
    """Exports a model that does not exist yet."""
    from bert_tf.serving import export
    from bert_tf.serving import options as serving_options

    form, dtype, _ = KINDS[settings["title"]]
    if not os.path.exists(settings["export_dir"]):
        options = serving_options.ExportSavedModelOptions(
            **source_of(settings),
            export_dir=settings["export_dir"],
            format=form,
            dtype=dtype,
        )
        export.run(options)


def measure(settings):
    """Prints the size of a model's files, its score and its speeds."""
    inputs, score = DATA[settings["task"]](settings["file"], settings["num_texts"])
    predict = predictor_of(settings)
    turn = {"score": float(score(predict(inputs))), "speeds": []}
    for _ in range(3):
        started = time.perf_counter()
        predict(inputs)
        turn["speeds"].append(len(inputs) / (time.perf_counter() - started))
    folder = pathlib.Path(settings["export_dir"])
    names = ("saved_model.pb", "model.*", "variables/*")
    paths = [path for name in names for path in folder.glob(name)]
    print(json.dumps(turn | {"bytes": sum(path.stat().st_size for path in paths)}))


def predictor_of(settings):
    """Returns the function from inputs to answers that computes with an export."""
    import bert_tf

    form, _, precision = KINDS[settings["title"]]
    compute = RUNTIMES[form](settings["export_dir"], precision)

    def outputs(features):
        values = compute({n: np.asarray(x, np.int32) for n, x in features.items()})
        return values.get("logits", values.get("embedding", values))

    source = source_of(settings)
    predictor = bert_tf.load(
        settings["run"],
        head=source.get("head"),
        max_seq_length=source.get("max_seq_length"),
    )
    if settings["task"] != "sts":
        predictor.apply = outputs
        return predictor.predict

    def embed(pairs):
        texts = [text for pair in pairs for text in pair]
        features = bert_tf.pack(
            predictor.tokenizer, texts, max_seq_length=MAX_SEQ_LENGTH
        )
        vectors = predictor._applied(outputs, features)
        return vectors.reshape(len(pairs), 2, -1)

    return embed


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

        def score(answers):
            pairs = zip(answers, rows, strict=True)
            return statistics.mean(a["label"] == row[label_column] for a, row in pairs)

        texts = [tuple(row[name] for name in columns) for row in rows]
        return ([text for (text,) in texts] if len(columns) == 1 else texts), score

    return read


def sts(path, num_texts):
    """Returns pairs of STS-B, and the correlation of their cosines."""
    from scipy import stats

    rows = table(path)[:num_texts]
    gold = [float(row["score"]) for row in rows]

    def score(vectors):
        cosines = np.sum(vectors[:, 0] * vectors[:, 1], axis=1)  # Of length 1.
        return stats.spearmanr(cosines, gold).statistic

    return [(row["sentence1"], row["sentence2"]) for row in rows], score


def squad(path, num_texts):
    """Returns questions of SQuAD 1.1, and their F1."""
    from bert_tf.tasks.question_answering import examples
    from bert_tf.tasks.question_answering import scores

    questions = examples.read_squad(path).examples[:num_texts]

    def best_f1(question, answer):
        texts = [truth.text for truth in question.answers]
        return max(
            scores.word_f1(text, answer["answer"], empty_is_word=False)
            for text in texts
        )

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
    "sts": sts,
    "squad": squad,
}

if __name__ == "__main__":
    report.run(main, export=export_model, measure=measure)
