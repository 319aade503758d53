"""The demo: every stage from raw text to a served answer, with the tools of a user."""

import dataclasses
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from typing import ClassVar

from bert_tf import files
from bert_tf import locks
from bert_tf import notebook
from bert_tf import options as options_module
from bert_tf.options import option
from bert_tf.training import verdicts

# Marks the output folder of a demo, which a later demo may replace.
MARKER_FILE = "made_by_run_demo"
MIN_DOCUMENTS = 4  # Next-sentence examples need two, in training and held-out text.
_HELD_OUT_EVERY = 10  # Every tenth document of the user is held out.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"'”’)])\s+")
# The untrained model takes one step with a learning rate of 0, which saves its weights.
_PRETRAINING = """
# Vocabulary: learn word pieces from the text
build_vocabulary --input_file={train} --vocab_file={out}/vocab.txt
  --vocab_size={vocab_size}
# Examples: mask words
create_pretraining_data --input_file={train} --output_file={out}/train.tfrecord
  --vocab_file={out}/vocab.txt --dupe_factor={passes} {lengths}
create_pretraining_data --input_file={heldout} --output_file={out}/heldout.tfrecord
  --vocab_file={out}/vocab.txt --dupe_factor={heldout_passes} {lengths}
# Pretraining: held-out losses before training
run_pretraining --output_dir={out}/untrained {data_and_model} --train_batch_size=1
  --learning_rate=0 --num_train_steps=1 --num_warmup_steps=0
# Pretraining: training, and held-out losses after it
run_pretraining --output_dir={out}/pretraining {data_and_model}
  --train_batch_size={batch_size} --learning_rate=0.001 --num_train_steps={steps}
  --num_warmup_steps={warmup} --eval_every_steps={warmup} --log_every_steps={every}
"""
_LENGTHS = "--max_seq_length={length} --max_predictions_per_seq={predictions}"
_DATA_AND_MODEL = """--do_train --do_eval --input_file={out}/train.tfrecord
  --eval_input_file={out}/heldout.tfrecord --eval_batch_size=64 --max_eval_steps=0
  --model_size=tiny --config_overrides=max_position_embeddings=128 {lengths}"""
_MASKS = """
# Masks: predict the masked words before pretraining
fill_mask --init_checkpoint={out}/untrained --text=- --top_k=3 < {out}/masked.txt
# Masks: predict the masked words after pretraining
fill_mask --init_checkpoint={out}/pretraining --text=- --top_k=3 < {out}/masked.txt
"""
_CLASSIFICATION = """
# Classification: fine-tune from {start} weights
run_classifier --train_file={topics_train} --eval_file={topics_dev}
  --predict_file={topics_test} --output_dir={out}/topics_from_{start} {from_start}
  --do_train --do_eval --do_predict --max_seq_length=32 --train_batch_size=16
  --num_train_epochs={epochs} --sweep=learning_rate={rates} --log_every_steps=10
"""
_OWN_MODEL = (
    "--vocab_file={out}/vocab.txt --bert_config_file={out}/pretraining/bert_config.json"
)
_STARTS = {
    "pretrained": f"--init_checkpoint={{out}}/pretraining {_OWN_MODEL}",
    "random": _OWN_MODEL,
    "released": "--init_checkpoint=bert-mini",  # 4 layers, 256 wide; 42 MB.
}
_SERVING = """
# Serving: export and query
export_saved_model --output_dir={out}/topics_from_pretrained
  --export_dir={out}/exported/1
query_saved_model --export_dir={out}/exported/1 --text=- < {out}/questions.txt
plot_run --run_dir={out}/pretraining --plot_file={out}/loss_curves.png
"""
_FILES = """Files
  loss curves       {out}/loss_curves.png
  pretrained model  {out}/pretraining
  classifier        {out}/topics_from_pretrained
  SavedModel        {out}/exported/1"""
