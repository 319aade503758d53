"""A faulty training or evaluation file ends a tool before it trains.

The faults are in the files to evaluate on, which are the last to be needed.
"""

import json

import pytest

CHOICES = "id\tstartphrase\tending0\tending1\tlabel\n"
QUERY = '{"id": "a", "query": "the bee", "passage": "honey and wax"}\n'
RANKED = QUERY + '{"id": "b", "query": "the lamp", "passage": "light"}\n'
TAGGED = "Anna B-PER\nis O\n\nin O\nLund B-LOC\n"
TEXTS = "id\ttext\tlabel\n1\twet\train\n2\tdry\tsun\n"


def article(context="Anna Holt built it."):
    answers = [{"text": "Anna", "answer_start": 0}]
    question = {"id": "a", "question": "Who?", "answers": answers}
    paragraph = {"qas": [question], "context": context}
    return json.dumps({"data": [{"paragraphs": [paragraph]}]})


# Tool -> the name of its good file, what is in it, and the flags that name both files.
GOOD = {
    "run_classifier": (
        "train.tsv",
        TEXTS,
        {"train_file": "train.tsv", "eval_file": "dev.tsv"},
    ),
    "run_ner": ("train.txt", TAGGED, {"data_dir": ""}),
    "run_swag": (
        "train.tsv",
        CHOICES + "a\tthe bee\tis warm\tball\t0\n",
        {"train_file": "train.tsv", "eval_file": "dev.tsv"},
    ),
    "run_squad": (
        "train.json",
        article(),
        {"train_file": "train.json", "predict_file": "dev.json"},
    ),
    "run_retrieval": (
        "train.jsonl",
        RANKED,
        {
            "train_file": "train.jsonl",
            "eval_file": "dev.jsonl",
            "corpus_file": "train.jsonl",
        },
    ),
}


@pytest.mark.parametrize(
    "tool, content, message",
    [
        (
            "run_classifier",
            TEXTS + "3\tcold\tsnow\n",
            "dev.tsv:4: the label 'snow' is not one of rain, sun",
        ),
        ("run_ner", "a B-PER\n\nb I-PER\n", "dev.txt:3: 'I-PER' cannot start an ent"),
        ("run_swag", CHOICES + "a\tb\tc\td\t2\n", "dev.tsv:2: the label is"),
        ("run_squad", article(" "), "article 1, paragraph 1: its context is bl"),
        ("run_retrieval", QUERY * 2, "dev.jsonl:2: the id 'a' is already used by"),
    ],
)
def test_a_fault_ends_in_one_line_before_anything_is_written(
    run_tool, golden, tmp_path, tool, content, message
):
    name, good, flags = GOOD[tool]
    (tmp_path / name).write_text(good)
    (tmp_path / name.replace("train", "dev")).write_text(content)
    result = run_tool(
        tool,
        "--do_train",
        "--do_eval",
        *(f"--{flag}={tmp_path / file}" for flag, file in flags.items()),
        f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
        f"--vocab_file={golden / 'vocab.txt'}",
        f"--output_dir={tmp_path / 'run'}",
        "--train_batch_size=1",
        "--max_seq_length=16",
        *(["--max_query_length=4"] if tool in ("run_squad", "run_retrieval") else []),
    )
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith(f"{tool}: ")
    assert str(tmp_path) in line
    assert message in line
    assert not (tmp_path / "run").exists()
