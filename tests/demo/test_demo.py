import os
import re

import pytest

from bert_tf.demo import options as demo_options
from bert_tf.demo import report
from bert_tf.demo import workflow as demo_workflow

SCORES = {
    "masked_lm_loss": 7.6,
    "masked_lm_accuracy": 0.0,
    "next_sentence_loss": 0.7,
    "next_sentence_accuracy": 0.5,
}


def test_the_report_has_scores_predictions_and_files():
    outcome = report.Outcome(
        pretraining=report.Pretraining(
            before=SCORES, after={**SCORES, "masked_lm_loss": 5.5}
        ),
        classification=report.Classification(
            num_rows=120, num_epochs=5, pretrained=0.75, random=0.5, majority=0.25
        ),
        filled_masks=[
            report.FilledMask(text="A [MASK] B.", word="to", predicted="to 0.900")
        ],
        answers=[
            report.Answer(text="Rain.", label="a", predicted="a", probability=0.9),
            report.Answer(text="Sun.", label="b", predicted="a", probability=0.6),
        ],
        output_dir="out",
        curves_file="out/loss_curves.png",
        minutes=3.21,
    )
    lines = report.text(outcome).splitlines()
    assert lines[0] == "=== Report: 3.2 minutes ==="
    for line in (
        "  masked-word loss           7.600 -> 5.500",
        "  masked-word perplexity      1998 -> 245",
        "  A [MASK] B.",
        "    was 'to'; most likely: to 0.900",
        "Accuracy on 120 held-out sentences after 5 epochs",
        "  majority class      0.250",
        "  random weights      0.500",
        "  pretrained weights  0.750",
        "    a 0.900 (correct)",
        "    a 0.600 (should be b)",
        "  loss curves        out/loss_curves.png",
        "  SavedModel         out/exported/1",
    ):
        assert line in lines


def test_scores_of_sentence_pairs_are_left_out_where_there_are_none():
    before = {"masked_lm_loss": 7.6, "masked_lm_accuracy": 0.0}
    pretraining = report.Pretraining(before=before, after=before)
    outcome = report.Outcome(
        pretraining=pretraining,
        classification=report.Classification(
            num_rows=4, num_epochs=5, pretrained=1.0, random=0.5, majority=0.25
        ),
        filled_masks=[],
        answers=[],
        output_dir="out",
        curves_file="out/loss_curves.png",
        minutes=1.0,
    )
    assert "next-sentence" not in report.text(outcome)


def test_a_folder_with_something_else_is_not_replaced(tmp_path, run_tool):
    (tmp_path / "thesis.txt").write_text("years of work")
    result = run_tool("run_demo", "--tiny", f"--output_dir={tmp_path}")
    assert result.exit_code == 1
    assert "contains files that are not from an earlier demo" in result.stderr
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_an_earlier_demo_is_replaced(tmp_path, run_tool):
    (tmp_path / demo_workflow.MARKER_FILE).touch()
    (tmp_path / "old").touch()
    flags = ["--tiny", f"--output_dir={tmp_path}", "--corpus_file=/nowhere/own.txt"]
    result = run_tool("run_demo", *flags)
    assert result.stderr == "run_demo: There is no file /nowhere/own.txt.\n"
    assert os.listdir(tmp_path) == [demo_workflow.MARKER_FILE]


def test_tiny_is_for_tests_and_trains_less(tmp_path):
    steps = [
        demo_workflow.Demo(
            demo_options.RunDemoOptions(output_dir=str(tmp_path), tiny=tiny), show=print
        )._recipe.pretraining_steps
        for tiny in (True, False)
    ]
    assert steps[0] < steps[1]


@pytest.fixture(scope="module")
def demo(tmp_path_factory, run_tool_process):
    """Runs the whole demo, too small to learn, on text of the user's own."""
    folder = tmp_path_factory.mktemp("demo")
    own = folder / "own.txt"
    stories = [
        f"Story {i} begins here.\nThe old dog went home to sleep all day.\nIt ended."
        for i in range(40)
    ]
    own.write_text("\n\n".join(stories))
    flags = ["--tiny", f"--output_dir={folder / 'out'}", f"--corpus_file={own}"]
    result = run_tool_process("run_demo", *flags, timeout=900)
    assert result.exit_code == 0, result.stderr
    return folder / "out", result.stdout


def test_every_tool_is_shown_as_it_is_typed(demo):
    shown = re.findall(r"^\$ (\w+)", demo[1], re.M)
    assert shown == [
        "build_vocabulary",
        "create_pretraining_data",
        "create_pretraining_data",
        "run_pretraining",
        "run_pretraining",
        "fill_mask",
        "run_classifier",
        "run_classifier",
        "export_saved_model",
        "query_saved_model",
        "plot_run",
    ]


def test_the_report_is_printed_and_kept_and_what_it_names_is_there(demo):
    folder, shown = demo
    kept = (folder / "report.txt").read_text()
    assert shown.endswith(kept)
    paths = re.findall(rf" {re.escape(str(folder))}/(\S+)", kept)
    assert len(paths) == 6
    for path in paths:
        assert (folder / path).exists(), path
    assert (folder / "loss_curves.png").read_bytes().startswith(b"\x89PNG")
    assert "The old dog went [MASK] to sleep all day." in kept
