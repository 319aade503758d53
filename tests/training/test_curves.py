import json
import shutil

import pytest

from bert_tf.training import curves
from bert_tf.training import options as training_options

LINES = [
    {"step": 1, "loss": 7.0, "masked_lm_loss": 6.3, "learning_rate": 0.0},
    {"step": 10, "loss": 6.0, "masked_lm_loss": 5.3, "learning_rate": 1e-4},
    {"step": 10, "eval_loss": 6.5, "eval_masked_lm_accuracy": 0.1},
]


@pytest.fixture
def run_dir(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    text = "".join(json.dumps(line) + "\n" for line in LINES)
    (folder / "metrics.jsonl").write_text(text)
    return folder


def test_each_kind_of_number_has_its_panel(run_dir):
    drawn = curves.figure({"run": str(run_dir)})
    panels = {
        axes.get_title(): [line.get_label() for line in axes.get_lines()]
        for axes in drawn.axes
    }
    assert panels == {
        "loss": ["eval_loss", "loss", "masked_lm_loss"],
        "accuracy": ["eval_masked_lm_accuracy"],
        "learning rate": ["learning_rate"],
    }
    lines = {line.get_label(): line for line in drawn.axes[0].get_lines()}
    assert lines["loss"].get_xydata().tolist() == [[1, 7.0], [10, 6.0]]
    assert lines["loss"].get_linestyle() == "-"
    assert lines["eval_loss"].get_linestyle() == "--"


def test_perplexity_and_other_scores_have_panels_of_their_own(run_dir):
    line = {"step": 10, "eval_perplexity": 30_000.0, "eval_f1": 0.5}
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    drawn = curves.figure({"run": str(run_dir)})
    panels = {axes.get_title(): axes for axes in drawn.axes}
    assert panels.keys() == {
        "loss",
        "accuracy",
        "perplexity",
        "score",
        "learning rate",
    }
    [drawn_line] = panels["perplexity"].get_lines()
    assert drawn_line.get_xydata().tolist() == [[10, 30_000.0]]
    assert panels["perplexity"].get_yscale() == "log"
    assert [line.get_label() for line in panels["score"].get_lines()] == ["eval_f1"]


def test_several_runs_are_told_apart_by_their_names(run_dir):
    drawn = curves.figure({"a": str(run_dir), "b": str(run_dir)})
    labels = [line.get_label() for line in drawn.axes[1].get_lines()]
    assert labels == ["a: eval_masked_lm_accuracy", "b: eval_masked_lm_accuracy"]


def test_plot_run_writes_a_picture_into_the_folder(run_dir, run_tool):
    result = run_tool("plot_run", f"--run_dir={run_dir}/")
    assert result.stdout == f"The curves are in {run_dir}/curves.png.\n"
    assert (run_dir / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_plot_run_writes_the_file_asked_for(run_dir, tmp_path, run_tool):
    plot_file = tmp_path / "pictures" / "both.svg"
    flags = [f"--run_dir={run_dir},{run_dir}", f"--plot_file={plot_file}"]
    assert run_tool("plot_run", *flags).exit_code == 0
    assert "<svg" in plot_file.read_text()


def test_runs_of_one_name_are_shown_by_their_paths(run_dir, tmp_path, monkeypatch):
    other = tmp_path / "other" / run_dir.name
    shutil.copytree(run_dir, other)
    shown = []
    monkeypatch.setattr(curves, "figure", lambda runs: shown.append(runs))
    monkeypatch.setattr(curves, "save", lambda picture, path: None)
    options = training_options.PlotRunOptions(run_dir=(str(run_dir), str(other)))
    curves.plot_runs(options)
    assert list(shown[0]) == [str(run_dir), str(other)]


def test_a_folder_without_metrics_is_named(tmp_path, run_tool):
    result = run_tool("plot_run", f"--run_dir={tmp_path}")
    assert result.exit_code == 1
    assert "has no metrics.jsonl; expected the output_dir" in result.stderr


def test_the_phases_of_a_run_are_drawn_together(tmp_path, run_dir):
    run = tmp_path / "phased"
    for number in (2, 10, 1):
        shutil.copytree(run_dir, run / f"phase_{number}")
    (run / "phase_3").mkdir()  # Has not begun.
    options = training_options.PlotRunOptions(run_dir=(str(run),))
    assert curves.phases_of(str(run)) == [
        str(run / name) for name in ("phase_1", "phase_2", "phase_10")
    ]
    assert curves.plot_runs(options).endswith(f"{run / 'curves.png'}.")
    assert (run / "curves.png").exists()
