"""Compares SQuAD's preparation and post-processing with Hugging Face's scripts.

Two stages are measured: the windows of all training questions, from the JSON file to
arrays, and the answers to all questions of the dev file, from scores of windows (here
random ones) to texts. Hugging Face's stages are those of its run_qa.py, without
`datasets`. They are also measured with Python collecting garbage as rarely as in this
package's commands, which its scripts do not set.

    python benchmarks/squad.py --vocab_file=vocab.txt --train_file=train-v1.1.json \\
        --dev_file=dev-v1.1.json
"""

import gc
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import report

OURS = "bert_tf"
THEIRS = "Hugging Face"
THEIRS_TUNED = "Hugging Face, rare garbage collection"
STAGES = {
    "features_seconds": "windows of the training questions",
    "answers_seconds": "answers to the dev questions",
}
BATCH_SIZE = 1000  # Questions per call of the tokenizer: the default of `map`.


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--vocab_file", required=True, help="vocabulary of an uncased model")
    add("--train_file", required=True, help="train-v1.1.json")
    add("--dev_file", required=True, help="dev-v1.1.json")
    add("--num_rounds", type=int, default=5, help="measurements of each library")
    return parser.parse_args()


def main():
    """Measures both libraries and writes the rows."""
    args = arguments()
    task = {
        "vocab_file": args.vocab_file,
        "train_file": args.train_file,
        "dev_file": args.dev_file,
        "max_seq_length": 384,
        "doc_stride": 128,
        "n_best_size": 20,
        "max_answer_length": 30,
    }
    peers = {OURS: report.start(__file__, "bert_tf", task, python=sys.executable)}
    for name in (THEIRS, THEIRS_TUNED):
        settings = task | {"collects_rarely": name == THEIRS_TUNED}
        peers[name] = report.start(
            __file__, "hugging_face", settings, python=report.peers_python()
        )
    rounds = report.interleave(peers, args.num_rounds)
    rows = []
    for stage, title in STAGES.items():
        seconds = {name: [one[stage] for one in rounds[name]] for name in peers}
        medians = {name: statistics.median(seconds[name]) for name in peers}
        cells = [report.median_and_spread(seconds[name], 2) for name in peers]
        ratios = (medians[name] / medians[OURS] for name in (THEIRS, THEIRS_TUNED))
        rows.append([title, *cells, *ratios])
    report.write_table(
        "SQuAD",
        ["stage", *(f"{name}, s" for name in peers), "ratio", "ratio, rare"],
        rows,
        num_keys=1,
        versions=report.all_versions(peers),
    )
    for name, peer in peers.items():
        windows = rounds[name][0]["num_windows"]
        print(f"{name}: {windows} windows, {peer.close() / 1e9:.1f} GB of memory")


def serve(make_windows, find_answers, *packages):
    """Answers the driver with the seconds of both stages.

    Args:
        make_windows: function without arguments that returns the number of windows.
        find_answers: function without arguments.
        *packages: whose versions are reported.
    """

    def measure():
        started = time.perf_counter()
        num_windows = make_windows()
        return {
            "features_seconds": time.perf_counter() - started,
            "answers_seconds": report.seconds_of(find_answers),
            "num_windows": num_windows,
        }

    report.serve(measure, versions=report.versions(*packages))


def random_scores(num_windows, length):
    """Returns start and end logits, float32 [W, S] each.

    Like those of a trained model, the best ones of a window are close to each other.
    """
    generator = np.random.default_rng(7)
    noise = generator.normal(size=(2, num_windows, length))
    center = generator.integers(15, 80, size=(num_windows, 1))
    distance = (np.arange(length)[None] - center) / 8
    return (noise + 8 * np.exp(-np.square(distance))).astype(np.float32)


