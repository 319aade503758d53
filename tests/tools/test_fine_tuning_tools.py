"""The tools that fine-tune, as their users call them."""

import json

import pytest

import bert_tf
from bert_tf.training import plots
from tests import runs

TAGGED = "Anna B-PER\nis O\nin O\nLund B-LOC\n\nRod B-PER\nis O\nin O\nBay B-LOC\n"
CHOICES = "id\tstartphrase\tending0\tending1\tlabel\n"
PAIRS = [
    {"id": "a", "query": "the bee", "passage": "honey and wax"},
    {"id": "b", "query": "the lamp", "passage": "light at midnight"},
]
QUESTION = {
    "id": "a",
    "question": "Who?",
    "answers": [{"text": "Anna", "answer_start": 0}],
}
ARTICLE = {"paragraphs": [{"context": "Anna Holt built it.", "qas": [QUESTION]}]}
FILES = {
    "quiz.json": json.dumps({"data": [ARTICLE]}),
    "corpus.txt": "honey and wax\nlight at midnight\nbread\n",
    "pairs.jsonl": "".join(json.dumps(pair) + "\n" for pair in PAIRS),
    "train.tsv": CHOICES
    + "a\tthe bee\tis warm\tball ball\t0\nb\tthe lamp\tball ball\tis slow\t1\n",
    "bad.tsv": CHOICES + "a\tb\tc\td\t2\n",
    "weather.tsv": "text\tlabel\nwet\train\ndry\tsun\nvery wet\train\nvery dry\tsun\n",
    **{f"{name}.txt": TAGGED for name in ("train", "dev", "test")},
}
# Tool -> the flags of a minimal run besides those of `call`.
MINIMAL = {
    "run_classifier": {"train_file": "weather.tsv", "num_train_epochs": 1},
    "run_ner": {"data_dir": "", "num_train_epochs": 1},
    "run_retrieval": {"train_file": "pairs.jsonl", "max_query_length": 8},
    "run_squad": {
        "train_file": "quiz.json",
        "max_seq_length": 32,
        "max_query_length": 8,
        "train_batch_size": 1,
        "num_train_epochs": 1,
    },
    "run_swag": {"train_file": "train.tsv"},
}


