"""check_data on the command line: report, last line and exit code."""

import pytest


@pytest.mark.parametrize(
    "rows, exit_code, last_line",
    [
        ("a\tx\nb\ty\n", 0, "0 errors"),
        ("a\tx\nb\ty\nc\n", 1, "1 error"),
    ],
)
def test_errors_in_the_data_are_exit_code_1(
    run_tool, golden, tmp_path, rows, exit_code, last_line
):
    path = tmp_path / "train.tsv"
    path.write_text("text\tlabel\n" + rows)
    done = run_tool(
        "check_data",
        "--task=classification",
        "--max_seq_length=24",
        f"--train_file={path}",
        f"--vocab_file={golden / 'vocab.txt'}",
        f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
    )
    assert done.exit_code == exit_code
    assert done.stdout.splitlines()[-1].endswith(last_line)
    assert "Traceback" not in done.stderr


def test_a_flag_of_another_task_is_wrong_usage(run_tool):
    done = run_tool("check_data", "--task=pretraining", "--text_column=x")
    assert done.exit_code == 2
    assert "--text_column cannot be combined with --task=pretraining" in done.stderr
