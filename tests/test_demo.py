import os
import pkgutil
import re

import pytest

from bert_tf import demo
from bert_tf import options as options_module
from bert_tf import subcommands


def test_the_tools_know_the_flags_of_the_demo():
    stages = (demo._MASKS, demo._PRETRAINING, demo._CLASSIFICATION, demo._SERVING)
    for command in re.split(r"^bert_tf ", "".join(stages), flags=re.MULTILINE)[1:]:
        subcommand = subcommands.BY_NAME[command.split()[0]]
        record = pkgutil.resolve_name(subcommand.options)
        known = {one.name for one in options_module.declarations(record)}
        assert set(re.findall(r"--(\w+)", command)) <= known, command


def test_a_folder_with_something_else_is_not_replaced(tmp_path, run_tool):
    (tmp_path / "thesis.txt").write_text("years of work")
    result = run_tool("run_demo", "--tiny", f"--output_dir={tmp_path}", exit_code=1)
    assert "contains files that are not from an earlier demo" in result.stderr
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_an_earlier_demo_is_replaced(tmp_path, run_tool):
    (tmp_path / demo.MARKER_FILE).touch()
    (tmp_path / "old").touch()
    flags = ["--tiny", f"--output_dir={tmp_path}", "--corpus_file=/nowhere/own.txt"]
    result = run_tool("run_demo", *flags, exit_code=1)
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
        demo.run(options)
    for name, expected in (("train", train), ("heldout", heldout)):
        text = (tmp_path / "out" / f"{name}.txt").read_text()
        assert text.strip().split("\n\n") == expected


def _stop(*_):
    raise InterruptedError


def test_too_few_documents_are_refused_with_what_to_do(tmp_path, run_tool):
    (tmp_path / "own.txt").write_text("One.\nTwo.\n\nThree.\n")
    flags = [f"--output_dir={tmp_path / 'o'}", f"--corpus_file={tmp_path / 'own.txt'}"]
    result = run_tool("run_demo", *flags, exit_code=1)
    assert "contains 2 documents, but the demo needs at least 4" in result.stderr


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
    return folder / "out", result.stdout


@pytest.mark.slow
def test_every_command_is_shown_as_it_is_typed(demo_run):
    assert re.findall(r"^\$ bert_tf ([\w-]+)", demo_run[1], re.M) == [
        *("fill-mask", "pretrain", "plot", "classify", "classify", "export", "query")
    ]


@pytest.mark.slow
def test_the_report_is_printed_and_kept_and_the_files_that_it_names_exist(demo_run):
    folder, shown = demo_run
    report = (folder / "report.txt").read_text()
    assert shown.endswith(report)
    paths = re.findall(rf" {re.escape(str(folder))}/(\S+)", report)
    assert len(paths) == 4
    for path in paths:
        assert (folder / path).exists(), path
    assert (folder / "loss_curves.png").read_bytes().startswith(b"\x89PNG")
    assert_masks_are_filled(report)  # Without training.
    for name in ("masked_lm_loss", "pretrained weights", "random weights"):
        assert len(numbers(report, name)) == 2


@pytest.mark.long
def test_the_demo_convinces(tmp_path, run_tool_process):
    run_tool_process("run_demo", f"--output_dir={tmp_path}", timeout=1800)
    report = (tmp_path / "report.txt").read_text()
    assert_masks_are_filled(report)
    before, after = numbers(report, "masked_lm_loss")
    assert after < before - 0.05
    accuracies = {
        start: numbers(report, start)[1]
        for start in ("majority class", "random weights", "pretrained weights")
    }
    assert accuracies["pretrained weights"] >= 0.8
    assert accuracies["majority class"] < accuracies["random weights"]
    assert accuracies["random weights"] < accuracies["pretrained weights"] - 0.1
    assert int(re.search(r"(\d+) of 10 correct", report)[1]) >= 8


def numbers(report, name):
    """The numbers in the row of a table."""
    row = re.search(rf"^ +{name} (.*)", report, re.M)[1]
    return [float(number) for number in re.findall(r"\d\.\d+", row)]


def assert_masks_are_filled(report):
    for text, word in demo.MASKED.items():
        (row,) = [line for line in report.splitlines() if text in line]
        assert re.search(rf" {word} +.*\b{word} 0\.", row), row
