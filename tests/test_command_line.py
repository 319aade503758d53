import dataclasses
import logging
import os
import pathlib
import subprocess
import sys

import pytest

from bert_tf import command_line
from bert_tf import options as options_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackOptions(options_module.Options):
    """Packs text into rows.

    A second paragraph, which is folded when it is longer than a line of a terminal
    that has its usual width.
    """

    input_file: tuple[str, ...] = options_module.option(help="Text files.")
    max_seq_length: int = options_module.option(128, help="Row length.", minimum=1)
    learning_rate: float = options_module.option(5e-5, help="Rate.")
    do_train: bool = options_module.option(False, help="Whether to train.")
    init_checkpoint: str | None = options_module.option(None, help="Weights.")
    layers: tuple[int, ...] = options_module.option((-1, -2), help="Layers.")
    text: tuple[str, ...] = options_module.option((), help="Texts.", repeated=True)


def _run(*argv, work=None):
    seen = []

    def remember(record, progress):
        seen.append(record)
        return "report"

    code = command_line.run("pack", PackOptions, work or remember, list(argv))
    return code, seen


def test_flags_become_a_record_and_the_report_is_printed(capsys):
    code, seen = _run("--input_file=a,b", "--do_train", "--learning_rate", "2e-5")
    assert code == 0
    expected = PackOptions(input_file=("a", "b"), do_train=True, learning_rate=2e-5)
    assert seen == [expected]
    assert capsys.readouterr().out == "report\n"


def test_a_repeated_flag_is_one_item_each_time():
    arguments = ["--text=One, with a comma.", "--input_file=a", "--text", "Two."]
    assert _run(*arguments)[1][0].text == ("One, with a comma.", "Two.")
    assert _run("--input_file=a")[1][0].text == ()


@pytest.mark.parametrize(
    "argument, value",
    [("--do_train", True), ("--nodo_train", False), ("--do_train=True", True)],
)
def test_booleans_are_written_as_in_2018(argument, value):
    assert _run("--input_file=a", argument)[1][0].do_train is value


@pytest.mark.parametrize(
    "argv, sentence",
    [
        ([], "--input_file is required: Text files."),
        (["--input_file"], "Missing value for flag --input_file."),
        (
            ["--max_sequence_length=3"],
            "There is no flag --max_sequence_length; did you mean --max_seq_length?",
        ),
        (
            ["--do-train"],
            "There is no flag --do-train; did you mean --do_train?",
        ),
        (["--xyzzy=3"], "There is no flag --xyzzy; --help lists all flags."),
        (
            ["--use_tpu=False"],
            "--use_tpu of the 2018 release is gone: use --device=tpu.",
        ),
        (["--nouse_tpu"], "--use_tpu of the 2018 release is gone: use --device=tpu."),
        (
            ["--master=grpc://x"],
            "--master of the 2018 release is gone: use --device and --tpu_name.",
        ),
        (["a.txt"], "Unexpected 'a.txt'; write every option as --name=value."),
        (
            ["--input_file=a", "--do_train=maybe"],
            "--do_train: expected true or false, got 'maybe'.",
        ),
        (
            ["--input_file=a", "--max_seq_length=0"],
            "--max_seq_length: expected at least 1, got 0.",
        ),
        (
            ["--input_file=a", "--learning_rate=fast"],
            "--learning_rate: expected a number, got 'fast'.",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, argv, sentence):
    code, seen = _run(*argv)
    assert (code, seen) == (2, [])
    assert capsys.readouterr().err == f"pack: {sentence}\n"


@pytest.mark.parametrize(
    "failure, code, line",
    [
        (ValueError("a.txt:3: two\n columns."), 1, "pack: a.txt:3: two columns.\n"),
        (FileNotFoundError("There is no file x."), 1, "pack: There is no file x.\n"),
        (ImportError("pip install 'bert_tf[plots]'"), 1, None),
        (options_module.OptionError("--a: needs --b."), 2, "pack: --a: needs --b.\n"),
        (KeyboardInterrupt(), 130, "pack: interrupted.\n"),
        (KeyboardInterrupt(2), 130, "pack: interrupted.\n"),  # SIGINT.
        (KeyboardInterrupt(15), 143, "pack: terminated; the run is saved.\n"),
    ],
)
def test_a_failed_job_is_one_line(capsys, failure, code, line):
    def fail(record, progress):
        progress("stage", 1, 2, unit="steps")
        raise failure

    assert _run("--input_file=a", work=fail)[0] == code
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert line is None or shown == line


@pytest.mark.parametrize(
    "argv, failure",
    [
        (["--traceback"], ValueError),  # Whoever develops wants to see where.
        ([], TypeError),  # A defect of ours is not hidden.
        ([], ModuleNotFoundError("no", name="bert_tf.gone")),
    ],
)
def test_a_traceback_is_kept_where_it_helps(argv, failure):
    def fail(record, progress):
        raise failure

    with pytest.raises(failure if isinstance(failure, type) else type(failure)):
        _run("--input_file=a", *argv, work=fail)


def test_help_shows_every_flag_with_its_default(capsys):
    assert _run("--help") == (0, [])
    shown = capsys.readouterr().out
    assert shown.startswith("Packs text into rows.\n\nA second paragraph")
    assert "Usage:\n  pack --input_file=... [--flag=value ...]" in shown
    assert "--input_file (comma list, required)\n      Text files." in shown
    assert "--max_seq_length (int, default 128)" in shown
    assert "--layers (comma list, default -1,-2)" in shown
    assert "--do_train (bool, default false)" in shown
    assert "--text (text, repeatable, optional)" in shown
    assert "--init_checkpoint (text, optional)" in shown


def test_the_librarys_log_is_shown_and_only_while_a_tool_runs(capsys):
    def work(record, progress):
        logging.getLogger("bert_tf.data").info("%d documents", 3)
        logging.getLogger("bert_tf.data").warning("few documents")

    handlers = list(logging.getLogger("bert_tf").handlers)
    _run("--input_file=a", work=work)
    assert capsys.readouterr().err == "3 documents\nWARNING: few documents\n"
    assert logging.getLogger("bert_tf").handlers == handlers


def test_a_reader_that_closes_early_is_no_failure(tmp_path):
    script = tmp_path / "pack.py"
    script.write_text(
        "import dataclasses, sys\n"
        "from bert_tf import command_line, options\n"
        "work = lambda record, progress: 'line\\n' * 100000\n"
        "sys.exit(command_line.run('pack', options.Options, work))\n"
    )
    done = subprocess.run(
        f"{sys.executable} {script} | head -n 1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent.parent)},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "line\n", "")
