"""Fine-tunes a classifier with this package and with Hugging Face, as whole processes.

Both sides start from the same encoder, read the same files, and train, evaluate and
save. Every run is a process of its own, from its start to its end. The runs of both
sides take turns.

    python benchmarks/fine_tuning.py --model=all-MiniLM-L6-v2 --glue_dir=glue

With `--compiled`, Hugging Face's model is also run with `torch.compile`.
Finished runs are kept in `--work_dir`, so that the same command resumes. After an
update of a library, use a new folder.
"""

import itertools
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import report
import training_step

OURS, THEIRS = "bert_tf", "Hugging Face"
COMPILED = f"{THEIRS}, `torch.compile`"
BATCH_SIZE = 32
MAX_LENGTH = 128
RATE = 5e-5
WARMUP_PROPORTION = 0.1
# Columns of GLUE's files: the texts and the label.
COLUMNS = {"MRPC": ((3, 4), 0), "SST-2": ((0,), 1)}
TITLES = [
    *("task", "dtype", "batches", "epochs", "bert_tf, s", "Hugging Face, s"),
    *("compiled, s", "ratio", "ratio, compiled", "accuracy, each seed (in this order)"),
]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add(
        "--model",
        default="sentence-transformers/all-MiniLM-L6-v2",
        help="folder of an encoder in Hugging Face's format",
    )
    add("--glue_dir", required=True, help="folder with the folders MRPC and SST-2")
    add("--tasks", nargs="+", default=["MRPC", "SST-2"], help="GLUE tasks")
    add("--dtypes", nargs="+", default=["bfloat16", "float32"], help="dtypes to run in")
    add("--seeds", nargs="+", type=int, default=[1, 2, 3], help="one run per seed")
    add("--num_rows", type=int, default=10000, help="maximum number of training rows")
    add("--num_epochs", type=int, default=3, help="passes over these rows")
    add("--compiled", action="store_true", help="also run Hugging Face compiled")
    add("--work_dir", help="folder that keeps finished runs; default: a temporary one")
    return parser.parse_args()


def main():
    """Runs everything that is missing and writes the rows."""
    args = arguments()
    libraries = [OURS, THEIRS, *([COMPILED] if args.compiled else [])]
    with tempfile.TemporaryDirectory() as temporary:
        work_dir = pathlib.Path(args.work_dir or temporary)
        for task in args.tasks:
            copy_rows(pathlib.Path(args.glue_dir, task), work_dir / "data" / task, args)
        for kind in itertools.product(args.tasks, args.dtypes, ["random"]):
            runs = {library: [] for library in libraries}
            for index, seed in enumerate(args.seeds):
                for library in libraries[:: 1 - 2 * (index % 2)]:
                    runs[library].append(run(kind, library, seed, args, work_dir))
            write_row(kind, args.num_epochs, runs)


def write_row(kind, num_epochs, runs):
    """Writes the row of a task, dtype and kind of batches."""
    seconds = {
        name: [one["seconds"] for one in several] for name, several in runs.items()
    }
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    cells = [
        report.median_and_spread(seconds[name], 1) if name in seconds else None
        for name in (OURS, THEIRS, COMPILED)
    ]
    cells += [
        medians[name] / medians[OURS] if name in medians else None
        for name in (THEIRS, COMPILED)
    ]
    accuracies = [
        " ".join(f"{one['accuracy']:.3f}" for one in several)
        for several in runs.values()
    ]
    versions = {}
    for several in runs.values():
        versions |= several[0]["versions"]
    row = [*kind, num_epochs, *cells, "; ".join(accuracies)]
    report.write_table("Fine-tuning", TITLES, [row], num_keys=4, versions=versions)


def run(kind, library, seed, args, work_dir):
    """Returns the result of one run, which is made if it is not in `work_dir`."""
    task, dtype, batches = kind
    peer = "bert_tf" if library == OURS else "hugging_face"
    mode = "compiled" if library == COMPILED else "eager"
    name = "-".join([task, dtype, batches, peer, mode, str(seed)])
    result_file = work_dir / f"{name}.json"
    settings = {
        "task": task,
        "dtype": dtype,
        "is_compiled": library == COMPILED,
        "seed": seed,
        "model": args.model,
        "num_epochs": args.num_epochs,
        "num_rows": args.num_rows,
        "data_dir": str(work_dir / "data" / task),
        "output_dir": str(work_dir / name),
    }
    if result_file.exists():
        result = json.loads(result_file.read_text(encoding="utf-8"))
        if result["settings"] == settings:
            return result
    programs = work_dir / f"{name}-programs"
    for folder in (settings["output_dir"], programs):  # A killed run would resume.
        shutil.rmtree(folder, ignore_errors=True)
    python = sys.executable if library == OURS else report.peers_python()
    # TorchInductor's folder is empty, so that every run includes compiling.
    env = report.KEEPS_MEMORY | {"TORCHINDUCTOR_CACHE_DIR": str(programs)}
    started = time.perf_counter()
    result = report.result_of_peer(__file__, peer, settings, python=python, env=env)
    result |= {"seconds": time.perf_counter() - started, "settings": settings}
    print(f"{name}: {result}", flush=True)
    result_file.write_text(json.dumps(result), encoding="utf-8")
    return result


