"""The stages of the demo, from raw text to a served answer."""

import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from bert_tf import files
from bert_tf import locks
from bert_tf.demo import options as demo_options
from bert_tf.demo import recipe
from bert_tf.demo import report
from bert_tf.demo import shell
from bert_tf.demo import text

# Marks the output folder of a demo, which a later demo may replace.
MARKER_FILE = "made_by_run_demo"
NUM_MASKED_TEXTS = 5
NUM_QUESTIONS = 4
NUM_PIECES = 3  # Candidates to show for each mask.
RELEASED_ENCODER = "bert-mini"  # 4 layers, 256 wide; 42 MB.


def _show(text: str) -> None:
    # Flushed, so that the commands stay in order with the output of their tools.
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(
    options: demo_options.RunDemoOptions, *, show: Callable[[str], None] = _show
) -> str:
    """Runs every stage with the tool that a user would run, and returns the report.

    Args:
        options: of the tool.
        show: called with each piece of text to show.

    Raises:
        ValueError: the text is not suitable, a stage failed, or the output folder
            contains files that are not from an earlier demo.
    """
    with locks.output_folder(options.output_dir):
        _replace_folder(options.output_dir)
        return _run_all(options, show)


def _run_all(options, show):
    started = time.monotonic()
    demo = Demo(options, show=show)
    demo.learn_vocabulary()
    demo.create_examples()
    pretraining = demo.pretrain()
    filled = demo.fill_masks()
    frequent_pieces = demo.frequent_pieces()
    classification = demo.classify()
    answers = demo.export_and_query()
    outcome = report.Outcome(
        pretraining=pretraining,
        classification=classification,
        filled_masks=filled,
        frequent_pieces=frequent_pieces,
        answers=answers,
        output_dir=options.output_dir,
        curves_file=demo.plot_curves(),
        minutes=(time.monotonic() - started) / 60,
    )
    with files.complete_or_absent(demo.path("report.html")) as file:
        file.write(report.page(outcome))
    written = report.text(outcome)
    with files.complete_or_absent(demo.path("report.txt")) as file:
        file.write(written + "\n")
    return written


