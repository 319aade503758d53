"""Part of squad: this package."""

import gc
import json
import sys
import time

import numpy as np
import report
import squad_scores

from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples
from bert_tf.tasks.question_answering import features
from bert_tf.tasks.question_answering import predictions
from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.tokenization import full


def main():
    """Answers the driver."""
    task = json.loads(sys.argv[1])
    sizes = question_answering_windows.WindowSizes(
        max_seq_length=task["max_seq_length"],
        max_query_length=64,
        doc_stride=task["doc_stride"],
    )
    rules = predictions.Rules(
        n_best_size=task["n_best_size"],
        max_answer_length=task["max_answer_length"],
        version_2_with_negative=False,
    )

    def windows_of(path, is_training):
        # A new tokenizer, because it remembers the words that it has seen.
        tokenizer = full.FullTokenizer(task["vocab_file"], do_lower_case=True)
        file = examples.read_squad(path)
        found = file.examples
        if is_training:
            found = examples.training_examples(file, version_2_with_negative=False)
        return features.convert_examples_to_features(
            found, tokenizer, sizes, is_training=is_training
        )

    dev_windows = windows_of(task["dev_file"], is_training=False)
    start_logits, end_logits = squad_scores.random_scores(
        len(dev_windows), task["max_seq_length"]
    )

    def measure():
        started = time.perf_counter()
        windows = windows_of(task["train_file"], is_training=True)
        # The padded rows, which Hugging Face makes too. All at once would take 400 MB.
        for first in range(0, len(windows), 10000):
            windows.rows(np.arange(first, min(first + 10000, len(windows))))
        read = time.perf_counter()
        tokenizer = full.FullTokenizer(task["vocab_file"], do_lower_case=True)
        predictions.predictions_of(
            dev_windows,
            (start_logits, end_logits),
            rules,
            alignment.Aligner(tokenizer.vocabulary, do_lower_case=True),
        )
        return {
            "features_seconds": read - started,
            "answers_seconds": time.perf_counter() - read,
            "num_windows": len(windows),
        }

    gc.set_threshold(10_000, 10, 50)  # As in every command.
    report.serve(measure, versions=report.versions("numpy"))


if __name__ == "__main__":
    main()
