import pathlib
import re
import subprocess
import sys

import pytest

import bert_tf
from bert_tf import __main__ as main_module
from bert_tf import help_text
from bert_tf import subcommands

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = sorted(path.stem for path in (ROOT / "tools").glob("[a-z]*.py"))


def test_every_tool_is_one_subcommand():
    assert sorted(s.tool for s in subcommands.SUBCOMMANDS) == TOOLS
    names = {s.name for s in subcommands.SUBCOMMANDS}
    assert len(names) == len(TOOLS)
    assert not names & set(TOOLS)


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_lists_every_subcommand_on_one_line(capsys, monkeypatch, argv):
    monkeypatch.setenv("COLUMNS", "80")
    assert main_module.main(argv) == 0
    shown = capsys.readouterr().out
    for subcommand in subcommands.SUBCOMMANDS:
        line = rf"^  {subcommand.name} +{re.escape(subcommand.summary)}$"
        assert re.search(line, shown, re.M), subcommand.name


def test_the_overview_follows_the_order_of_the_work():
    headings = re.findall(r"^(\w.*):$", help_text.overview("1.0"), re.M)
    assert headings == [
        "Start here",
        "Prepare data",
        "Pretrain",
        "Fine-tune and predict",
        "Evaluate",
        "Share and serve",
    ]


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_that_of_the_package(capsys, option):
    assert main_module.main([option]) == 0
    assert capsys.readouterr().out == f"bert_tf {bert_tf.__version__}\n"


@pytest.mark.parametrize(
    "name", ["create-data", "create_data", "create_pretraining_data"]
)
def test_a_subcommand_has_a_short_name_and_that_of_its_tool(capsys, name):
    assert main_module.main([name, "--help"]) == 0
    assert f"Usage: bert_tf {name} --input_file=" in capsys.readouterr().out


def test_help_may_come_before_the_subcommand(capsys):
    assert main_module.main(["help", "plot"]) == 0
    assert "Usage: bert_tf plot --run_dir=" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv, line",
    [
        (["clasify"], "Unknown subcommand 'clasify'; did you mean classify?"),
        (
            ["run_clasifier"],
            "Unknown subcommand 'run_clasifier'; did you mean run_classifier?",
        ),
        (
            ["xyzzy"],
            "Unknown subcommand 'xyzzy'; `bert_tf --help` lists them all.",
        ),
        (
            ["--do_train", "classify"],
            "Expected a subcommand before --do_train; `bert_tf --help` lists them.",
        ),
    ],
)
def test_an_unknown_subcommand_is_one_line_and_exit_code_2(capsys, argv, line):
    assert main_module.main(argv) == 2
    assert capsys.readouterr().err == f"bert_tf: {line}\n"


def test_a_subcommands_error_begins_with_what_was_typed(capsys):
    assert main_module.main(["pretrain", "--output_dir=x", "--xyzzy"]) == 2
    assert capsys.readouterr().err.startswith("bert_tf pretrain: Unknown flag")


def test_a_subcommand_does_the_work_of_its_tool(tmp_path, capsys):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat sat\nthe dog sat\n")
    vocabulary = tmp_path / "vocab.txt"
    flags = [f"--input_file={corpus}", f"--vocab_file={vocabulary}", "--vocab_size=40"]
    assert main_module.main(["vocabulary", *flags]) == 0
    assert "[MASK]" in vocabulary.read_text().splitlines()


def test_python_runs_the_package():
    done = subprocess.run(
        [sys.executable, "-m", "bert_tf", "clasify"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean classify?" in done.stderr
