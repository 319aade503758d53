import json

import pytest

from tools import export_saved_model
from tools import run_classifier

TRAIN = "first\tsecond\tsame\na\ta\tyes\na\tb\tno\nb\tb\tyes\nb\ta\tno\n"


@pytest.fixture(scope="module")
def export_dir(golden, quick_config, tmp_path_factory):
    """A SavedModel trained and exported by the tools, as a user would."""
    folder = tmp_path_factory.mktemp("query")
    (folder / "train.tsv").write_text(TRAIN)
    flags = [
        "--do_train",
        f"--train_file={folder / 'train.tsv'}",
        "--text_column=first",
        "--text_b_column=second",
        "--label_column=same",
        f"--bert_config_file={quick_config}",
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
