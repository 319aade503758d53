"""Two commands at once on one output: the second stops before it touches anything."""

import json

import pytest

from bert_tf import locks

MODEL = ["--bert_config_file={golden}/model/bert_config.json", "--vocab_file={vocab}"]
TRAINING = [*MODEL, "--train_file={text}", "--do_train", "--bias_correction"]
DATA = ["--input_file={text}", "--vocab_file={vocab}"]
CONVERSION = ["--source={golden}/model/bert_model.ckpt", "--target_format=hugging_face"]
FOLDER, FILE = locks.output_folder, locks.output_file


# One tool of each kind: its flags, and the lock and the flag of its output.
@pytest.mark.parametrize(
    "tool, flags, lock, output_flag",
    [
        ("run_classifier", TRAINING, FOLDER, "output_dir"),
        ("prepare_corpus", ["--input_file={text}"], FOLDER, "output_dir"),
        ("run_demo", ["--tiny"], FOLDER, "output_dir"),
        ("convert_checkpoint", CONVERSION, FILE, "target"),
        ("create_pretraining_data", DATA, FILE, "output_file"),
        ("export_saved_model", ["--output_dir={folder}"], FILE, "export_dir"),
    ],
)
def test_an_output_has_one_writer(
    run_tool, golden, tmp_path, monkeypatch, tool, flags, lock, output_flag
):
    (tmp_path / "text.txt").write_text("One [MASK] sentence.\nAnother one.\n")
    known = {
        "folder": tmp_path,
        "golden": golden,
        "text": tmp_path / "text.txt",
        "vocab": golden / "vocab.txt",
    }
    monkeypatch.setattr(locks, "_GRACE_SECONDS", 0.0)
    output = tmp_path / "output"
    given = [flag.format_map(known) for flag in flags]
    with lock(output):
        before = sorted(path.name for path in tmp_path.rglob("*"))
        result = run_tool(tool, *given, f"--{output_flag}={output}", exit_code=1)
        assert sorted(path.name for path in tmp_path.rglob("*")) == before
    [line] = result.stderr.splitlines()
    assert line.startswith(f"{tool}: {output} is in use: process ")
    assert line.endswith(f"or choose another --{output_flag}.")


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
    run_tool("run_classifier", *flags, "--do_train")
    with locks.output_folder(run):  # As if it were still training.
        for actions in (["--do_eval"], ["--do_predict"], ["--do_train", "--dry_run"]):
            run_tool("run_classifier", *flags, *actions)
        run_tool(
            "export_saved_model",
            f"--output_dir={run}",
            f"--export_dir={tmp_path / 'export' / '1'}",
        )
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
    pretrain(**flags)
    before = {path.name for path in run.iterdir()}
    (run / "best").mkdir()
    for name in ("checkpoint", "best/task.json", "README.md"):
        path = run / name
        (path.parent / f".{path.name}.{'0' * 32}.partial").touch()
    (run / f".model.ckpt-2.{'0' * 32}.partial.index").touch()
    (run / locks.LOCK_FILE).touch()
    pretrain(**flags)
    assert list((run / "best").iterdir()) == []
    assert {path.name for path in run.iterdir()} == {"best", *before}
