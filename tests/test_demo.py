import os
import re

import pytest

from bert_tf import demo


def test_a_folder_with_something_else_is_not_replaced(tmp_path, run_tool):
    (tmp_path / "thesis.txt").write_text("years of work")
    result = run_tool("run_demo", "--tiny", f"--output_dir={tmp_path}")
    assert result.exit_code == 1
    assert "contains files that are not from an earlier demo" in result.stderr
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_an_earlier_demo_is_replaced(tmp_path, run_tool):
    (tmp_path / demo.MARKER_FILE).touch()
    (tmp_path / "old").touch()
    flags = ["--tiny", f"--output_dir={tmp_path}", "--corpus_file=/nowhere/own.txt"]
    result = run_tool("run_demo", *flags)
    assert result.stderr == "run_demo: No such file: /nowhere/own.txt.\n"
    assert os.listdir(tmp_path) == [demo.MARKER_FILE]


@pytest.mark.parametrize(
    "documents, train, heldout",
    [
        # Every tenth document is held out, and at least two are.
        (20 * ["First.\nSecond."], 18 * ["First.\nSecond."], 2 * ["First.\nSecond."]),
        (4 * ["One.\nTwo."], 2 * ["One.\nTwo."], 2 * ["One.\nTwo."]),
        # A paragraph in one line is divided into its sentences.
        (
            4 * ['He said: "Go!" Was it 3.5 miles? No.'],
            2 * ['He said: "Go!"\nWas it 3.5 miles?\nNo.'],
            2 * ['He said: "Go!"\nWas it 3.5 miles?\nNo.'],
        ),
    ],
)
def test_own_documents_are_divided(documents, train, heldout, tmp_path, monkeypatch):
    (tmp_path / "own.txt").write_text("\n\n".join(documents))
    monkeypatch.setattr(demo, "_run_commands", _stop)
    options = demo.RunDemoOptions(
        output_dir=str(tmp_path / "out"), corpus_file=str(tmp_path / "own.txt")
    )
    with pytest.raises(InterruptedError):
        demo.run(options, print)
    for name, expected in (("train", train), ("heldout", heldout)):
        text = (tmp_path / "out" / f"{name}.txt").read_text()
        assert text.strip().split("\n\n") == expected


def _stop(*_):
    raise InterruptedError


def test_too_few_documents_are_refused_with_what_to_do(tmp_path, run_tool):
    (tmp_path / "own.txt").write_text("One.\nTwo.\n\nThree.\n")
    flags = [f"--output_dir={tmp_path / 'o'}", f"--corpus_file={tmp_path / 'own.txt'}"]
    result = run_tool("run_demo", *flags)
    assert result.exit_code == 1
    assert "contains 2 documents, but the demo needs at least 4" in result.stderr


def test_without_a_network_the_released_encoder_is_left_out(tmp_path, monkeypatch):
    labels = {"train": "aab", "dev": "ab", "test": "aaab"}
    for part, letters in labels.items():
        rows = "".join(f"text\t{letter}\n" for letter in letters)
        (tmp_path / f"{part}.tsv").write_text(f"text\tlabel\n{rows}")

    def fine_tune(commands, values, show):
        if values["start"] == "released":
            raise ValueError("The command ended with exit code 1.")
        folder = tmp_path / f"topics_from_{values['start']}"
        folder.mkdir()
        (folder / "predictions.jsonl").write_text('{"label": "a"}\n' * 4)
        (folder / "run.json").write_text('{"flags": {"learning_rate": 0.001}}')
        (folder / "eval_results.txt").write_text("eval_accuracy = 0.5\n")

    monkeypatch.setattr(demo, "_run_commands", fine_tune)
    values = {f"topics_{part}": str(tmp_path / f"{part}.tsv") for part in labels}
    table = demo._classify(values | {"out": str(tmp_path)}, print, is_tiny=False)
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert "majority class 0.500 0.750" in lines
    assert "random weights 0.001 0.500 0.750 not learned" in lines
    assert "The released encoder bert-mini was left out: see above." in lines


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory, run_tool_process):
    """The whole demo, too brief to learn, on text of the user's own."""
    folder = tmp_path_factory.mktemp("a demo")
    stories = [
        f"Story {i} begins here.\nThe old dog went home to sleep all day.\nIt ended."
        for i in range(40)
    ]
    (folder / "own.txt").write_text("\n\n".join(stories))
    flags = [f"--output_dir={folder / 'out'}", f"--corpus_file={folder / 'own.txt'}"]
    result = run_tool_process("run_demo", "--tiny", *flags, timeout=900)
    assert result.exit_code == 0, result.stderr
    return folder / "out", result.stdout


def test_every_tool_is_shown_as_it_is_typed(demo_run):
    assert re.findall(r"^\$ (\w+)", demo_run[1], re.M) == [
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


def test_the_report_is_printed_and_kept_and_the_files_that_it_names_exist(demo_run):
    folder, shown = demo_run
    report = (folder / "report.txt").read_text()
    assert shown.endswith(report)
    paths = re.findall(rf" {re.escape(str(folder))}/(\S+)", report)
    assert len(paths) == 4
    for path in paths:
        assert (folder / path).exists(), path
    assert (folder / "loss_curves.png").read_bytes().startswith(b"\x89PNG")
    lines = [" ".join(line.split()) for line in report.splitlines()]
    assert "masked word old" in lines or "[MASK]" in report
    assert any(line.startswith("masked_lm_loss ") for line in lines)
    assert any(line.startswith("pretrained weights 0.001 ") for line in lines)
