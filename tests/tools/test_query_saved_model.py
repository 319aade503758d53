import json

import pytest

from bert_tf.serving import connection
from tests.serving import rest_double
from tools import export_saved_model
from tools import run_classifier

TRAIN = "first\tsecond\tsame\na\ta\tyes\na\tb\tno\nb\tb\tyes\nb\ta\tno\n"


@pytest.fixture(scope="module")
def export_dir(golden, tmp_path_factory):
    """A SavedModel trained and exported by the tools, as a user would."""
    folder = tmp_path_factory.mktemp("query")
    (folder / "train.tsv").write_text(TRAIN)
    flags = [
        "--do_train",
        f"--train_file={folder / 'train.tsv'}",
        "--text_column=first",
        "--text_b_column=second",
        "--label_column=same",
        f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
        f"--vocab_file={golden / 'vocab.txt'}",
        f"--output_dir={folder / 'run'}",
        "--max_seq_length=16",
        "--train_batch_size=4",
        "--num_train_epochs=2",
    ]
    assert run_classifier.main(flags) == 0
    flags = [f"--output_dir={folder / 'run'}", f"--export_dir={folder / 'export/1'}"]
    assert export_saved_model.main(flags) == 0
    return folder / "export" / "1"


def test_an_answer_names_its_classes(run_tool, export_dir):
    result = run_tool(
        "query_saved_model", f"--export_dir={export_dir}", "--text=a", "--text_b=b"
    )
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["text"], answer["text_b"]) == ("a", "b")
    assert sorted(answer["probabilities"]) == ["no", "yes"]
    best = max(answer["probabilities"], key=answer["probabilities"].get)
    assert answer["label"] == best


def test_a_flag_given_twice_asks_two_texts(run_tool, export_dir):
    flags = ["--text=a, a", "--text=b", "--text_b=b", "--text_b=b, b"]
    result = run_tool("query_saved_model", f"--export_dir={export_dir}", *flags)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    pairs = [(answer["text"], answer["text_b"]) for answer in answers]
    assert pairs == [("a, a", "b"), ("b", "b, b")]


def test_lines_of_standard_input_are_answered(run_tool, export_dir, monkeypatch):
    monkeypatch.setattr("sys.stdin", iter(["a\tb\n", "b\tb\n"]))
    result = run_tool("query_saved_model", f"--export_dir={export_dir}", "--text=-")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(a["text"], a["text_b"]) for a in answers] == [("a", "b"), ("b", "b")]


@pytest.mark.parametrize(
    "flags, exit_code, message",
    [
        (["--text=a"], 1, "takes text and text_b, got text"),
        (["--text=a", "--server=http://x/v1/models/y"], 2, "either --export_dir or"),
        ([], 2, "Expected either --text, or --question with --context"),
    ],
)
def test_a_wrong_question_ends_in_one_line(
    run_tool, export_dir, flags, exit_code, message
):
    result = run_tool("query_saved_model", f"--export_dir={export_dir}", *flags)
    assert result.exit_code == exit_code
    assert message in result.stderr


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--export_dir=nowhere", "nowhere contains no saved_model.pb"),
        ("--server=http://127.0.0.1:9/v1/models/x", "cannot be reached"),
        ("--server=127.0.0.1:9", "is not the address of a model"),
    ],
)
def test_a_model_that_is_not_there_ends_in_one_line(run_tool, flag, message):
    result = run_tool("query_saved_model", flag, "--text=a")
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_server_is_asked_as_the_flags_say(run_tool, monkeypatch):
    monkeypatch.setattr(connection, "BACKOFF_SECONDS", 0.001)
    replies = [(503, {}), (200, {"outputs": {"value": [0.5]}}), (400, {})]
    headers = []

    def reply(path, body):
        return replies.pop(0)

    with rest_double.serving(reply, headers=headers) as address:
        flags = [
            f"--server={address}/v1/models/topics",
            "--text=a",
            "--header=X-Team: a",
            "--timeout_seconds=30",
        ]
        result = run_tool("query_saved_model", *flags)
        assert json.loads(result.stdout) == {"text": "a", "value": 0.5}
        assert [received["X-Team"] for received in headers] == ["a", "a"]
        result = run_tool("query_saved_model", *flags)
        assert (result.exit_code, replies) == (1, [])
        assert "refused the query: 400" in result.stderr
