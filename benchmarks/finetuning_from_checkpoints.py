"""Fine-tunes from several checkpoints, over tasks and seeds, and prints a table.

With the checkpoints of one run, this is the paper's Figure 5. With runs of other
objectives or mask shares, it is Table 5 or 8. Every score is written at once, so you
can stop the benchmark and resume it with the same command.

    python benchmarks/finetuning_from_checkpoints.py --output_dir=/tmp/finetuning \\
        --checkpoints=1000=run/model.ckpt-1000,2000=run/model.ckpt-2000,random=random \\
        --glue_dir=glue --tasks=SST-2,MRPC,CoLA --seeds=1,2,3 --max_train_rows=10000

`random` means random weights with the first checkpoint's configuration. These are
usually the weights that its run started from. Dropout in fine-tuning is that of each
checkpoint's configuration. Scores of other settings in the same folder are kept.
Checkpoints that have the names of the paper's ablations (`PUBLISHED`,
`PUBLISHED_MASKS`) are printed next to the published figures.
"""

import itertools
import json
import os
import shutil
import statistics
import time

import keras
import report

from bert_tf.checkpoints import starting_point
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import workflow as classification_workflow

# Settings that identify the scores of one call.
SETTINGS = (
    "max_train_rows",
    "num_train_epochs",
    "learning_rate",
    "train_batch_size",
    "max_seq_length",
    "dtype",
)
# The score reported for a task; accuracy for all other tasks.
SCORES = {"CoLA": "eval_matthews", "STS-B": "eval_pearson"}
RANDOM = "random"
# Table 5 of the paper: BERT-Base, dev sets, accuracy.
PUBLISHED = {
    "full": {"SST-2": 0.927, "MRPC": 0.867},
    "no_next_sentence": {"SST-2": 0.926, "MRPC": 0.865},
    "left_to_right": {"SST-2": 0.921, "MRPC": 0.775},
}
# Table 8: what the selected pieces became, accuracy on MNLI, F1 on NER.
PUBLISHED_MASKS = {
    "full": ("80% [MASK], 10% unchanged, 10% random", 0.842, 0.954),
    "all_mask": ("100% [MASK]", 0.843, 0.949),
    "all_random": ("100% random", 0.836, 0.949),
}


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--checkpoints", required=True, help="comma-separated NAME=PATH, or random")
    add("--glue_dir", required=True, help="folder with one folder per task")
    add("--output_dir", required=True, help="folder for scores.jsonl and report.md")
    add("--tasks", default="SST-2,MRPC,CoLA")
    add("--seeds", default="1,2,3")
    add("--max_train_rows", type=int, default=0, help="first rows to train on; 0: all")
    add("--num_train_epochs", type=float, default=3.0)
    add("--learning_rate", type=float, default=1e-4)
    add("--train_batch_size", type=int, default=32)
    add("--max_seq_length", type=int, default=128)
    add("--dtype", default="float32", help="float32 or mixed_bfloat16")
    return parser.parse_args()