# In the demo, and with --tiny.
_SIZES = {
    "vocab_size": (2000, 400),  # An upper limit.
    "length": (64, 32),
    "predictions": (10, 5),
    "passes": (100, 1),  # Over the text, each with different masks.
    "heldout_passes": (5, 1),
    "batch_size": (32, 8),
    "steps": (2000, 4),
    "warmup": (200, 1),
    "every": (20, 1),
    "epochs": (5, 1),
    "rates": ("0.0003,0.001", "0.001"),  # Of these, the dev rows choose one.
}
_SCORES = [
    f"{head}_{x}"
    for head in ("masked_lm", "next_sentence")
    for x in ("loss", "accuracy")
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunDemoOptions(options_module.Options):
    """Runs the tools in turn, from raw text to a served answer, in minutes on a CPU.

    Each command is shown as you would type it. The demo ends with a report and keeps
    all its files in the output folder.
    """

    after_interrupt: ClassVar[str] = "The same command starts the demo again."

    output_dir: str = option(
        "demo_run",
        help="Folder for all files. The files of an earlier demo are replaced.",
    )
    corpus_file: str | None = option(
        None,
        help="Your own text to pretrain on; file names and globs, separated by commas. "
        "One sentence per line with blank lines between documents, or prose in "
        "paragraphs. Default: the sample text of the package.",
    )
    tiny: bool = option(False, help="For tests: trained too briefly to learn.")


def _show(text: str) -> None:
    # Flushed, so that the commands stay in order with the output of their tools.
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(options: RunDemoOptions, show: Callable[[str], None] = _show) -> str:
    """Runs every stage with the tool that a user would run, and returns the report.

    Args:
        options: of the tool.
        show: called with each piece of text to show.

    Raises:
        ValueError: the text is not suitable, a stage failed, or the output folder
            contains files that are not from an earlier demo.
    """
    started = time.monotonic()
    out = options.output_dir
    with locks.output_folder(out):
        _replace_folder(out)
        sizes = {name: pair[options.tiny] for name, pair in _SIZES.items()}
        values: dict[str, Any] = sizes | {"out": out, **_corpus(options)}
        for part in ("train", "dev", "test"):
            values[f"topics_{part}"] = notebook.sample_file(f"topics_{part}.tsv")
        _run_commands(_PRETRAINING, values, show)
        vocab_file = f"{out}/vocab.txt"
        masked = notebook.masked_texts(
            values["heldout"], 5, train_file=values["train"], vocab_file=vocab_file
        )
        _write_lines(f"{out}/masked.txt", [text for text, _ in masked])
        fillings = _run_commands(_MASKS, values, show)
        accuracies = _classify(values, show, is_tiny=options.tiny)
        questions = notebook.labelled_rows(values["topics_test"])[:4]
        _write_lines(f"{out}/questions.txt", [text for text, _ in questions])
        _, answers, _ = _run_commands(_SERVING, values, show)
        minutes = (time.monotonic() - started) / 60
        parts = [f"=== Report: {minutes:.1f} minutes ===", _pretraining_table(out)]
        parts += [_masks_table(masked, fillings), accuracies]
        parts += [_answers_table(questions, answers), _FILES.format(out=out)]
        report = "\n\n".join(parts)
        _write_lines(f"{out}/report.txt", [report])
    return report


def _run_commands(commands, values, show):
    """Shows and runs commands, each as it is typed, and returns their outputs."""
    values = {name: shlex.quote(str(value)) for name, value in values.items()}
    values["lengths"] = _LENGTHS.format(**values)
    values["data_and_model"] = _DATA_AND_MODEL.format(**values)
    values["from_start"] = _STARTS[values.get("start", "random")].format(**values)
    outputs = []
    for text in re.split(r"\n(?! )", commands.strip().format(**values)):
        if text.startswith("#"):
            show(f"\n==={text.removeprefix('#')} ===")
            continue
        (tool, *flags), stdin = map(shlex.split, (text + " < ").split(" < ")[:2])
        show("\n$ " + " \\\n    ".join(re.split(r"\s+(?=--|< )", text)))
        with open((stdin or [os.devnull])[0], encoding="utf-8") as file:
            done = subprocess.run(
                [sys.executable, "-m", f"bert_tf.tools.{tool}", *flags],
                stdin=file,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
        if done.returncode != 0:
            raise ValueError(f"The command ended with exit code {done.returncode}.")
        show(done.stdout.rstrip())
        outputs.append(done.stdout)
    return outputs


def _classify(values, show, *, is_tiny):
    """Fine-tunes from each start, and returns a table of accuracies."""
    tables = [values[f"topics_{part}"] for part in ("train", "dev", "test")]
    train, *evaluation = (
        [label for _, label in notebook.labelled_rows(table)] for table in tables
    )
    majority = statistics.mode(train)
    baselines = [labels.count(majority) / len(labels) for labels in evaluation]
    rows: list[tuple[str, ...]] = [("start", "learning rate", "dev", "test", "")]
    rows.append(("majority class", "", *(f"{x:.3f}" for x in baselines), ""))
    for start in [name for name in _STARTS if name != "released" or not is_tiny]:
        try:
            _run_commands(_CLASSIFICATION, values | {"start": start}, show)
        except ValueError:
            if start != "released":
                raise
            rows.append(("The released encoder bert-mini was left out: see above.",))
            continue
        folder = f"{values['out']}/topics_from_{start}"
        lines = files.read_lines(f"{folder}/predictions.jsonl")
        predictions = [json.loads(line)["label"] for line in lines]
        pairs = zip(predictions, evaluation[1], strict=True)
        test = statistics.mean(predicted == label for predicted, label in pairs)
        rate = files.read_json(f"{folder}/run.json")["flags"]["learning_rate"]
        dev = _results(folder)["eval_accuracy"]
        verdict = verdicts.verdict("accuracy", test, baselines[1])
        scores = (f"{rate:g}", f"{dev:.3f}", f"{test:.3f}", verdict)
        rows.append((f"{start} weights", *scores))
    rows.append(("The dev sentences chose the learning rate.",))
    return _table("Accuracy of the topic classifier", rows)


def _pretraining_table(out):
    before, after = (_results(f"{out}/{run}") for run in ("untrained", "pretraining"))
    baselines = files.read_json(f"{out}/pretraining/plot_data.json")["baselines"]
    rows: list[tuple[str, ...]] = [("", "before", "after", "baseline", "", "")]
    for key in _SCORES:
        if key in after:  # There may be no sentence pairs.
            baseline = baselines.get(f"eval_{key}", {})
            value = baseline.get("value")
            scores = [before[key], after[key], value]
            cells = ["" if score is None else f"{score:.3f}" for score in scores]
            verdict = verdicts.verdict(key, after[key], value)
            rows.append((key, *cells, baseline.get("name", ""), verdict))
    return _table("Held-out text, before and after pretraining", rows)


def _masks_table(masked, fillings):
    """Returns what both models predict, from the outputs of fill_mask."""
    lines = [output.splitlines() for output in fillings]
    predictions = [[x.strip() for x in part if x.startswith(" ")] for part in lines]
    rows: list[tuple[str, ...]] = []
    for (text, word), before, after in zip(masked, *predictions, strict=True):
        rows += [(text,), ("  masked word", word)]
        rows += [("  before pretraining", before), ("  after pretraining", after)]
    return _table("Masked words of the held-out text", rows)


def _answers_table(questions, answers):
    rows = [("sentence", "predicted", "probability", "")]
    answers = map(json.loads, answers.splitlines())
    for (text, label), answer in zip(questions, answers, strict=True):
        predicted = answer["label"]
        remark = "correct" if predicted == label else f"should be {label}"
        probability = f"{answer['probabilities'][predicted]:.3f}"
        rows.append((text, predicted, probability, remark))
    return _table("Predictions of the exported model", rows)


def _table(title, rows):
    """Returns a title above aligned columns. A row of one cell may be wider."""
    columns = zip(*(row for row in rows if len(row) > 1), strict=True)
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(map(str.ljust, row, widths if len(row) > 1 else [0])) for row in rows
    ]
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])


