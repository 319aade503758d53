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


def _outcome(tmp_path, **values):
    curves_file = tmp_path / "loss_curves.png"
    curves_file.write_bytes(b"\x89PNG")
    baselines = {
        "eval_masked_lm_loss": {"name": "unigram frequencies", "value": 5.6},
        "eval_next_sentence_accuracy": {"name": "majority class", "value": 0.52},
    }
    defaults = {
        "pretraining": report.Pretraining(
            before=SCORES, after={**SCORES, "masked_lm_loss": 5.2}, baselines=baselines
        ),
        "classification": report.Classification(
            num_dev=60,
            num_test=120,
            num_epochs=5,
            starts=[
                report.Start(
                    name="pretrained weights", learning_rate=3e-4, dev=0.8, test=0.75
                ),
                report.Start(
                    name="random weights", learning_rate=1e-4, dev=0.3, test=0.26
                ),
            ],
            majority_dev=0.3,
            majority_test=0.25,
            left_out="bert-mini was left out.",
        ),
        "filled_masks": [
            report.FilledMask(
                text="A [MASK] B.", word="road", before="x 0.001", after="to 0.900"
            )
        ],
        "frequent_pieces": "the 0.060",
        "answers": [
            report.Answer(text="Rain.", label="a", predicted="a", probability=0.9),
            report.Answer(text="Sun <3.", label="b", predicted="a", probability=0.6),
        ],
        "output_dir": "out",
        "curves_file": str(curves_file),
        "minutes": 3.21,
    }
    return report.Outcome(**defaults | values)


def test_the_report_has_scores_baselines_predictions_and_files(tmp_path):
    shown = report.text(_outcome(tmp_path))
    assert shown.startswith("=== Report: 3.2 minutes ===")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    for line in (
        "masked-word loss 7.600 5.200 5.600 unigram frequencies",
        "next-sentence accuracy 0.500 0.500 0.520 majority class not learned",
        "masked-word perplexity 1998 181",
        "masked word: road",
        "before pretraining x 0.001",
        "after pretraining to 0.900",
        "By word frequency alone, every mask is: the 0.060",
        "majority class 0.300 0.250",
        "pretrained weights 0.0003 0.800 0.750",
        "random weights 0.0001 0.300 0.260 not learned",
        "bert-mini was left out.",
        "Rain. a 0.900 correct",
        "Sun <3. a 0.600 should be b",
        "SavedModel out/exported/1",
    ):
        assert line in lines


def test_the_report_is_also_a_web_page_with_the_curves(tmp_path):
    shown = report.page(_outcome(tmp_path))
    assert "Sun &lt;3." in shown
    assert "not learned" in shown
    assert 'src="data:image/png;base64,' in shown


def test_scores_of_sentence_pairs_are_left_out_where_there_are_none(tmp_path):
    before = {"masked_lm_loss": 7.6, "masked_lm_accuracy": 0.0}
    pretraining = report.Pretraining(before=before, after=before, baselines={})
    outcome = _outcome(tmp_path, pretraining=pretraining)
    assert "next-sentence" not in report.text(outcome)


def test_without_a_network_the_released_encoder_is_left_out(tmp_path, monkeypatch):
    shown = []
    options = demo_options.RunDemoOptions(output_dir=str(tmp_path))
    demo = demo_workflow.Demo(options, show=shown.append)

    def classify(start, **flags):
        if flags["init_checkpoint"] == demo_workflow.RELEASED_ENCODER:
            raise ValueError("The command ended with exit code 1.")
        return report.Start(name=start, learning_rate=1e-3, dev=0.5, test=0.5)

    monkeypatch.setattr(demo, "_classify", classify)
    found = demo.classify()
    assert [start.name for start in found.starts] == ["pretrained", "random"]
    assert "could not be downloaded" in found.left_out
    assert shown == [found.left_out]


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
    assert result.stderr == "run_demo: No such file: /nowhere/own.txt.\n"
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
    assert "[MASK]" in kept
    page = (folder / "report.html").read_text()
    assert "data:image/png;base64,iVBORw" in page
    assert "majority class" in page