@pytest.fixture
def call(run_tool, golden, quick_config, tmp_path):
    """Runs a tool with the flags of a minimal run; None leaves one out."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)

    def run(tool, **changes):
        flags = {
            "do_train": "true",
            "bert_config_file": quick_config,
            "vocab_file": golden / "vocab.txt",
            "output_dir": tmp_path / "run",
            "max_seq_length": 16,
            "train_batch_size": 2,
            "num_train_epochs": 2,
            **MINIMAL[tool],
            **changes,
        }
        for name in ("data_dir", "train_file", "eval_file", "predict_file"):
            if flags.get(name) in ("", *FILES):
                flags[name] = tmp_path / flags[name]
        return run_tool(tool, **flags)

    return run


@pytest.fixture
def complete(call):
    """Runs a tool that must succeed, on its training data as the data to evaluate."""

    def run(tool, **changes):
        result = call(tool, do_eval="true", do_predict="true", **changes)
        assert "The evaluation uses the training data" in result.stderr
        assert "Traceback" not in result.stderr
        return result

    return run


def records(tmp_path, suffix=""):
    return runs.json_lines(tmp_path / "run" / f"predictions{suffix}.jsonl")


def test_csv_in_scores_and_predictions_out(call, complete, tmp_path):
    (tmp_path / "all.csv").write_text('id,text,label\na,"wet, wet",rain\nb,dry,sun\n')
    (tmp_path / "new.csv").write_text('id,text\nc,"wet, wet"\nd,dry\n')
    table = tmp_path / "all.csv"
    files = {"train_file": table, "eval_file": table}
    result = complete("run_classifier", **files, predict_file=tmp_path / "new.csv")
    assert "eval_accuracy = " in result.stdout
    (tmp_path / "copy.csv").write_text((tmp_path / "all.csv").read_text())
    (tmp_path / "other.csv").write_text("text,label\nwet,rain\ndry,sun\n")
    again = {"do_train": None, "bert_config_file": None, "vocab_file": None}
    for name, is_seen in (("copy.csv", True), ("other.csv", False)):
        files = {"train_file": None, "eval_file": tmp_path / name}
        result = call("run_classifier", **again, **files, do_eval="true")
        assert ("The evaluation uses the training data" in result.stderr) == is_seen
    assert [record["id"] for record in records(tmp_path)] == ["c", "d"]
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_one_table_is_divided_into_training_and_evaluation(call, tmp_path):
    # Reviews, a third of them negative, some of them twice.
    rows = [f"review {n % 54},{'good' if n % 3 else 'bad'}" for n in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    split = {"train_file": tmp_path / "a.csv", "validation_split": 0.25}
    result = call(
        "run_classifier", do_eval="true", random_seed=7, eval_every_steps=10, **split
    )
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["validation_split"] == 0.25
    assert "The evaluation uses the training data" not in result.stderr
    data = plots.read_data(str(tmp_path / "run"))
    num_bad, num_good = map(sum, data["confusion"]["counts"])
    assert num_bad + num_good == 15
    assert "Num examples = 45" in result.stderr
    assert num_bad in (5, 6)  # A third, as in the table, up to texts that occur twice.
    again = {"do_train": None, "bert_config_file": None, "vocab_file": None}
    call("run_classifier", do_eval="true", **again, **split)
    assert plots.read_data(str(tmp_path / "run")) == data
    split["validation_split"] = 0.5
    refused = call("run_classifier", do_eval="true", **again, **split, exit_code=1)
    assert "was trained with --validation_split=0.25" in refused.refusal


def test_questions_in_scores_and_answers_out(complete, tmp_path):
    result = complete("run_squad", predict_file="quiz.json")
    assert "eval_f1 = " in result.stdout
    assert "Num split examples = 1" in result.stderr
    answers = json.loads((tmp_path / "run" / "predictions.json").read_text())
    assert list(answers) == ["a"]


def test_a_table_of_choices_in_scores_and_predictions_out(complete, tmp_path):
    new = tmp_path / "new.tsv"
    new.write_text(CHOICES.replace("\tlabel", "") + "c\tthe bee\tis warm\tball ball\n")
    result = complete("run_swag", eval_file="train.tsv", predict_file=new)
    assert "Trained to step 2" in result.stdout
    assert "eval_accuracy = " in result.stdout
    [answer] = records(tmp_path)
    assert answer["id"] == "c"


def test_queries_in_scores_and_rankings_out(complete, tmp_path):
    result = complete(
        "run_retrieval",
        eval_file="pairs.jsonl",
        predict_file="pairs.jsonl",
        corpus_file=tmp_path / "corpus.txt",
        top_k=2,
    )
    assert "Trained to step 2" in result.stdout
    assert "eval_recall_at_5 = " in result.stdout
    assert [record["id"] for record in records(tmp_path)] == ["a", "b"]
    assert [len(record["passages"]) for record in records(tmp_path)] == [2, 2]


def test_plain_text_is_tagged_line_by_line(call, tmp_path):
    call("run_ner")
    (tmp_path / "text.txt").write_text("Anna, in Lund.\n\nis Rod")
    text = {"data_dir": None, "predict_file": tmp_path / "text.txt"}
    call("run_ner", do_train=None, do_predict="true", **text)
    tagged = records(tmp_path, "-text")  # The run's own data is test.txt.
    assert [record["line"] for record in tagged] == [1, 2, 3]
    assert tagged[0]["words"] == ["Anna", ",", "in", "Lund", "."]
    assert tagged[0]["starts"] == [0, 4, 6, 9, 13]
    assert tagged[1]["words"] == tagged[1]["tags"] == []
    for record, line in zip(tagged, ["Anna, in Lund.", "", "is Rod"], strict=True):
        answer = bert_tf.load(str(tmp_path / "run")).predict([line])[0]
        assert record == {"line": record["line"]} | answer


@pytest.mark.parametrize(
    "tool, changes, exit_code, message",
    [
        ("run_classifier", {"train_file": "none.tsv"}, 1, "No such file: none.tsv"),
        ("run_classifier", {"train_file": __file__}, 1, "unknown file extension; expe"),
        ("run_classifier", {"output_dir": "/dev/null/run"}, 1, "/dev/null"),
        ("run_classifier", {"do_train": None}, 2, "Nothing to do"),
        ("run_classifier", {"train_file": None}, 2, "needs --train_file"),
        ("run_classifier", {"task_name": "snli"}, 2, "expected one of cola, mrpc, s"),
        ("run_classifier", {"text_colum": "x"}, 2, "did you mean --text_column?"),
        ("run_squad", {"train_file": __file__}, 1, "tools.py is not JSON"),
        ("run_squad", {"tfds_name": "squad/v1.1"}, 2, "tfds_name; --train_file and --"),
        ("run_squad", {"do_eval": "true"}, 2, "Evaluating needs --predict_file"),
        ("run_squad", {"max_query_length": 29}, 2, "=32 is too short for a questi"),
        ("run_ner", {"labels": "O,B-PER"}, 1, "train.txt:4: the tag 'B-LOC' is not "),
        ("run_ner", {"train_file": "a"}, 2, "the file train.txt of --data_dir is"),
        ("run_ner", {"tfds_name": "conll2003"}, 2, "--data_dir names a folder with tr"),
        ("run_ner", {"vocab_file": None}, 2, "without --init_checkpoint needs --voc"),
        ("run_ner", {"labels": "O"}, 2, "--labels=O: expected two or more different"),
        ("run_ner", {"true_case": "true"}, 2, "--true_case has no effect on lowerca"),
        # The last file that is needed is read before the training, too.
        ("run_swag", {"do_eval": "true", "eval_file": "bad.tsv"}, 1, "bad.tsv:2: the"),
        (
            "run_swag",
            {"tfds_name": "hellaswag"},
            2,
            "to tables for --train_file and --",
        ),
    ],
)
def test_a_user_mistake_ends_in_one_line(
    call, tmp_path, tool, changes, exit_code, message
):
    result = call(tool, **changes, exit_code=exit_code)
    assert message in result.refusal
    assert not (tmp_path / "run").exists()