def copy_rows(source, target, args):
    """Copies a task's files, the first rows of the training data only."""
    target.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", args.num_rows + 1), ("dev", None)):
        with (source / f"{name}.tsv").open(encoding="utf-8") as lines:
            text = "".join(itertools.islice(lines, count))
        (target / f"{name}.tsv").write_text(text, encoding="utf-8")


def read_rows(settings, name):
    """Returns [(texts, label)] of the file "train" or "dev" of the task."""
    columns, label_column = COLUMNS[settings["task"]]
    path = os.path.join(settings["data_dir"], f"{name}.tsv")
    with open(path, encoding="utf-8-sig") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][1:]
    return [([row[c] for c in columns], int(row[label_column])) for row in rows]


def answer_driver(accuracy, *packages):
    """Prints the result of a run for the driver."""
    versions = report.versions(*packages)
    print(json.dumps({"accuracy": accuracy, "versions": versions}))


def run_bert_tf(settings):
    """Fine-tunes as a user of run_classifier would."""
    from tools import run_classifier

    dtype = settings["dtype"]
    code = run_classifier.main(
        [
            f"--task_name={settings['task']}",
            f"--data_dir={settings['data_dir']}",
            f"--init_checkpoint={settings['model']}",
            f"--output_dir={settings['output_dir']}",
            f"--train_batch_size={BATCH_SIZE}",
            f"--max_seq_length={MAX_LENGTH}",
            f"--learning_rate={RATE}",
            f"--warmup_proportion={WARMUP_PROPORTION}",
            f"--num_train_epochs={settings['num_epochs']}",
            f"--random_seed={settings['seed']}",
            f"--dtype={'mixed_bfloat16' if dtype == 'bfloat16' else dtype}",
            f"--eval_batch_size={BATCH_SIZE}",
            "--do_train",
            "--do_eval",
        ]
    )
    if code:
        return code
    path = os.path.join(settings["output_dir"], "eval_results.txt")
    with open(path, encoding="utf-8") as lines:
        scores = dict(line.strip().split(" = ") for line in lines)
    accuracy = float(scores["eval_accuracy"])
    answer_driver(accuracy, "tensorflow", "tensorflow-text", "keras")
    return 0


def run_hugging_face(settings):
    """Fine-tunes with transformers on PyTorch, in a plain loop.

    It is fast in every way that the library offers on a CPU: bfloat16 autocast, fused
    AdamW, scaled-dot-product attention, the fast tokenizer for all texts in one call,
    batches padded to their longest row, and, if the settings say so, a compiled model.
    """
    import torch
    import transformers

    torch.set_num_threads(report.num_cores())
    torch.manual_seed(settings["seed"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings["model"])
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        settings["model"], num_labels=2
    )
    is_bfloat16 = settings["dtype"] == "bfloat16"
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16)
    # Lengths vary from batch to batch, hence `dynamic`.
    called = torch.compile(model, dynamic=True) if settings["is_compiled"] else model
    train(called, tokenizer, settings, autocast)
    with torch.inference_mode():
        accuracy = evaluate(called, tokenizer, settings, autocast)
    model.save_pretrained(settings["output_dir"])
    tokenizer.save_pretrained(settings["output_dir"])
    answer_driver(accuracy, "torch", "transformers")


def read_features(tokenizer, settings, name):
    """Returns the features of a file as a list of dicts."""
    rows = read_rows(settings, name)
    texts = list(zip(*(texts for texts, _ in rows), strict=True))
    features = tokenizer(*map(list, texts), truncation=True, max_length=MAX_LENGTH)
    return [
        {**{key: features[key][i] for key in features}, "labels": label}
        for i, (_, label) in enumerate(rows)
    ]


def order(num_rows):
    """Returns the batches of an epoch, lists of row numbers."""
    import torch

    rows = torch.randperm(num_rows).tolist()
    starts = range(0, num_rows - BATCH_SIZE + 1, BATCH_SIZE)
    return [rows[start : start + BATCH_SIZE] for start in starts]


def train(model, tokenizer, settings, autocast):
    """Trains for the epochs of the settings."""
    import torch
    import transformers

    data = read_features(tokenizer, settings, "train")
    collate = transformers.DataCollatorWithPadding(tokenizer)
    batches = [
        batch for _ in range(settings["num_epochs"]) for batch in order(len(data))
    ]
    optimizer = training_step.torch_optimizer(model, RATE)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(len(batches) * WARMUP_PROPORTION), len(batches)
    )
    model.train()
    for batch in batches:
        with autocast:
            loss = model(**collate([data[row] for row in batch])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)


def evaluate(model, tokenizer, settings, autocast):
    """Returns the accuracy on the development set, in batches of similar length."""
    import transformers

    data = read_features(tokenizer, settings, "dev")
    data.sort(key=lambda row: len(row["input_ids"]))
    collate = transformers.DataCollatorWithPadding(tokenizer)
    model.eval()
    correct = 0
    for start in range(0, len(data), BATCH_SIZE):
        batch = collate(data[start : start + BATCH_SIZE])
        labels = batch.pop("labels")
        with autocast:
            logits = model(**batch).logits
        correct += int((logits.argmax(-1) == labels).sum())
    return correct / len(data)


if __name__ == "__main__":
    report.run(main, bert_tf=run_bert_tf, hugging_face=run_hugging_face)
