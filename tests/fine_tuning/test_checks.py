"""--check finds the faults planted in small files of every task."""

import json

import pytest

from bert_tf.fine_tuning import checks as fine_tuning_checks
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import tasks
from bert_tf.tasks.question_answering import examples as examples_module


@pytest.fixture
def check(golden, tmp_path):
    """Runs the checks of a task with the small model's vocabulary and size."""

    def run(task, prepares=False, **flags):
        defaults = {
            "output_dir": str(tmp_path / "run"),
            "check": True,
            "vocab_file": str(golden / "vocab.txt"),
            "bert_config_file": str(golden / "model" / "bert_config.json"),
            "max_seq_length": 24,
        }
        options = tasks.options_class(task)(**defaults | flags)
        if prepares:
            return fine_tuning_run.prepare(options)
        return fine_tuning_checks.run(tasks.declaration(task), options)

    return run


def lines_of(findings, severity=None):
    return [
        str(found)[8:]
        for found in findings.all
        if severity is None or found.severity == severity
    ]


@pytest.fixture
def table(tmp_path):
    def write(name, *rows):
        (tmp_path / name).write_text("\n".join("\t".join(row) for row in rows) + "\n")
        return str(tmp_path / name)

    return write


HEAD = ("text", "label")


def test_passages_that_are_too_long_are_counted(check, tmp_path):
    passage = "a keeper of the light on the narrow rock"
    train = tmp_path / "train.jsonl"
    train.write_text(json.dumps({"query": "who", "passage": passage}) + "\n")
    flags = {"train_file": str(train), "max_seq_length": 8, "max_query_length": 5}
    warnings = lines_of(check("retrieval", **flags), "warning")
    assert "length: train: 100.0% are longer" in " ".join(warnings)


def test_the_held_out_share_is_checked_as_dev(check, table):
    rows = [(f"a {number}", ("home", "town")[number % 2]) for number in range(20)]
    train = table("train.tsv", HEAD, *rows, *rows[:4])
    flags = {"train_file": train, "validation_split": 0.25}
    findings = check("classification", **flags)
    passed = lines_of(findings, "ok")
    assert "overlap" not in " ".join(lines_of(findings))
    assert any(line.startswith("labels: dev: ") for line in passed)
    [counts] = [line for line in passed if line.startswith("examples: ")]
    assert counts in [f"examples: {24 - n} in train, {n} in dev" for n in (5, 6, 7)]


def test_every_invalid_row_is_named_and_the_rest_is_checked(check, table):
    train = table("train.tsv", HEAD, ("a", "home"), ("b", "town"), ("c",))
    dev = table(
        "dev.tsv", HEAD, ("d", "sea"), ("a", "home"), ("e", "air"), ("f", "home", "x")
    )
    test = table("test.tsv", HEAD, ("b", "?"))
    findings = check(
        "classification", train_file=train, eval_file=dev, predict_file=test
    )
    assert lines_of(findings, "error") == [
        f"reading train: {train}:4: expected 2 columns ('text', 'label'), got 1.",
        f"reading dev: {dev}:2: the label 'sea' is not one of home, town.",
        f"reading dev: {dev}:4: the label 'air' is not one of home, town.",
        f"reading dev: {dev}:5: expected 2 columns ('text', 'label'), got 3.",
    ]
    assert "examples: 2 in train, 1 in dev, 1 in test" in lines_of(findings, "ok")
    warnings = " ".join(lines_of(findings, "warning"))
    for name, path, line in (("dev", dev, 3), ("test", test, 2)):
        overlap = f"overlap: 1 of 1 texts of {name} are also in train (such as"
        assert f"{overlap} {path}:{line} as" in warnings


@pytest.mark.parametrize(
    "labels, message",
    [
        ([f"a text {i}" for i in range(12)], "each of the 12 labels occurs once"),
        (["home"] * 4, "all rows have the label 'home'"),
        (["0.5", "1.5", "0.5", "2"], "all labels are numbers, such as 0.5"),
    ],
)
def test_labels_that_training_refuses_are_an_error(check, table, labels, message):
    train = table("train.tsv", HEAD, *((f"the {i}", x) for i, x in enumerate(labels)))
    flags = {"train_file": train, "eval_file": train}
    [error] = lines_of(check("classification", **flags), "error")
    assert error.startswith(f"labels: {train}: {message}")
    with pytest.raises(ValueError, match=message):
        check("classification", prepares=True, check=False, do_train=True, **flags)


