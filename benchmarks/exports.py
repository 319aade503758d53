"""Compares the kinds of exports: size, speed and score of the same trained models.

Every kind computes the model for the predictors of this package, so tokenization,
windows and answers are the same. The kinds take turns, and each turn is a process of
its own, so that only one model is in memory. With --work_dir, a killed run continues
where it stopped, if its arguments, files and versions are the same.

    python benchmarks/exports.py --mrpc_run=runs/mrpc --mrpc_file=MRPC/dev.tsv \
      --sst_run=runs/sst --sst_file=SST-2/dev.tsv \
      --sts_run=all-MiniLM-L6-v2 --sts_file=STS-B/dev.tsv \
      --squad_run=runs/squad --squad_file=dev-v1.1.json

A run is a fine-tuned model of that task; for STS-B it is a sentence encoder, whose
vectors are compared. The speed is that of the first task. `--small_runs` adds models
with fewer layers. LiteRT, ONNX and OpenVINO take part if they are installed.
"""

import argparse
import concurrent.futures
import contextlib
import csv
import functools
import importlib.util
import json
import multiprocessing
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np
import report
import tensorflow as tf
from scipy import stats

import bert_tf
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.serving import export
from bert_tf.serving import id_models
from bert_tf.serving import options as serving_options
from bert_tf.tasks.question_answering import examples
from bert_tf.tasks.question_answering import scores as squad_scores
from bert_tf.training import training_facts

# Task -> title of its score.
TASKS = {
    "mrpc": "MRPC accuracy",
    "sst": "SST-2 accuracy",
    "sts": "STS-B Spearman",
    "squad": "SQuAD F1",
}
# Endings of the flags of each task.
INPUTS = ("run", "file")
HEADS = {
    "mrpc": "classification",
    "sst": "classification",
    "sts": "encoder",
    "squad": "question_answering",
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
PACKAGES = {"litert": "ai_edge_litert", "onnx": "onnxruntime", "openvino": "nncf"}


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for task in TASKS:
        parser.add_argument(f"--{task}_run", help="output_dir of the fine-tuning")
        parser.add_argument(f"--{task}_file", help="file with the dev set")
    parser.add_argument(
        "--small_runs", help="folder with runs mrpc, sst, sts and squad"
    )
    parser.add_argument("--num_rounds", type=int, default=3, help="turns per kind")
    parser.add_argument("--num_texts", type=int, default=872, help="texts per task")
    parser.add_argument("--work_dir", help="folder for the exports and finished turns")
    return parser.parse_args()


def main():
    """Exports and measures every kind, and writes the section."""
    args = arguments()
    with contextlib.ExitStack() as stack:
        folder = args.work_dir or stack.enter_context(tempfile.TemporaryDirectory())
        turns = all_turns(args, folder)
    tasks = tasks_of(args)
    report.write_section(
        "Exports",
        report.table(
            ["export", "MB", "texts per second", *(TASKS[task] for task in tasks)],
            [row_of(title, turns, tasks) for title in titles(args)],
        )
        + "\n\nSize of the model file and speed including tokenization for "
        f"{tasks[0]}: median (smallest to largest). Scores on the dev sets, at most "
        f"{args.num_texts} rows each. Fewer layers are not fine-tuned for STS-B.",
        all_versions=report.versions("bert_tf", "tensorflow", *installed()),
    )


def row_of(title, turns, tasks):
    """Returns the cells of a kind."""
    own = [turn for turn in turns if turn["title"] == title]
    scores = {turn["task"]: turn["score"] for turn in own if "score" in turn}
    sizes = {turn["task"]: turn["bytes"] for turn in own if "bytes" in turn}
    timed = [turn for turn in own if turn["task"] == tasks[0]]
    speeds = [speed for turn in timed for speed in turn.get("speeds", [])]
    return [
        title,
        f"{next(iter(sizes.values())) / 1e6:.1f}",
        report.median_and_spread(speeds, 0) if speeds else None,
        *(f"{scores[task]:.3f}" if task in scores else None for task in tasks),
    ]


def all_turns(args, folder):
    """Returns the results of every turn, those of an earlier run included."""
    os.makedirs(folder, exist_ok=True)
    journal = pathlib.Path(folder, "turns.jsonl")
    turns = earlier_turns(journal, settings_of(args))
    done = {(turn["task"], turn["title"], turn["round"]) for turn in turns}
    context = multiprocessing.get_context("spawn")
    for key in order_of_turns(args):
        if key in done:
            continue
        with concurrent.futures.ProcessPoolExecutor(
            1, mp_context=context, max_tasks_per_child=1
        ) as pool:
            # OpenVINO was several times slower in a worker that had exported the model.
            pool.submit(prepare, args, folder, *key[:2]).result()
            turn = pool.submit(one_turn, args, folder, *key).result()
        print(turn, flush=True)
        turns.append(turn)
        with journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(turn) + "\n")
    return turns


