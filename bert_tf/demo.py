"""The demo: from the model in the package to a served answer, with the tools of a user.

1. The model fills masks.
2. It continues pretraining on text; its held-out loss falls.
3. A topic classifier is fine-tuned from it, and another one from random weights.
4. The classifier is exported as a SavedModel, which answers questions.
5. A report compares the results with what needs no model.
"""

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
from typing import Any
from typing import ClassVar

from bert_tf import files
from bert_tf import locks
from bert_tf import notebook
from bert_tf import options as options_module
from bert_tf.options import option

# Marks the output folder of a demo, which a later demo may replace.
MARKER_FILE = "made_by_run_demo"
MIN_DOCUMENTS = 4  # Of so few, half are held out.
_HELD_OUT_EVERY = 10  # Every tenth document of the user is held out.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"'”’)])\s+")
NUM_QUESTIONS = 10
MASKED = {  # Sentence -> the word that a reader expects.
    "She opened the [MASK] and went into the garden.": "door",
    "They sat by the fire and drank a cup of [MASK].": "tea",
    "There was not a cloud in the blue [MASK].": "sky",
    "She closed her [MASK] and fell asleep.": "eyes",
    "He read the letter twice and put it in his [MASK].": "pocket",
}
_MASKS = """
# 1. Masks: the model in the package, bert-tf-mini, predicts masked words
bert_tf fill-mask --init_checkpoint=bert-tf-mini --top_k=3
""" + "".join(f"  --text={shlex.quote(text)}\n" for text in MASKED)
_PRETRAINING = """
# 2. Pretraining: bert-tf-mini learns from more text
bert_tf pretrain --init_checkpoint=bert-tf-mini --input_file={train}
  --eval_input_file={heldout} --output_dir={out}/pretraining --do_train --do_eval
  --next_sentence=false --max_seq_length={length} --max_predictions_per_seq=10
  --train_batch_size=32 --eval_batch_size=64 --max_eval_steps=0 --learning_rate=3e-4
  --bias_correction --num_train_steps={steps} --num_warmup_steps={warmup}
  --eval_every_steps={every}
bert_tf plot --run_dir={out}/pretraining --plot_file={out}/loss_curves.png
"""
_CLASSIFICATION = """
# 3. Classification: topics of sentences, fine-tuned from {start} weights
bert_tf classify {start_flags} --output_dir={out}/topics_from_{start}
  --train_file={topics_train} --eval_file={topics_dev} --predict_file={topics_test}
  --do_train --do_eval --do_predict --max_seq_length=32 --train_batch_size=16
  --learning_rate=3e-4 --bias_correction --num_train_epochs={epochs}
"""
_STARTS = {
    "pretrained": "--init_checkpoint={out}/pretraining",
    "random": "--bert_config_file={out}/pretraining/bert_config.json "
    "--vocab_file={out}/pretraining/vocab.txt",
}
_SERVING = """
# 4. Serving: export the classifier and query the export
bert_tf export --output_dir={out}/topics_from_pretrained --export_dir={out}/exported/1
bert_tf query --export_dir={out}/exported/1
  --input_file={out}/questions.jsonl
"""
_FILES = """Files
  loss curves       {out}/loss_curves.png
  pretrained model  {out}/pretraining
  classifier        {out}/topics_from_pretrained
  SavedModel        {out}/exported/1"""