def test_a_run_that_trains_logs_what_the_check_warns_of(check, table, caplog):
    train = table("train.tsv", HEAD, ("the house", "home"), ("ŋ ŋ ŋ", "town"))
    dev = table("dev.tsv", HEAD, ("The house", "home"), ("sea", "town"), ("a", "home"))
    flags = {"train_file": train, "eval_file": dev, "learning_rate": 0.5}
    warnings = lines_of(check("classification", **flags), "warning")
    assert [line[:30] for line in warnings] == [
        "learning rate: --learning_rate",
        "examples: 2 in train, 3 in dev",
        "overlap: 1 of 3 texts of dev a",
        "unknown words: train: 33.33% o",
    ]
    trains = {"check": False, "do_train": True, "do_eval": True}
    check("classification", prepares=True, **trains, **flags)
    # The trainer, which is not created here, advises on the learning rate.
    assert [record.message for record in caplog.records] == warnings[1:]


def test_a_model_that_is_too_short_is_an_error(check, table):
    train = table("train.tsv", HEAD, ("a", "x"), ("b", "y"))
    findings = check("classification", train_file=train, max_seq_length=100)
    [error] = lines_of(findings, "error")
    assert "max_seq_length is 100, but the model has at most 64 positions" in error


def test_a_file_without_tags_is_an_error(check, tmp_path):
    (tmp_path / "train.txt").write_text("a O\nb X\n")
    (tmp_path / "dev.txt").write_text("a\nb\n")
    findings = check("token_classification", data_dir=str(tmp_path))
    assert lines_of(findings, "error") == [f"tags: {tmp_path}/dev.txt has no tags"]


def squad(path, *questions, context="the old house was near the sea"):
    """Writes a SQuAD file with questions: (id, question, answer, start)."""
    qas = [
        {
            "id": name,
            "question": question,
            "answers": [] if answer is None else [{"text": answer, "answer_start": at}],
            "is_impossible": answer is None,
        }
        for name, question, answer, at in questions
    ]
    paragraph = {"context": context, "qas": qas}
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}))
    return str(path)


SMALL = {"max_query_length": 8, "doc_stride": 4}


@pytest.mark.parametrize(
    "text, start, severity",
    [
        ("house", 10, None),  # Inside "house", from where the release takes the word.
        ("the", -1, "error"),  # Without a position.
        ("sea", 4, "error"),
        (" ", 3, "error"),
        (None, 0, "error"),  # No answer, without --version_2_with_negative.
        # It occurs there, but not as words of the context: it is one word with "was".
        ("house\u00a0was", 8, "warning"),
    ],
)
def test_answers_are_judged_as_training_does(check, tmp_path, text, start, severity):
    train = squad(
        tmp_path / "train.json",
        ("q1", "what was old", text, start),
        ("q2", "where was it", "near", 18),
        context="the old house\u00a0was near the sea",
    )
    findings = check("question_answering", train_file=train, **SMALL)
    severities = [
        finding.severity
        for finding in findings.all
        if finding.check == "answers" and "question q1" in finding.message
    ]
    assert severities == ([] if severity is None else [severity])
    squad_file = examples_module.read_squad(train)
    if severity == "error":
        with pytest.raises(ValueError, match="question q1"):
            examples_module.training_examples(squad_file, version_2_with_negative=False)
        return
    kept = examples_module.training_examples(squad_file, version_2_with_negative=False)
    assert [one.qas_id for one in kept] == ["q1", "q2"][severity == "warning" :]


def test_answers_of_dev_need_no_place(check, tmp_path):
    train = squad(tmp_path / "a.json", ("q1", "what was old", "house", 8))
    dev = squad(
        tmp_path / "dev.json",
        ("q1", "what was old", "the", -1),
        ("q2", "where was it", "sea", 4),
    )
    findings = check("question_answering", train_file=train, predict_file=dev, **SMALL)
    warnings = lines_of(findings, "warning")
    answers = [line for line in warnings if line.startswith("answers")]
    assert [line.split(": ")[2] for line in answers] == ["question q2"]