def earlier_turns(journal, settings):
    """Returns the turns in a journal, whose first line has the settings of all.

    An incomplete last line, which a killed run leaves behind, is removed.
    """
    first = json.dumps({"settings": settings}) + "\n"
    lines = []
    if journal.exists():
        lines = journal.read_text("utf-8").splitlines(keepends=True)
    lines = [line for line in lines if line.endswith("\n")]
    if lines and lines[0] != first:
        raise SystemExit(
            f"{journal} contains turns with other arguments, files or versions of the "
            "packages; pass those again, or another --work_dir."
        )
    journal.write_text("".join(lines or [first]), "utf-8")
    return [json.loads(line) for line in lines[1:]]


def settings_of(args):
    """Returns what decides the result of a turn: arguments, files and versions."""
    settings = vars(args) | report.versions("bert_tf", "tensorflow", *installed())
    settings["commit"] = training_facts.git_commit()
    for name in ("num_rounds", "work_dir"):
        del settings[name]
    given = [args.small_runs, *(vars(args)[f"{t}_{k}"] for t in TASKS for k in INPUTS)]
    settings["files"] = {path: files_below(path) for path in given if path}
    return settings


def files_below(path):
    """Returns {name: size and time} of a file, or of the files in a folder."""
    root = pathlib.Path(path)
    paths = sorted(root.rglob("*")) if root.is_dir() else [root]
    facts = [(str(one), one.stat()) for one in paths if one.is_file()]
    return {name: [found.st_size, found.st_mtime_ns] for name, found in facts}


def order_of_turns(args):
    """Returns task, title and round of each turn."""
    first, *others = tasks_of(args)
    order = list(models(args, first, ""))
    found = []
    for index in range(args.num_rounds):
        start = index % len(order)
        turned = order[start:] + order[:start]
        found += [(first, title, index) for title in turned]
    # The others have only scores.
    found += [(task, title, 0) for task in others for title in models(args, task, "")]
    return found


def prepare(args, folder, task, title):
    """Exports a model that is not in the folder."""
    models(args, task, folder)[title]()


def one_turn(args, folder, task, title, index):
    """Returns speeds of a kind in the first task; in round 0 also size and score."""
    turn = {"task": task, "title": title, "round": index}
    data = DATA[task](getattr(args, f"{task}_file"), args.num_texts)
    predict = functools.partial(models(args, task, folder)[title](), data["inputs"])
    answers = predict()
    if index == 0:
        turn["score"] = data["score"](answers)
        turn["bytes"] = size_of(pathlib.Path(folder, task, title))
    if task == tasks_of(args)[0]:
        turn["speeds"] = [speed(predict, len(data["inputs"])) for _ in range(3)]
    return turn


def speed(predict, num_texts):
    """Returns the texts per second of a kind that has answered before."""
    started = time.perf_counter()
    predict()
    return num_texts / (time.perf_counter() - started)


def tasks_of(args):
    """Returns the tasks that have a run."""
    return [task for task in TASKS if getattr(args, f"{task}_run")]


def titles(args):
    """Returns the kinds that at least one task has."""
    found = [models(args, task, "") for task in tasks_of(args)]
    return list(dict.fromkeys(title for kinds in found for title in kinds))


def installed():
    """Returns the runtimes that are installed."""
    names = {"ai_edge_litert": "ai-edge-litert"}
    found = [name for name in PACKAGES.values() if importlib.util.find_spec(name)]
    found += ["openvino"] if "nncf" in found else []
    return [names.get(name, name) for name in found]


def models(args, task, folder):
    """Returns {title: function that exports a model and returns what computes it}."""
    run = getattr(args, f"{task}_run")
    found = {}
    for title, (form, dtype, precision) in KINDS.items():
        if form == "saved_model" or importlib.util.find_spec(PACKAGES[form]):
            path = f"{folder}/{task}/{title}/1"
            found[title] = functools.partial(
                exported, task, run, path, form, dtype, precision
            )
    if args.small_runs and os.path.exists(f"{args.small_runs}/{task}"):
        path = f"{folder}/{task}/SavedModel, fewer layers/1"
        found["SavedModel, fewer layers"] = functools.partial(
            exported, task, f"{args.small_runs}/{task}", path
        )
    return found


