"""GLUE's table: runs and files of answers in, the paper's average out."""

import json

import pytest

from bert_tf.tasks.classification import glue_table

# BERT-Base and BERT-Large in Table 1 of the paper, its averages last.
PAPER = [
    ((84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4), 79.6),
    ((86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1), 82.1),
]
NAMES = [column.name for column in glue_table.COLUMNS if column.is_in_average]


@pytest.mark.parametrize("values, mean", PAPER)
def test_the_average_is_the_papers(values, mean):
    found = {
        name: glue_table.Found(value=value, source="the paper")
        for name, value in zip(NAMES, values, strict=True)
    }
    assert round(glue_table.average(found), 1) == mean
    found["WNLI"] = glue_table.Found(value=0.0, source="the paper")
    assert round(glue_table.average(found), 1) == mean


@pytest.fixture
def folder(tmp_path):
    """A run of MNLI and one of WNLI, beside something else."""
    for name, task_name, results in (
        ("a", "mnli", "eval_accuracy = 0.8\neval_accuracy_mismatched = 0.7\n"),
        ("b", "wnli", "eval_accuracy = 0.56\n"),
        ("c", None, "eval_accuracy = 1.0\n"),
    ):
        run_dir = tmp_path / "runs" / name
        run_dir.mkdir(parents=True)
        task = {"task": "classification", "task_name": task_name}
        (run_dir / "task.json").write_text(json.dumps(task))
        (run_dir / "eval_results.txt").write_text(results)
    return tmp_path / "runs"


@pytest.fixture
def data_dir(tmp_path):
    """Dev sets of CoLA, whose rows have no index, and of STS-B."""
    (tmp_path / "glue" / "CoLA").mkdir(parents=True)
    (tmp_path / "glue" / "CoLA" / "dev.tsv").write_text(
        "x\t1\t\ta\nx\t1\t\tb\nx\t0\t\tc\nx\t0\t\td\n"
    )
    (tmp_path / "glue" / "STS-B").mkdir()
    (tmp_path / "glue" / "STS-B" / "dev.tsv").write_text(
        "index\tsentence1\tsentence2\tscore\n7\ta\tb\t1.0\n8\tc\td\t2.0\n9\te\tf\t3.0\n"
    )
    return tmp_path / "glue"


def test_runs_and_answers_are_one_table(run_tool, folder, data_dir, tmp_path):
    (folder / "CoLA.tsv").write_text("index\tprediction\n0\t1\n1\t1\n2\t0\n3\t1\n")
    (folder / "STS-B.tsv").write_text("index\tprediction\n9\t4\n8\t1.5\n7\t1\n")
    leftover = tmp_path / f".table.json.{'0' * 32}.partial"  # Of a killed command.
    leftover.touch()
    result = run_tool(
        "evaluate_glue",
        f"--input_dir={folder}",
        f"--data_dir={data_dir}",
        f"--output_file={tmp_path / 'table.json'}",
    )
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["task", "score", "value", "source"]
    shown = {line.split()[0]: line.split()[1:3] for line in lines[1:-1]}
    assert shown["MNLI-m"] == ["accuracy", "80.0"]
    assert shown["MNLI-mm"] == ["accuracy", "70.0"]
    assert shown["CoLA"] == ["matthews", "57.7"]  # (2 · 1 - 0 · 1) / sqrt(12)
    assert shown["STS-B"] == ["spearman", "100.0"]
    assert shown["QQP"] == ["f1", "-"]
    assert "(not in the average)" in next(x for x in lines if x.startswith("WNLI"))
    assert lines[-1] == (
        "Average as in the paper: unknown (missing: QQP, QNLI, SST-2, MRPC, RTE). Mean "
        "of the 4 present: 76.9"
    )
    assert not leftover.exists()
    written = json.loads((tmp_path / "table.json").read_text())
    assert written["average"] is None
    assert written["missing"] == ["QQP", "QNLI", "SST-2", "MRPC", "RTE"]
    assert written["WNLI"] == 0.56


@pytest.mark.parametrize(
    "answers, message",
    [
        ("index\tprediction\n0\t1\n", "has no answer with the index 1; expected one"),
        ("index\tprediction\n0\tyes\n", "CoLA.tsv:2: the label 'yes' is not one of"),
        ("prediction\n1\n", "there is no column 'index'"),
    ],
)
def test_answers_that_do_not_fit_end_in_one_line(
    run_tool, folder, data_dir, answers, message
):
    (folder / "CoLA.tsv").write_text(answers)
    result = run_tool(
        "evaluate_glue", f"--input_dir={folder}", f"--data_dir={data_dir}"
    )
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_several_runs_of_a_task_have_their_mean(run_tool, folder):
    (folder / "c" / "task.json").write_text('{"task_name": "wnli"}')
    result = run_tool("evaluate_glue", f"--input_dir={folder}")
    [line] = [line for line in result.stdout.splitlines() if line.startswith("WNLI")]
    assert line == (
        f"WNLI    accuracy    78.0  mean of 2 runs: {folder}/b 56.0, {folder}/c 100.0 "
        "(not in the average)"
    )


def test_answers_to_a_task_that_has_a_run_are_refused(run_tool, folder, data_dir):
    (folder / "b" / "task.json").write_text('{"task_name": "cola"}')
    (folder / "b" / "eval_results.txt").write_text("eval_matthews = 0.5\n")
    (folder / "CoLA.tsv").write_text("index\tprediction\n0\t1\n")
    result = run_tool(
        "evaluate_glue", f"--input_dir={folder}", f"--data_dir={data_dir}"
    )
    assert (result.exit_code, "CoLA has two sources" in result.stderr) == (1, True)


def test_a_folder_without_glue_data_is_reported(run_tool, tmp_path):
    result = run_tool("evaluate_glue", f"--input_dir={tmp_path}")
    assert "contains no evaluated run of a GLUE task" in result.stderr


@pytest.mark.parametrize(
    "record, results, found",
    [
        # AX has one development set, MNLI has two.
        (None, "eval_accuracy = 0.4\n", "has no eval_accuracy_mismatched"),
        ("ax", "eval_accuracy = 0.4\neval_accuracy_mismatched = 0.3\n", "on ax"),
    ],
)
def test_scores_of_other_data_are_not_taken_for_those_of_the_task(
    run_tool, folder, record, results, found
):
    (folder / "a" / "eval_results.txt").write_text(results)
    if record is not None:
        entry = {"name": record, "checksum": None}
        run = {"results": {"eval_results.txt": entry}}
        (folder / "a" / "run.json").write_text(json.dumps(run))
    result = run_tool("evaluate_glue", f"--input_dir={folder}")
    assert result.exit_code == 1
    assert found in result.stderr
    assert "evaluate the run on the development data of its task" in result.stderr