def _results(folder):
    lines = files.read_lines(f"{folder}/eval_results.txt")
    return {key: float(value) for key, value in (x.split(" = ") for x in lines)}


def _corpus(options):
    """Returns {"train": path, "heldout": path} of the text to pretrain on."""
    if options.corpus_file is None:
        heldout = notebook.sample_file("corpus_heldout.txt")
        return {"train": notebook.sample_file("corpus.txt"), "heldout": heldout}
    paths = files.expand(options.corpus_file)
    documents = [text for path in paths for text in _documents(files.read_lines(path))]
    if len(documents) < MIN_DOCUMENTS:
        raise ValueError(
            f"{options.corpus_file} contains {len(documents)} documents, but the demo "
            f"needs at least {MIN_DOCUMENTS}. Put a blank line between documents."
        )
    every = min(_HELD_OUT_EVERY, len(documents) // 2)
    train = [text for index, text in enumerate(documents) if index % every]
    corpus = {}
    for name, texts in (("train", train), ("heldout", documents[::every])):
        corpus[name] = os.path.join(options.output_dir, f"{name}.txt")
        _write_lines(corpus[name], ["\n\n".join(texts)])
    return corpus


def _documents(lines):
    """Yields paragraphs, one sentence per line. A paragraph in one line is split."""
    sentences = []
    for line in [*map(str.strip, lines), ""]:
        if line:
            sentences.append(line)
        elif sentences:
            is_one_line = len(sentences) == 1
            split = _SENTENCE_END.split(sentences[0]) if is_one_line else sentences
            yield "\n".join(split)
            sentences = []


def _write_lines(path, lines):
    with files.complete_or_absent(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _replace_folder(folder):
    names = [name for name in files.list_folder(folder) if name != locks.LOCK_FILE]
    if names and MARKER_FILE not in names:
        raise ValueError(
            f"{folder} contains files that are not from an earlier demo; choose "
            "another --output_dir."
        )
    # The marker is removed last, so the next demo can replace a killed one's folder.
    for name in sorted(names, key=lambda name: name == MARKER_FILE):
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else files.remove(path)
    with files.open_file(os.path.join(folder, MARKER_FILE), "w"):
        pass