class Demo:
    """The stages. They exchange files through one folder.

    Args:
        options: of the tool.
        show: called with each piece of text to show.
    """

    def __init__(
        self, options: demo_options.RunDemoOptions, *, show: Callable[[str], None]
    ) -> None:
        self._output_dir = options.output_dir
        self._show = show
        self._shell = shell.Shell(show)
        self._is_tiny = options.tiny
        self._recipe = recipe.TINY if options.tiny else recipe.FULL
        self._corpus = text.prepare_corpus(options.corpus_file, options.output_dir)
        self._topics = {
            part: text.sample_file(f"topics_{part}.tsv")
            for part in ("train", "dev", "test")
        }

    def path(self, *names: str) -> str:
        """Returns a path in the demo's folder."""
        return os.path.join(self._output_dir, *names)

    def learn_vocabulary(self) -> None:
        """Learns a vocabulary and writes the model configuration."""
        self._title("Vocabulary: learn word pieces from the text")
        self._shell.run(
            "build_vocabulary",
            input_file=self._corpus.train_file,
            vocab_file=self.path("vocab.txt"),
            vocab_size=self._recipe.vocab_size,
        )
        vocab_size = sum(1 for _ in files.read_lines(self.path("vocab.txt")))
        with files.complete_or_absent(self.path("bert_config.json")) as file:
            json.dump(self._recipe.bert_config(vocab_size), file, indent=2)

    def create_examples(self) -> None:
        """Creates masked examples of the training and the held-out text."""
        self._title("Examples: mask words")
        for part, text_file, dupe_factor in (
            ("train", self._corpus.train_file, self._recipe.dupe_factor),
            ("heldout", self._corpus.heldout_file, self._recipe.heldout_dupe_factor),
        ):
            self._shell.run(
                "create_pretraining_data",
                input_file=text_file,
                output_file=self.path(f"{part}.tfrecord"),
                vocab_file=self.path("vocab.txt"),
                dupe_factor=dupe_factor,
                next_sentence=self._recipe.next_sentence,
                **self._lengths(),
            )

    def pretrain(self) -> report.Pretraining:
        """Evaluates random weights, trains, and evaluates again."""
        self._title("Pretraining: held-out losses before training")
        evaluation: dict[str, Any] = {
            "bert_config_file": self.path("bert_config.json"),
            "do_eval": True,
            "eval_batch_size": 64,
            "max_eval_steps": 0,
            **self._lengths(),
        }
        self._shell.run(
            "run_pretraining",
            input_file=self.path("train.tfrecord"),
            eval_input_file=self.path("heldout.tfrecord"),
            output_dir=self.path("untrained"),
            # One step with a learning rate of 0 saves the random weights.
            do_train=True,
            train_batch_size=1,
            learning_rate=0,
            num_train_steps=1,
            num_warmup_steps=0,
            **evaluation,
        )
        self._title("Pretraining: training, and held-out losses after it")
        steps = self._recipe.pretraining_steps
        self._shell.run(
            "run_pretraining",
            input_file=self.path("train.tfrecord"),
            eval_input_file=self.path("heldout.tfrecord"),
            output_dir=self.path("pretraining"),
            do_train=True,
            train_batch_size=self._recipe.pretraining_batch_size,
            learning_rate=self._recipe.pretraining_rate,
            num_train_steps=steps,
            num_warmup_steps=steps // 10,
            log_every_steps=max(1, steps // 100),
            eval_every_steps=max(1, steps // 10),
            **evaluation,
        )
        return report.Pretraining(
            before=_results(self.path("untrained")),
            after=_results(self.path("pretraining")),
            baselines=files.read_json(self.path("pretraining", "plot_data.json"))[
                "baselines"
            ],
        )

    def fill_masks(self) -> list[report.FilledMask]:
        """Masks words in held-out sentences and lets both models predict them."""
        masked = text.masked_texts(
            self._corpus.heldout_file,
            NUM_MASKED_TEXTS,
            train_file=self._corpus.train_file,
            vocab_file=self.path("vocab.txt"),
        )
        texts = self._write_lines("masked.txt", [one.text for one in masked])
        predicted = {}
        for state, folder in (("before", "untrained"), ("after", "pretraining")):
            self._title(f"Masks: predict the masked words {state} pretraining")
            printed = self._shell.run(
                "fill_mask",
                stdin=texts,
                init_checkpoint=self.path(folder),
                text="-",
                top_k=NUM_PIECES,
            )
            lines = printed.splitlines()
            predicted[state] = [x.strip() for x in lines if x.startswith(" ")]
        return [
            report.FilledMask(text=one.text, word=one.word, before=before, after=after)
            for one, before, after in zip(masked, *predicted.values(), strict=True)
        ]

    def frequent_pieces(self) -> str:
        """Returns the most frequent words of the training text with their shares."""
        counts = text.word_counts(self._corpus.train_file)
        return ", ".join(
            f"{word} {count / counts.total():.3f}"
            for word, count in counts.most_common(NUM_PIECES)
        )

    def classify(self) -> report.Classification:
        """Fine-tunes from pretrained weights, random ones and a released encoder."""
        own = {
            "vocab_file": self.path("vocab.txt"),
            "bert_config_file": self.path("bert_config.json"),
        }
        starts = [
            self._classify(
                "pretrained", init_checkpoint=self.path("pretraining"), **own
            ),
            self._classify("random", init_checkpoint=None, **own),
        ]
        left_out = ""
        if not self._is_tiny:
            try:
                starts.append(
                    self._classify("released", init_checkpoint=RELEASED_ENCODER)
                )
            except ValueError:
                left_out = (
                    f"{RELEASED_ENCODER}, a small released encoder, was left out: it "
                    "could not be downloaded or fine-tuned; see the message above."
                )
                self._show(left_out)
        rows = {part: text.labelled_rows(path) for part, path in self._topics.items()}
        return report.Classification(
            num_dev=len(rows["dev"]),
            num_test=len(rows["test"]),
            num_epochs=self._recipe.fine_tuning_epochs,
            starts=starts,
            majority_dev=_majority_accuracy(rows["train"], rows["dev"]),
            majority_test=_majority_accuracy(rows["train"], rows["test"]),
            left_out=left_out,
        )

    def _classify(self, start: str, **flags: str | None) -> report.Start:
        """Fine-tunes with each learning rate of the recipe; the dev rows choose."""
        self._title(f"Classification: fine-tune from {start} weights")
        folder = self.path(f"topics_from_{start}")
        rates = self._recipe.fine_tuning_rates
        self._shell.run(
            "run_classifier",
            train_file=self._topics["train"],
            eval_file=self._topics["dev"],
            predict_file=self._topics["test"],
            **flags,
            output_dir=folder,
            do_train=True,
            do_eval=True,
            do_predict=True,
            max_seq_length=self._recipe.text_length,
            train_batch_size=self._recipe.fine_tuning_batch_size,
            num_train_epochs=self._recipe.fine_tuning_epochs,
            sweep=f"learning_rate={','.join(map(str, rates))}",
            log_every_steps=10,
        )
        lines = files.read_lines(os.path.join(folder, "predictions.jsonl"))
        predicted = [json.loads(line)["label"] for line in lines]
        labels = [label for _, label in text.labelled_rows(self._topics["test"])]
        correct = [a == b for a, b in zip(predicted, labels, strict=True)]
        flags_of_best = files.read_json(os.path.join(folder, "run.json"))["flags"]
        return report.Start(
            name=f"{start} weights",
            learning_rate=flags_of_best["learning_rate"],
            dev=_results(folder)["eval_accuracy"],
            test=sum(correct) / len(correct),
        )

    def export_and_query(self) -> list[report.Answer]:
        """Exports a SavedModel and queries it with held-out sentences."""
        self._title("Serving: export and query")
        export_dir = self.path("exported", "1")
        self._shell.run(
            "export_saved_model",
            output_dir=self.path("topics_from_pretrained"),
            export_dir=export_dir,
        )
        rows = text.labelled_rows(self._topics["test"])[:NUM_QUESTIONS]
        questions = self._write_lines("questions.txt", [query for query, _ in rows])
        printed = self._shell.run(
            "query_saved_model", stdin=questions, export_dir=export_dir, text="-"
        )
        answers = [json.loads(line) for line in printed.splitlines()]
        return [
            report.Answer(
                text=query,
                label=label,
                predicted=answer["label"],
                probability=answer["probabilities"][answer["label"]],
            )
            for (query, label), answer in zip(rows, answers, strict=True)
        ]

    def plot_curves(self) -> str:
        """Plots the losses of pretraining and returns the image's path."""
        self._title("Curves")
        picture = self.path("loss_curves.png")
        self._shell.run("plot_run", run_dir=self.path("pretraining"), plot_file=picture)
        return picture

    def _lengths(self) -> dict[str, Any]:
        return {
            "max_seq_length": self._recipe.max_seq_length,
            "max_predictions_per_seq": self._recipe.max_predictions_per_seq,
        }

    def _title(self, title: str) -> None:
        self._show(f"\n=== {title} ===")

    def _write_lines(self, name: str, lines: Iterable[str]) -> str:
        with files.complete_or_absent(self.path(name)) as file:
            file.writelines(f"{line}\n" for line in lines)
        return self.path(name)


def _results(folder: str) -> dict[str, float]:
    lines = files.read_lines(os.path.join(folder, "eval_results.txt"))
    pairs = [line.split(" = ") for line in lines]
    return {key: float(value) for key, value in pairs}


def _majority_accuracy(
    train_rows: list[tuple[str, str]], test_rows: list[tuple[str, str]]
) -> float:
    most_common = Counter(label for _, label in train_rows).most_common(1)[0][0]
    return sum(label == most_common for _, label in test_rows) / len(test_rows)


def _replace_folder(folder: str) -> None:
    found = [name for name in files.list_folder(folder) if name != locks.LOCK_FILE]
    if found and MARKER_FILE not in found:
        raise ValueError(
            f"{folder} contains files that are not from an earlier demo; choose "
            "another --output_dir."
        )
    # The marker is removed last, so the next demo can replace a killed one's folder.
    for name in sorted(found, key=lambda name: name == MARKER_FILE):
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else files.remove(path)
    with files.open_file(os.path.join(folder, MARKER_FILE), "w"):
        pass
