"""The scores of runs become GLUE's table, with the paper's average."""

import json

import pytest

# BERT-Base and BERT-Large in Table 1 of the paper, its averages last. In the order of
# the keys below.
PAPER = [
    ((84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4), "79.6"),
    ((86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1), "82.1"),
]
KEYS = [
    *(("mnli", "eval_accuracy"), ("mnli", "eval_accuracy_mismatched")),
    *(("qqp", "eval_f1"), ("qnli", "eval_accuracy"), ("sst-2", "eval_accuracy")),
    *(("cola", "eval_matthews"), ("sts-b", "eval_spearman"), ("mrpc", "eval_f1")),
    ("rte", "eval_accuracy"),
]


def write_run(run_dir, task_name, results):
    run_dir.mkdir(parents=True)
    task = {"task": "classification", "task_name": task_name}
    (run_dir / "task.json").write_text(json.dumps(task))
    (run_dir / "eval_results.txt").write_text(results)


@pytest.mark.parametrize("values, mean", PAPER)
def test_the_average_is_the_papers(run_tool, tmp_path, values, mean):
    results = {"wnli": "eval_accuracy = 0\n"}
    for (task_name, key), value in zip(KEYS, values, strict=True):
        line = f"{key} = {value / 100}\n"
        results[task_name] = results.get(task_name, "") + line
    for task_name, lines in results.items():
        write_run(tmp_path / task_name, task_name, lines)
    result = run_tool("evaluate_glue", f"--input_dir={tmp_path}")
    last = result.stdout.splitlines()[-1]
    assert last == f"Average as in the paper, without WNLI: {mean}"


@pytest.fixture
def folder(tmp_path):
    """A run of MNLI and one of WNLI, beside something else."""
    for name, task_name, results in (
        ("a", "mnli", "eval_accuracy = 0.8\neval_accuracy_mismatched = 0.7\n"),
        ("b", "wnli", "eval_accuracy = 0.56\n"),
        ("c", None, "eval_accuracy = 1.0\n"),
    ):
        write_run(tmp_path / "runs" / name, task_name, results)
    return tmp_path / "runs"


def test_runs_are_one_table(run_tool, folder):
    result = run_tool("evaluate_glue", f"--input_dir={folder}")
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["task", "score", "value", "source"]
    shown = {line.split()[0]: line.split()[1:3] for line in lines[1:-1]}
    assert shown["MNLI-m"] == ["accuracy", "80.0"]
    assert shown["MNLI-mm"] == ["accuracy", "70.0"]
    assert shown["QQP"] == ["f1", "-"]
    assert "(not in the average)" in next(x for x in lines if x.startswith("WNLI"))
    assert lines[-1] == (
        "Average as in the paper: unknown (missing: QQP, QNLI, SST-2, CoLA, STS-B, "
        "MRPC, RTE). Mean of the 2 present: 75.0"
    )


def test_several_runs_of_a_task_have_their_mean(run_tool, folder):
    (folder / "c" / "task.json").write_text('{"task_name": "wnli"}')
    result = run_tool("evaluate_glue", f"--input_dir={folder}")
    [line] = [line for line in result.stdout.splitlines() if line.startswith("WNLI")]
    assert line == (
        f"WNLI    accuracy    78.0  mean of 2 runs: {folder}/b 56.0, {folder}/c 100.0 "
        "(not in the average)"
    )


def test_a_folder_without_glue_data_is_reported(run_tool, tmp_path):
    result = run_tool("evaluate_glue", f"--input_dir={tmp_path}", exit_code=1)
    assert "contains no evaluated run of a GLUE task" in result.stderr


def test_scores_of_other_data_are_not_taken_for_those_of_the_task(run_tool, folder):
    run = {"results": {"eval_results.txt": {"name": "diagnostic", "checksum": None}}}
    (folder / "a" / "run.json").write_text(json.dumps(run))
    result = run_tool("evaluate_glue", f"--input_dir={folder}", exit_code=1)
    assert "on diagnostic" in result.stderr
    assert "evaluate the run on the development data of its task" in result.stderr
