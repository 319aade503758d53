import pytest


@pytest.mark.parametrize(
    "run, export, exit_code, message",
    [
        ("none", "new", 1, "contains no task.json"),
        # Before the model is searched for.
        ("none", "/proc/x", 1, "export_saved_model: /proc/x: cannot be written"),
    ],
)
def test_what_cannot_be_exported_ends_in_one_line(
    run_tool, tmp_path, run, export, exit_code, message
):
    flags = [f"--output_dir={tmp_path / run}"]
    flags.append(f"--export_dir={tmp_path / export}")
    result = run_tool("export_saved_model", *flags)
    assert result.exit_code == exit_code
    assert message in result.stderr
    assert result.stderr.startswith("export_saved_model: ")
    assert not (tmp_path / "new").exists()