# In the demo, and with --tiny.
_SIZES = {
    "length": (64, 16),
    "steps": (200, 2),
    "warmup": (20, 1),
    "every": (50, 1),
    "epochs": (5.0, 0.1),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunDemoOptions(options_module.Options):
    """Runs the tools in turn, from masked words to a served answer, in five minutes.

    Each command is shown as you would type it. The demo ends with a report and keeps
    all its files in the output folder. It needs no network.
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


def run(options: RunDemoOptions) -> str:
    """Runs every stage with the tool that a user would run, and returns the report.

    Args:
        options: of the tool.

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
        test_rows = notebook.labelled_rows(values["topics_test"])
        questions = test_rows[:: len(test_rows) // NUM_QUESTIONS][:NUM_QUESTIONS]
        queries = [json.dumps({"text": text}) for text, _ in questions]
        _write_lines(f"{out}/questions.jsonl", queries)

        (fillings,) = _run_commands(_MASKS, values)
        _run_commands(_PRETRAINING, values)
        for start in _STARTS:
            _run_commands(_CLASSIFICATION, values | {"start": start})
        _, answers = _run_commands(_SERVING, values)

        minutes = (time.monotonic() - started) / 60
        parts = [f"=== 5. Report: {minutes:.1f} minutes ===", _masks_table(fillings)]
        parts += [_pretraining_table(out), _accuracies_table(values)]
        parts += [_answers_table(questions, answers), _FILES.format(out=out)]
        report = "\n\n".join(parts)
        _write_lines(f"{out}/report.txt", [report])
    return report


def _run_commands(commands, values):
    """Shows and runs commands, each as it is typed, and returns their outputs."""
    values = {name: shlex.quote(str(value)) for name, value in values.items()}
    values["start_flags"] = _STARTS[values.get("start", "random")].format(**values)
    outputs = []
    for text in re.split(r"\n(?! )", commands.strip().format(**values)):
        if text.startswith("#"):
            _show(f"\n==={text.removeprefix('#')} ===")
            continue
        _show("\n$ " + " \\\n    ".join(re.split(r"\s+(?=--)", text)))
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(text)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ValueError(f"The command ended with exit code {done.returncode}.")
        _show(done.stdout.rstrip())
        outputs.append(done.stdout)
    return outputs


def _masks_table(fillings):
    """Returns the predictions of fill-mask beside the expected words."""
    rows: list[tuple[str, ...]] = [("sentence", "expected", "predicted")]
    predicted = [line.strip() for line in fillings.splitlines() if line[:1] == " "]
    for (text, word), words in zip(MASKED.items(), predicted, strict=True):
        rows.append((text, word, words))
    return _table("Masked words, predicted by bert-tf-mini", rows)


def _pretraining_table(out):
    lines = map(json.loads, files.read_lines(f"{out}/pretraining/metrics.jsonl"))
    before = next(line for line in lines if "eval_masked_lm_loss" in line)
    after = _results(f"{out}/pretraining")
    rows = [("", "before", "after")]
    for key in ("masked_lm_loss", "masked_lm_accuracy"):
        rows.append((key, f"{before[f'eval_{key}']:.3f}", f"{after[key]:.3f}"))
    return _table("Held-out text, before and after continued pretraining", rows)


def _accuracies_table(values):
    """Returns the accuracies of the classifiers, and that of the largest class."""
    tables = [values[f"topics_{part}"] for part in ("train", "dev", "test")]
    train, *evaluation = (
        [label for _, label in notebook.labelled_rows(table)] for table in tables
    )
    majority = statistics.mode(train)
    baselines = [labels.count(majority) / len(labels) for labels in evaluation]
    rows: list[tuple[str, ...]] = [("start", "dev", "test")]
    rows.append(("majority class", *(f"{x:.3f}" for x in baselines)))
    for start in _STARTS:
        folder = f"{values['out']}/topics_from_{start}"
        lines = files.read_lines(f"{folder}/predictions.jsonl")
        predictions = [json.loads(line)["label"] for line in lines]
        pairs = zip(predictions, evaluation[1], strict=True)
        test = statistics.mean(predicted == label for predicted, label in pairs)
        dev = _results(folder)["eval_accuracy"]
        rows.append((f"{start} weights", f"{dev:.3f}", f"{test:.3f}"))
    return _table("Accuracy of the topic classifier, with the same settings", rows)


def _answers_table(questions, answers):
    rows = [("sentence", "answer", "probability", "")]
    num_correct = 0
    answers = map(json.loads, answers.splitlines())
    for (text, label), answer in zip(questions, answers, strict=True):
        predicted = answer["label"]
        num_correct += predicted == label
        remark = "correct" if predicted == label else f"should be {label}"
        probability = f"{answer['probabilities'][predicted]:.3f}"
        rows.append((text, predicted, probability, remark))
    title = f"Answers of the SavedModel: {num_correct} of {len(questions)} correct"
    return _table(title, rows)


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
