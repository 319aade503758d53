import json

import pytest

from bert_tf.training import plots

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


def test_each_quantity_has_a_panel(run_dir):
    line = {"step": 10, "eval_perplexity": 30_000.0, "eval_f1": 0.5}
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    drawn = plots.curves({"run": str(run_dir)})
    panels = {axes.get_title(): axes for axes in drawn.axes}
    assert list(panels) == [
        "loss",
        "masked lm loss",
        "masked lm accuracy",
        "f1",
        "perplexity",
        "learning rate",
    ]
    training, held_out = panels["loss"].get_lines()
    assert training.get_label() == "run, training"
    assert training.get_xydata().tolist() == [[1, 7.0], [10, 6.0]]
    assert training.get_linestyle() == "-"
    assert held_out.get_label() == "run, held-out"
    assert held_out.get_linestyle() == "--"
    assert training.get_color() == held_out.get_color()
    assert panels["perplexity"].get_yscale() == "log"


@pytest.mark.slow
def test_plot_run_writes_a_picture_into_the_folder(run_dir, run_tool):
    result = run_tool("plot_run", f"--run_dir={run_dir}/")
    assert result.stdout == (
        f"The curves are in {run_dir}/curves.png.\n"
        f"The report is in {run_dir}/report.html.\n"
    )
    assert "data:image/svg+xml" in (run_dir / "report.html").read_text()
    assert (run_dir / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_metrics_is_named(tmp_path, run_tool):
    result = run_tool("plot_run", f"--run_dir={tmp_path}", exit_code=1)
    assert "has no metrics.jsonl; expected the output_dir" in result.stderr