def exported(task, run, path, form="saved_model", dtype="float32", precision=None):
    """Returns the function from inputs to answers of an export."""
    source = {"output_dir": run}
    if not os.path.exists(f"{run}/run.json"):
        source = {"init_checkpoint": run, "head": HEADS[task]}
        source["max_seq_length"] = MAX_SEQ_LENGTH
        source["text_pairs"] = task == "mrpc"
    if not os.path.exists(path):  # Of an earlier turn.
        export.run(
            serving_options.ExportSavedModelOptions(
                **source, export_dir=path, format=form, dtype=dtype
            )
        )
    compute = RUNTIMES[form](path, precision)

    def outputs(features):
        found = compute({n: np.asarray(x, np.int32) for n, x in features.items()})
        return found.get("logits", found.get("embedding", found))

    predictor = bert_tf.load(
        run,
        head=source.get("head"),
        max_seq_length=source.get("max_seq_length"),
    )
    if task != "sts":
        predictor._logits = outputs
        return predictor.predict

    def embed(pairs):
        texts = [text for pair in pairs for text in pair]
        features = bert_tf.pack(
            predictor.tokenizer, texts, max_seq_length=MAX_SEQ_LENGTH
        )
        vectors = fine_tuning_predictor.apply_in_parts(outputs, features)
        return vectors.reshape(len(pairs), 2, -1)

    return embed


def saved_model(path, _):
    """Returns the function of a SavedModel."""
    model = tf.saved_model.load(path)
    signature = model.signatures["ids"]

    def compute(features):
        tensors = {name: tf.constant(value) for name, value in features.items()}
        return {name: value.numpy() for name, value in signature(**tensors).items()}

    compute.model = model  # A signature does not keep its variables.
    return compute


def litert(path, _):
    """Returns the function of a LiteRT model."""
    from ai_edge_litert import interpreter

    model = interpreter.Interpreter(
        model_path=f"{path}/{id_models.FILES['litert']}",
        num_threads=report.num_cores(),
    )
    runner = model.get_signature_runner()
    used = runner.get_input_details()
    return lambda features: runner(**{name: features[name] for name in used})


def onnx(path, _):
    """Returns the function of an ONNX model."""
    import onnxruntime

    session = onnxruntime.InferenceSession(f"{path}/{id_models.FILES['onnx']}")
    names = [one.name for one in session.get_outputs()]
    used = [one.name for one in session.get_inputs()]

    def compute(features):
        outputs = session.run(names, {name: features[name] for name in used})
        return dict(zip(names, outputs, strict=True))

    return compute


def openvino(path, precision):
    """Returns the function of an OpenVINO model."""
    import openvino

    model = openvino.compile_model(
        f"{path}/{id_models.FILES['openvino']}",
        "CPU",
        {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"},
    )

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


def size_of(folder):
    """Returns the bytes of the model's files, without those beside it."""
    folder = folder / "1"
    names = ("saved_model.pb", *id_models.FILES.values(), "model.bin")
    found = [folder / name for name in names if (folder / name).exists()]
    found += (folder / "variables").glob("*")
    return sum(path.stat().st_size for path in found)


def classes(columns, label_column, path, num_texts):
    """Returns texts or pairs of a file of GLUE, and their accuracy."""
    rows = table(path)[:num_texts]

    def score(answers):
        pairs = zip(answers, rows, strict=True)
        return statistics.mean(one["label"] == row[label_column] for one, row in pairs)

    inputs = [tuple(row[name] for name in columns) for row in rows]
    if len(columns) == 1:
        inputs = [text for (text,) in inputs]
    return {"inputs": inputs, "score": score}


def sts(path, num_texts):
    """Returns pairs of STS-B, and the correlation of their cosines."""
    rows = table(path)[:num_texts]
    gold = [float(row["score"]) for row in rows]

    def score(vectors):
        cosines = np.sum(vectors[:, 0] * vectors[:, 1], axis=1)  # Of length 1.
        return stats.spearmanr(cosines, gold).statistic

    inputs = [(row["sentence1"], row["sentence2"]) for row in rows]
    return {"inputs": inputs, "score": score}


def squad(path, num_texts):
    """Returns questions of SQuAD 1.1, and their F1."""
    questions = examples.read_squad(path).examples[:num_texts]

    def score(answers):
        found = [
            max(
                squad_scores.word_f1(truth.text, one["answer"], empty_is_word=False)
                for truth in question.answers
            )
            for one, question in zip(answers, questions, strict=True)
        ]
        return statistics.mean(found)

    inputs = [(one.question_text, one.context.text) for one in questions]
    return {"inputs": inputs, "score": score}


def table(path):
    """Returns the rows of a file of GLUE."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


DATA = {
    "mrpc": functools.partial(classes, ("#1 String", "#2 String"), "Quality"),
    "sst": functools.partial(classes, ("sentence",), "label"),
    "sts": sts,
    "squad": squad,
}

if __name__ == "__main__":
    main()