def serve_bert_tf(task):
    """Serves this package's stages."""
    from bert_tf.tasks.question_answering import alignment
    from bert_tf.tasks.question_answering import examples
    from bert_tf.tasks.question_answering import features
    from bert_tf.tasks.question_answering import predictions
    from bert_tf.tokenization import full

    sizes = features.WindowSizes(
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
        questions = file.examples
        if is_training:
            questions = examples.training_examples(file, version_2_with_negative=False)
        return features.convert_examples_to_features(
            questions, tokenizer, sizes, is_training=is_training
        )

    dev_windows = windows_of(task["dev_file"], is_training=False)
    logits = random_scores(len(dev_windows), task["max_seq_length"])

    def make_windows():
        windows = windows_of(task["train_file"], is_training=True)
        # The padded rows, which Hugging Face makes too. All at once would take 400 MB.
        for first in range(0, len(windows), 10000):
            windows.rows(np.arange(first, min(first + 10000, len(windows))))
        return len(windows)

    def find_answers():
        tokenizer = full.FullTokenizer(task["vocab_file"], do_lower_case=True)
        aligner = alignment.Aligner(tokenizer.vocabulary, do_lower_case=True)
        predictions.predictions_of(dev_windows, tuple(logits), rules, aligner)

    gc.set_threshold(10_000, 10, 50)  # As in every command.
    serve(make_windows, find_answers, "numpy")


def serve_hugging_face(task):
    """Serves the stages of Hugging Face's run_qa.py."""
    import transformers

    if task["collects_rarely"]:
        gc.freeze()
        gc.set_threshold(10_000, 10, 50)
    tokenizer = transformers.BertTokenizerFast(task["vocab_file"], do_lower_case=True)
    windows = read_dev_windows(tokenizer, task["dev_file"], task)
    logits = random_scores(len(windows[1]), task["max_seq_length"])
    serve(
        lambda: len(training_windows(tokenizer, task["train_file"], task)[0]),
        lambda: answers(windows, *logits, task),
        *("transformers", "tokenizers"),
    )


def read_questions(path):
    """Returns the questions of a SQuAD file, with their contexts and answers."""
    data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["data"]
    return [
        {
            "question": row["question"].lstrip(),
            "context": paragraph["context"],
            "answer": row["answers"][0],
        }
        for article in data
        for paragraph in article["paragraphs"]
        for row in paragraph["qas"]
    ]


def tokenized(tokenizer, rows, task):
    """Returns the windows of some questions, with offsets in the context."""
    return tokenizer(
        [row["question"] for row in rows],
        [row["context"] for row in rows],
        truncation="only_second",
        max_length=task["max_seq_length"],
        stride=task["doc_stride"],
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="max_length",
    )


def training_windows(tokenizer, path, task):
    """Returns the ids, and the answers' first and last positions, of all windows."""
    rows = read_questions(path)
    ids, starts, ends = [], [], []
    for first in range(0, len(rows), BATCH_SIZE):
        part = rows[first : first + BATCH_SIZE]
        windows = tokenized(tokenizer, part, task)
        owners = windows["overflow_to_sample_mapping"]
        for number, offsets in enumerate(windows["offset_mapping"]):
            answer = part[owners[number]]["answer"]
            start, end = answer_positions(offsets, windows.sequence_ids(number), answer)
            starts.append(start)
            ends.append(end)
        ids += windows["input_ids"]
    return ids, starts, ends


def answer_positions(offsets, sequence_ids, answer):
    """Returns the positions of the answer's pieces; (0, 0) if it is not inside."""
    begin = answer["answer_start"]
    stop = begin + len(answer["text"])
    first = sequence_ids.index(1)
    last = len(sequence_ids) - 1
    while sequence_ids[last] != 1:
        last -= 1
    if offsets[first][0] > begin or offsets[last][1] < stop:
        return 0, 0
    while first < len(offsets) and offsets[first][0] <= begin:
        first += 1
    while offsets[last][1] >= stop:
        last -= 1
    return first - 1, last + 1


def read_dev_windows(tokenizer, path, task):
    """Returns the questions, the owner of each window, and its offsets or None."""
    rows = read_questions(path)
    owners, all_offsets = [], []
    for first in range(0, len(rows), BATCH_SIZE):
        windows = tokenized(tokenizer, rows[first : first + BATCH_SIZE], task)
        for number, offsets in enumerate(windows["offset_mapping"]):
            sequence_ids = windows.sequence_ids(number)
            owners.append(first + windows["overflow_to_sample_mapping"][number])
            all_offsets.append(
                [
                    offset if sequence_ids[place] == 1 else None
                    for place, offset in enumerate(offsets)
                ]
            )
    return rows, owners, all_offsets


def answers(windows, start_logits, end_logits, task):
    """Returns the best answers of each question, as dictionaries."""
    rows, owners, all_offsets = windows
    of_row = [[] for _ in rows]
    for number, owner in enumerate(owners):
        of_row[owner].append(number)
    best = []
    for row, numbers in zip(rows, of_row, strict=True):
        candidates = []
        for number in numbers:
            candidates += spans(
                start_logits[number], end_logits[number], all_offsets[number], task
            )
        candidates.sort(key=lambda one: one["score"], reverse=True)
        del candidates[task["n_best_size"] :]
        candidates = candidates or [{"offsets": (0, 0), "score": 0.0}]
        for one in candidates:
            begin, stop = one["offsets"]
            one["text"] = row["context"][begin:stop]
        scores = np.array([one["score"] for one in candidates])
        powers = np.exp(scores - scores.max())
        for one, probability in zip(candidates, powers / powers.sum(), strict=True):
            one["probability"] = probability
        best.append([_in_python(one) for one in candidates])
    return best


def _in_python(candidate):
    """Returns a candidate with numbers that can be written as JSON."""
    return {
        name: float(value) if isinstance(value, np.floating) else value
        for name, value in candidate.items()
    }


def spans(start_logits, end_logits, offsets, task):
    """Returns the candidates of one window."""
    count = task["n_best_size"]
    candidates = []
    ends = np.argsort(end_logits)[-1 : -count - 1 : -1].tolist()
    for start in np.argsort(start_logits)[-1 : -count - 1 : -1].tolist():
        for end in ends:
            if not offsets[start] or not offsets[end]:
                continue
            if end < start or end - start + 1 > task["max_answer_length"]:
                continue
            candidates.append(
                {
                    "offsets": (offsets[start][0], offsets[end][1]),
                    "score": start_logits[start] + end_logits[end],
                    "start_logit": start_logits[start],
                    "end_logit": end_logits[end],
                }
            )
    return candidates


if __name__ == "__main__":
    report.run(main, bert_tf=serve_bert_tf, hugging_face=serve_hugging_face)
