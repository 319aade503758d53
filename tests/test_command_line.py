"""The command line: flags, help, subcommands, exit codes, output."""

import dataclasses
import logging
import os
import pathlib
import pkgutil
import re
import shlex
import subprocess
import sys

import pytest

import bert_tf
from bert_tf import command_line
from bert_tf import options as options_module
from bert_tf import progress
from bert_tf import subcommands
from bert_tf.options import option

AFTER = options_module.Options.after_interrupt
ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = sorted(path.stem for path in (ROOT / "tools").glob("[a-z]*.py"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedOptions(options_module.Options):
    flag_group = "training"

    learning_rate: float = option(5e-5, help="Rate.")
    do_train: bool = option(False, help="Train.", group=options_module.TASK_AND_DATA)
    device: str = option("auto", help="Where.", choices=("auto", "tpu"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackOptions(SharedOptions):
    """Packs text into rows.

    pack   a line stays as it is
    """

    input_file: tuple[str, ...] = option(help="Text files.")
    max_seq_length: int = option(128, help="Row length.", minimum=1)
    init_checkpoint: str | None = option(None, help="Weights of 5 %.")
    layers: tuple[int, ...] = option((-1, -2), help="Layers.")
    text: tuple[str, ...] = option((), help="Texts.", repeated=True)


HELP = """\
Usage: pack --input_file=FILE,... [--flag=value ...]

Packs text into rows.

pack   a line stays as it is

What to do and on which data:
  --input_file=FILE,...
        Text files. [required]
  --max_seq_length=INT
        Row length. [default: 128]
  --init_checkpoint=TEXT
        Weights of 5 %.
  --layers=INT,...
        Layers. [default: -1,-2]
  --text=TEXT
        Texts. [repeatable]
  --do_train=true|false
        Train. [default: false]

Training:
  --learning_rate=NUMBER
        Rate. [default: 5e-05]
  --device=auto|tpu
        Where. [default: auto]

Advanced:
  --flagfile=FILE
        Read more flags from this file, one per line, or from a recipe of this
        package with recipe:NAME. Flags that follow on the command line take
        precedence.
  --traceback
        Show the Python traceback if the tool fails.

Exit codes: 0 success, 1 the job failed, 2 wrong usage.
"""


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def _run(*argv, work=None):
    seen = []

    def remember(record):
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
    "variable, before, expected",
    [
        ("TF_FORCE_GPU_ALLOW_GROWTH", "false", "false"),
        ("TF_CPP_MIN_LOG_LEVEL", None, "3"),
        ("KERAS_BACKEND", "jax", "tensorflow"),
    ],
)
def test_the_environment_suits_tensorflow(variable, before, expected, monkeypatch):
    monkeypatch.setenv(variable, before or "")
    if before is None:
        monkeypatch.delenv(variable)
    seen = []
    _run("--input_file=a", work=lambda _: seen.append(os.environ.get(variable)))
    assert seen == [expected]


@pytest.mark.parametrize(
    "argv, sentence",
    [
        ([], "--input_file is required: Text files."),
        (["--input_file"], "Missing value for flag --input_file."),
        (["--max_seqlength=3"], "Unknown flag --max_seqlength; did you mean --max_seq"),
        (["--do-train"], "Unknown flag --do-train; did you mean --do_train?"),
        (["--xyzzy=3"], "Unknown flag --xyzzy; --help lists all flags."),
        (["--use_tpu"], "--use_tpu=true is no longer supported: use --device=tpu."),
        (["--master=grpc://x"], "--master=grpc://x is no longer supported: omit it, "),
        (["--num_tpu_cores=32"], "--num_tpu_cores=32 is no longer supported: omit it"),
        (["--use_tpu=maybe"], "--use_tpu: expected true or false, got 'maybe'."),
        (["a.txt"], "Unexpected 'a.txt'; write every option as --flag=value."),
        (["--do_train=maybe"], "--do_train: expected true or false, got 'maybe'."),
        (
            ["--input_file", "a", "--device=tpu", "--input_file=b"],
            "--input_file is given twice; give it once, with commas between its items.",
        ),
        (["--do_train", "--nodo_train"], "--do_train is given twice; give it once."),
        (["--input_file=a", "--max_seq_length=0"], "--max_seq_length: expected at "),
        (["--input_file=a", "--learning_rate=fast"], "--learning_rate: expected a "),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, argv, sentence):
    code, seen = _run(*argv)
    assert (code, seen) == (2, [])
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"pack: {sentence}")


def test_flags_of_2018_that_ask_for_what_happens_anyway_are_accepted(capsys):
    scripts = (
        ("--use_tpu=False", "--tpu_zone=", "--gcp_project=", "--master="),
        ("--nouse_tpu", "--num_tpu_cores=8", "--use_one_hot_embeddings=false"),
    )
    for arguments in scripts:
        code, seen = _run("--input_file=a", *arguments)
        assert (code, seen) == (0, [PackOptions(input_file=("a",))])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "failure, code, line",
    [
        (ValueError("a.txt:3: two\n columns."), 1, "pack: a.txt:3: two columns.\n"),
        (FileNotFoundError("No such file: x."), 1, "pack: No such file: x.\n"),
        (ImportError("pip install 'bert_tf[plots]'"), 1, None),
        (options_module.OptionError("--a: needs --b."), 2, "pack: --a: needs --b.\n"),
        (KeyboardInterrupt(), 130, f"pack: interrupted. {AFTER}\n"),
        # The numbers of SIGINT and SIGTERM.
        (KeyboardInterrupt(2, "x"), 130, f"pack: interrupted; x. {AFTER}\n"),
        (KeyboardInterrupt(15, "x"), 143, f"pack: terminated; x. {AFTER}\n"),
    ],
)
def test_a_failed_job_is_one_line(capsys, failure, code, line):
    def fail(record):
        progress.report("stage", 1, 2, unit="steps")
        raise failure

    assert _run("--input_file=a", work=fail)[0] == code
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert line is None or shown == line


@pytest.mark.parametrize(
    "argv, failure",
    [
        (["--traceback"], ValueError("no")),  # Developers want to see where.
        ([], TypeError("no")),  # A defect of ours is not hidden.
        ([], ModuleNotFoundError("no", name="bert_tf.gone")),
    ],
)
def test_a_traceback_is_kept_where_it_helps(argv, failure):
    def fail(record):
        raise failure

    with pytest.raises(type(failure)):
        _run("--input_file=a", *argv, work=fail)


def test_the_librarys_log_is_shown_and_only_while_a_tool_runs(capsys):
    def work(record):
        logging.getLogger("bert_tf.data").info("%d documents", 3)
        logging.getLogger("bert_tf.data").warning("few documents")

    handlers = list(logging.getLogger("bert_tf").handlers)
    _run("--input_file=a", work=work)
    assert capsys.readouterr().err == "3 documents\nWARNING: few documents\n"
    assert logging.getLogger("bert_tf").handlers == handlers


SCRIPT = """\
import sys
from bert_tf import command_line, options, progress

def work(record):
    progress.report("work", 1, 1, unit="steps")
    return "line\\n" * 100000

sys.exit(command_line.run("pack", options.Options, work, []))
"""


@pytest.mark.parametrize(
    "command, stdout",
    [
        # A reader that closes early is not a failure.
        ('"$0" "$1" 2>&- | head -n 1; exit ${PIPESTATUS[0]}', b"line\n"),
        ('exec "$0" "$1" >&- 2>&-', b""),
    ],
)
def test_a_tool_runs_with_closed_standard_streams(tmp_path, command, stdout):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, str(script)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=500,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, stdout)


# Help.


def test_help_groups_flags_required_first_then_the_tools_own_then_shared_ones(capsys):
    assert _run("--input_file=a", "--help") == (0, [])
    assert capsys.readouterr().out.startswith(HELP)


@pytest.mark.parametrize("subcommand", subcommands.SUBCOMMANDS, ids=lambda s: s.name)
def test_help_names_every_flag_once_and_its_example_parses(subcommand):
    options_class = pkgutil.resolve_name(subcommand.options)
    typed = f"bert_tf {subcommand.name}"
    shown = subcommands.tool_help(typed, options_class)
    assert f"\n\nSame as: {subcommand.tool}\n" in shown
    [command] = re.findall(rf"^  {typed} .*$", shown.replace("\\\n", " "), re.M)
    seen = []
    # The recipe would read the files.
    words = shlex.split(command.replace("--recipe=auto", ""))[2:]
    assert command_line.run(typed, options_class, seen.append, words) == 0
    assert len(seen) == 1
    listed = re.findall(r"^  --(\w+)", shown, re.M)
    declared = options_module.declarations(options_class)
    names = [d.name for d in declared]
    also = ["recipe"] if "bias_correction" in names else []
    assert sorted(listed) == sorted([*names, *also, "flagfile", "traceback"])
    for declaration in declared:
        assert declaration.help.rstrip().endswith("."), declaration.name


def test_every_flag_is_read_somewhere():
    sources = list((ROOT / "bert_tf").rglob("*.py"))
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    read = set(re.findall(r"\.(\w+)|[\"'](\w+)[\"']", code))
    names = {name for pair in read for name in pair}
    for subcommand in subcommands.SUBCOMMANDS:
        options_class = pkgutil.resolve_name(subcommand.options)
        flags = {d.name for d in options_module.declarations(options_class)}
        assert flags <= names, subcommand.tool


# The command `bert_tf`.


def test_every_tool_is_one_subcommand_whose_names_exist():
    assert sorted(s.tool for s in subcommands.SUBCOMMANDS) == TOOLS
    names = {s.name for s in subcommands.SUBCOMMANDS}
    assert len(names) == len(TOOLS)
    assert not names & set(TOOLS)
    for subcommand in subcommands.SUBCOMMANDS:
        module, function = subcommand.work.split(":")
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"\ndef {function}(" in source, subcommand.work


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_the_overview_lists_every_subcommand_in_the_order_of_the_work(capsys, argv):
    assert command_line.main(argv) == 0
    shown = capsys.readouterr().out
    for subcommand in subcommands.SUBCOMMANDS:
        line = rf"^  {subcommand.name} +{re.escape(subcommand.summary)}$"
        assert re.search(line, shown, re.M), subcommand.name
    assert re.findall(r"^(\w.*):$", shown, re.M) == [
        "Start here",
        "Prepare data",
        "Pretrain",
        "Fine-tune and predict",
        "Evaluate",
        "Share and serve",
    ]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    "argv, line",
    [
        (["--version"], f"bert_tf {bert_tf.__version__}"),
        (["create-data", "--help"], "Usage: bert_tf create-data --input_file="),
        (["create_pretraining_data", "-h"], "Usage: bert_tf create_pretraining_data "),
        (["plot", "--help"], "Usage: bert_tf plot --run_dir="),
    ],
)
def test_a_subcommand_has_a_short_name_and_that_of_its_tool(capsys, argv, line):
    assert command_line.main(argv) == 0
    assert capsys.readouterr().out.startswith(line)


@pytest.mark.parametrize(
    "argv, line",
    [
        (["clasify"], "bert_tf: Unknown subcommand 'clasify'; did you mean classify?"),
        (["create_data"], "'create_data'; did you mean create-data?"),
        (["run_clasifier"], "'run_clasifier'; did you mean run_classifier?"),
        (["xyzzy"], "'xyzzy'; `bert_tf --help` lists them all."),
        (["--do_train", "x"], "bert_tf: Expected a subcommand before --do_train; "),
        (["pretrain", "--output_dir=x", "--xyzzy"], "bert_tf pretrain: Unknown flag"),
    ],
)
def test_a_wrong_subcommand_is_one_line_and_exit_code_2(capsys, argv, line):
    assert command_line.main(argv) == 2
    [shown] = capsys.readouterr().err.splitlines()
    assert line in shown
