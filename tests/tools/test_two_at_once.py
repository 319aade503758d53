"""Two commands at once on one output: the second stops before it touches anything."""

import json

import pytest

from bert_tf import locks

MODEL = ["--bert_config_file={golden}/model/bert_config.json", "--vocab_file={vocab}"]
TABLES = ["--train_file={table}", "--eval_file={table}", "--predict_file={table}"]
DATA = ["--input_file={text}", "--vocab_file={vocab}"]
# One tool of each kind: its flags, and the flag of its output.
FOLDER_TOOLS = {
    "run_classifier": [*MODEL, *TABLES, "--do_train", "--bias_correction"],
    "prepare_corpus": ["--input_file={text}"],
    "run_demo": ["--tiny"],
}
CHECKPOINT = "{golden}/model/bert_model.ckpt"
FILE_TOOLS = {
    "convert_checkpoint": (
        [f"--source={CHECKPOINT}", "--target_format=hugging_face"],
        "target",
    ),
    "create_pretraining_data": (DATA, "output_file"),
    "export_saved_model": (["--output_dir={folder}"], "export_dir"),
}


@pytest.fixture
def refused(run_tool, golden, tmp_path, monkeypatch):
    """Runs a tool whose output is locked; returns the only line that it prints."""
    (tmp_path / "text.txt").write_text("One [MASK] sentence.\nAnother one.\n")
    known = {
        "folder": tmp_path,
        "golden": golden,
        "table": tmp_path / "text.txt",
        "text": tmp_path / "text.txt",
        "vocab": golden / "vocab.txt",
    }

    def run(tool, lock, flags, output_flag):
        monkeypatch.setattr(locks, "_GRACE_SECONDS", 0.0)
        output = tmp_path / "output"
        given = [flag.format_map(known) for flag in flags]
        with lock(output):
            before = sorted(path.name for path in tmp_path.rglob("*"))
            result = run_tool(tool, *given, f"--{output_flag}={output}")
            assert sorted(path.name for path in tmp_path.rglob("*")) == before
        assert result.exit_code == 1, result.stderr
        assert result.stderr.startswith(f"{tool}: {output} is in use: process ")
        assert result.stderr.endswith(f"or choose another --{output_flag}.\n")
        return result.stderr

    return run


@pytest.mark.parametrize("tool", FOLDER_TOOLS)
def test_a_folder_has_one_writer(refused, tool):
    line = refused(tool, locks.output_folder, FOLDER_TOOLS[tool], "output_dir")
    assert line.count("\n") == 1


@pytest.mark.parametrize("tool", FILE_TOOLS)
def test_a_file_or_an_export_has_one_writer(refused, tool):
    line = refused(tool, locks.output_file, *FILE_TOOLS[tool])
    assert line.count("\n") == 1


@pytest.mark.slow
def test_a_run_can_be_evaluated_predicted_and_exported_while_it_is_trained(
    run_tool, golden, tmp_path
):
    rows = "".join(f"text {n}\t{n % 2}\n" for n in range(4))
    (tmp_path / "table.tsv").write_text(f"text\tlabel\n{rows}")
    run = tmp_path / "run"
    flags = [
        *(f"--{name}_file={tmp_path / 'table.tsv'}" for name in ("train", "eval")),
        f"--predict_file={tmp_path / 'table.tsv'}",
        f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
        f"--vocab_file={golden / 'vocab.txt'}",
        f"--output_dir={run}",
        "--max_seq_length=8",
        "--train_batch_size=2",
        "--num_train_epochs=1",
    ]
    assert run_tool("run_classifier", *flags, "--do_train").exit_code == 0
    with locks.output_folder(run):  # As if it were still training.
        for actions in (["--do_eval"], ["--do_predict"], ["--do_train", "--dry_run"]):
            result = run_tool("run_classifier", *flags, *actions)
            assert result.exit_code == 0, result.stderr
        result = run_tool(
            "export_saved_model",
            f"--output_dir={run}",
            f"--export_dir={tmp_path / 'export' / '1'}",
        )
        assert result.exit_code == 0, result.stderr
    names = {path.name for path in run.iterdir()}
    assert {"eval_results.txt", "predictions.jsonl"} <= names
    assert locks.LOCK_FILE not in names
    assert [path.name for path in (tmp_path / "export").iterdir()] == ["1"]
    assert json.loads((run / "run.json").read_text())["flags"]["do_train"]


def test_leftovers_of_a_killed_run_are_removed_although_it_is_finished(
    pretrain, tmp_path
):
    run = tmp_path / "run"
    flags = {"num_train_steps": 1, "num_warmup_steps": 0}
    assert pretrain(**flags).exit_code == 0
    before = {path.name for path in run.iterdir()}
    (run / "best").mkdir()
    for name in ("checkpoint", "best/task.json", "README.md"):
        path = run / name
        (path.parent / f".{path.name}.{'0' * 32}.partial").touch()
    (run / f".model.ckpt-2.{'0' * 32}.partial.index").touch()
    (run / locks.LOCK_FILE).touch()
    assert pretrain(**flags).exit_code == 0
    assert list((run / "best").iterdir()) == []
    assert {path.name for path in run.iterdir()} == {"best", *before}