def main():
    """Runs what has no score yet, and prints the table."""
    given = arguments()
    checkpoints = dict(
        (pair if "=" in pair else f"{pair}={pair}").split("=", 1)
        for pair in given.checkpoints.split(",")
    )
    tasks = given.tasks.split(",")
    seeds = [int(seed) for seed in given.seeds.split(",")]
    os.makedirs(given.output_dir, exist_ok=True)
    path = os.path.join(given.output_dir, "scores.jsonl")
    rows = {task: prepare(given, task) for task in tasks}
    settings = {name: getattr(given, name) for name in SETTINGS}
    done = [line for line in read(path) if line.get("settings") == settings]
    # Seeds are the outermost loop: if stopped early, every cell has fewer seeds.
    for seed, task, name in itertools.product(seeds, tasks, checkpoints):
        if any(key(line) == (name, task, seed) for line in done):
            continue
        started = time.monotonic()
        scores = fine_tune(given, checkpoints, name, task, seed)
        line = {
            "checkpoint": name,
            "task": task,
            "seed": seed,
            **scores,
            "seconds": time.monotonic() - started,
            "settings": settings,
        }
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        done.append(line)
        print(json.dumps(line), flush=True)
    text = scores_report(given, list(checkpoints), rows, done)
    with open(os.path.join(given.output_dir, "report.md"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    print(text)


def read(path):
    """Returns the scores of earlier runs."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def key(line):
    """Returns the checkpoint, task and seed of a line of scores.jsonl."""
    return line["checkpoint"], line["task"], line["seed"]


def prepare(given, task):
    """Copies a task's folder with the selected rows. Returns their number."""
    source = os.path.join(given.glue_dir, task)
    target = os.path.join(given.output_dir, "data", task)
    os.makedirs(target, exist_ok=True)
    for name in ("dev.tsv", "test.tsv"):
        if os.path.exists(os.path.join(source, name)):
            shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
    with open(os.path.join(source, "train.tsv"), encoding="utf-8", newline="\n") as f:
        lines = f.readlines()
    has_header = task != "CoLA"
    if given.max_train_rows:
        lines = lines[: given.max_train_rows + has_header]
    with open(os.path.join(target, "train.tsv"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return len(lines) - has_header


def fine_tune(given, checkpoints, name, task, seed):
    """Returns the scores on the dev set after one run."""
    run_dir = os.path.join(given.output_dir, "run")
    shutil.rmtree(run_dir, ignore_errors=True)
    if checkpoints[name] == RANDOM:
        start = size_of_first(given, checkpoints)
    else:
        start = {"init_checkpoint": checkpoints[name]}
    options = classification_options.RunClassifierOptions(
        output_dir=run_dir,
        task_name=task,
        data_dir=os.path.join(given.output_dir, "data", task),
        do_train=True,
        do_eval=True,
        random_seed=seed,
        num_train_epochs=given.num_train_epochs,
        learning_rate=given.learning_rate,
        train_batch_size=given.train_batch_size,
        eval_batch_size=64,
        max_seq_length=given.max_seq_length,
        dtype=given.dtype,
        save_checkpoints_steps=10**9,  # Only one, at the end.
        **start,
    )
    classification_workflow.train(options)
    results = classification_workflow.evaluate(options)
    shutil.rmtree(run_dir)
    keras.backend.clear_session()
    return {k: float(v) for k, v in results.items() if k.startswith("eval_")}


def size_of_first(given, checkpoints):
    """Writes the first checkpoint's config and vocabulary. Returns their options."""
    first = next(path for path in checkpoints.values() if path != RANDOM)
    start = starting_point.find(first)
    config_file = os.path.join(given.output_dir, "bert_config.json")
    vocab_file = os.path.join(given.output_dir, "vocab.txt")
    with open(config_file, "w", encoding="utf-8") as file:
        file.write(start.config.to_json_string())
    start.vocabulary.save(vocab_file)
    return {"bert_config_file": config_file, "vocab_file": vocab_file}


def scores_report(given, names, rows, done):
    """Returns the scores as a table in Markdown."""
    tasks = list(rows)
    lines = [
        f"Fine-tuned for {given.num_train_epochs:g} epochs, rate "
        f"{given.learning_rate:g}, batch {given.train_batch_size}, {given.dtype}; dev "
        "sets, mean ± standard deviation over the seeds. Rows trained on: "
        + ", ".join(f"{task} {rows[task]:,}" for task in tasks)
        + (
            f" (at most the first {given.max_train_rows:,})."
            if given.max_train_rows
            else " (all)."
        ),
        "",
        f"| from | {' | '.join(map(heading, tasks))} |",
        f"|---|{'---|' * len(tasks)}",
    ]
    for name in names:
        cells = [cell(done, name, task) for task in tasks]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for name in [name for name in PUBLISHED if name in names]:
        cells = [f"{PUBLISHED[name].get(task, '')}" for task in tasks]
        lines.append(f"| {name}, published, BERT-Base | {' | '.join(cells)} |")
    of_masks = [name for name in PUBLISHED_MASKS if name in names]
    if len(of_masks) > 1:
        lines += [
            "",
            "Published, BERT-Base, other tasks:",
            "",
            "| from | selected pieces became | MNLI accuracy | NER F1 |",
            "|---|---|---|---|",
        ]
        for name in of_masks:
            shares, mnli, ner = PUBLISHED_MASKS[name]
            lines.append(f"| {name} | {shares} | {mnli} | {ner} |")
    return "\n".join(lines)


def heading(task):
    """Returns a task's name with the name of its score."""
    return f"{task} {SCORES.get(task, 'eval_accuracy').removeprefix('eval_')}"


def cell(done, name, task):
    """Returns mean and standard deviation of a checkpoint's scores on a task."""
    score = SCORES.get(task, "eval_accuracy")
    values = [
        line[score]
        for line in done
        if (line["checkpoint"], line["task"]) == (name, task)
    ]
    if len(values) < 2:
        return f"{values[0]:.3f}" if values else ""
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    return f"{mean:.3f} ± {deviation:.3f} ({len(values)})"


if __name__ == "__main__":
    main()
