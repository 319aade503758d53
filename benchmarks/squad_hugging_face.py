"""Part of squad: the stages of Hugging Face's run_qa.py, without `datasets`."""

import gc
import json
import pathlib
import sys
import time

import numpy as np
import report
import squad_scores
import transformers

BATCH_SIZE = 1000  # Questions per call of the tokenizer: the default of `map`.


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
        found = tokenized(tokenizer, part, task)
        owners = found["overflow_to_sample_mapping"]
        for number, offsets in enumerate(found["offset_mapping"]):
            answer = part[owners[number]]["answer"]
            start, end = answer_positions(offsets, found.sequence_ids(number), answer)
            starts.append(start)
            ends.append(end)
        ids += found["input_ids"]
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


def dev_windows(tokenizer, path, task):
    """Returns the questions, the owner of each window, and its offsets or None."""
    rows = read_questions(path)
    owners, all_offsets = [], []
    for first in range(0, len(rows), BATCH_SIZE):
        found = tokenized(tokenizer, rows[first : first + BATCH_SIZE], task)
        for number, offsets in enumerate(found["offset_mapping"]):
            sequence_ids = found.sequence_ids(number)
            owners.append(first + found["overflow_to_sample_mapping"][number])
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
    found = []
    ends = np.argsort(end_logits)[-1 : -count - 1 : -1].tolist()
    for start in np.argsort(start_logits)[-1 : -count - 1 : -1].tolist():
        for end in ends:
            if not offsets[start] or not offsets[end]:
                continue
            if end < start or end - start + 1 > task["max_answer_length"]:
                continue
            found.append(
                {
                    "offsets": (offsets[start][0], offsets[end][1]),
                    "score": start_logits[start] + end_logits[end],
                    "start_logit": start_logits[start],
                    "end_logit": end_logits[end],
                }
            )
    return found


def main():
    """Answers the driver."""
    task = json.loads(sys.argv[1])
    if task["collects_rarely"]:
        gc.freeze()
        gc.set_threshold(10_000, 10, 50)
    tokenizer = transformers.BertTokenizerFast(task["vocab_file"], do_lower_case=True)
    windows = dev_windows(tokenizer, task["dev_file"], task)
    start_logits, end_logits = squad_scores.random_scores(
        len(windows[1]), task["max_seq_length"]
    )

    def measure():
        started = time.perf_counter()
        ids, _, _ = training_windows(tokenizer, task["train_file"], task)
        read = time.perf_counter()
        answers(windows, start_logits, end_logits, task)
        return {
            "features_seconds": read - started,
            "answers_seconds": time.perf_counter() - read,
            "num_windows": len(ids),
        }

    report.serve(measure, versions=report.versions("transformers", "tokenizers"))


if __name__ == "__main__":
    main()
