"""A faulty training or evaluation file ends a tool before it trains.

The faults are in the files to evaluate on, which are the last to be needed.
"""

import json

import pytest

CHOICES = "id\tstartphrase\tending0\tending1\tlabel\n"
LISTS = '{"startphrase": "the bee", "endings": ["a", "b"], "label": 0}\n'
QUERY = '{"id": "a", "query": "the bee", "passage": "honey and wax"}\n'
RANKED = QUERY + '{"id": "b", "query": "the lamp", "passage": "light"}\n'
TAGGED = "Anna B-PER\nis O\n\nin O\nLund B-LOC\n"
TEXTS = "id\ttext\tlabel\n1\twet\train\n2\tdry\tsun\n"


def article(context="Anna Holt built it.", names="a"):
    answers = [{"text": "Anna", "answer_start": 0}]
    questions = [{"id": x, "question": "Who?", "answers": answers} for x in names]
    paragraph = {"qas": questions} | ({} if context is None else {"context": context})
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
MISSING, UNSEEN, EMPTY, TWICE = "column missing", "label unseen", "empty", "id twice"


@pytest.mark.parametrize(
    "tool, fault, content, message",
    [
        ("run_classifier", MISSING, TEXTS + "3\twet\n", "dev.tsv:4: expected 3 col"),
        ("run_ner", MISSING, "a O\nb\n", "dev.txt:2: expected 2 columns as in line 1"),
        ("run_swag", MISSING, CHOICES + "a\tb\tc\t0\n", "dev.tsv:2: expected 5 col"),
        ("run_squad", MISSING, article(None), "dev.json: article 1, paragraph 1: cont"),
        (
            "run_retrieval",
            MISSING,
            QUERY + '{"query": "who"}\n',
            "dev.jsonl:2: there is no column 'passage'",
        ),
        (
            "run_classifier",
            UNSEEN,
            TEXTS + "3\tcold\tsnow\n",
            "dev.tsv:4: the label 'snow' is not one of rain, sun",
        ),
        (
            "run_ner",
            UNSEEN,
            "a O\n2 B-DATE\n",
            "dev.txt:2: the tag 'B-DATE' is not one of",
        ),
        (
            "run_swag",
            UNSEEN,
            CHOICES + "a\tb\tc\td\t2\n",
            "dev.tsv:2: the label is",
        ),
        ("run_classifier", EMPTY, TEXTS + "3\tx\t\n", "dev.tsv:4: the label is empty"),
        ("run_ner", EMPTY, "a\tO\n\tO\n", "dev.txt:2: column 0, counted from 0, is em"),
        ("run_swag", EMPTY, CHOICES + "a\tb\tc\t\t0\n", "dev.tsv:2: ending 1 is empty"),
        ("run_squad", EMPTY, article(" "), "article 1, paragraph 1: its context is bl"),
        (
            "run_retrieval",
            EMPTY,
            QUERY + '{"query": " ", "passage": "x"}\n',
            "dev.jsonl:2: the query is empty",
        ),
        (
            "run_squad",
            "context too long",
            article("a" * 100_001),
            "dev.json: article 1, paragraph 1: its context has 100001 characters",
        ),
        (
            "run_ner",
            "tags that break IOB",
            "a B-PER\n\nb I-PER\n",
            "dev.txt:3: 'I-PER' does not continue an entity",
        ),
        (
            "run_swag",
            "endings vary",
            CHOICES.replace("\tlabel", "\tending2\tlabel") + "a\tb\tc\td\te\t0\n",
            "dev.tsv:2: there are 3 endings, but expected 2",
        ),
        (
            "run_classifier",
            TWICE,
            TEXTS + "1\tx\tsun\n",
            "dev.tsv:4: the id '1' occurs",
        ),
        (
            "run_swag",
            TWICE,
            CHOICES + "a\tb\tc\td\t0\n" * 2,
            "dev.tsv:3: the id 'a' occurs already in",
        ),
        (
            "run_squad",
            TWICE,
            article(names="aa"),
            "question 2 (a) has the same id as",
        ),
        (
            "run_retrieval",
            TWICE,
            QUERY * 2,
            "dev.jsonl:2: the id 'a' is already used by",
        ),
    ],
)
def test_a_fault_ends_in_one_line_before_anything_is_written(
    run_tool, golden, tmp_path, tool, fault, content, message
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
    assert result.exit_code == 1, fault
    [line] = result.stderr.splitlines()
    assert line.startswith(f"{tool}: ")
    assert str(tmp_path) in line
    assert message in line
    assert not (tmp_path / "run").exists()


def test_rows_of_one_file_may_not_have_different_numbers_of_endings(
    run_tool, golden, tmp_path
):
    path = tmp_path / "train.jsonl"
    path.write_text(LISTS + LISTS.replace('["a", ', '["a", "c", '))
    result = run_tool(
        "run_swag",
        "--do_train",
        f"--train_file={path}",
        "--ending_columns=endings",
        f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
        f"--vocab_file={golden / 'vocab.txt'}",
        f"--output_dir={tmp_path / 'run'}",
    )
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert f"{path}:2: there are 3 endings, but expected 2" in line
    assert not (tmp_path / "run").exists()
