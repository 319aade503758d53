import dataclasses
import gc
import logging
import os
import pathlib
import subprocess
import sys
import threading

import pytest

from bert_tf import command_line
from bert_tf import options as options_module

AFTER = options_module.Options.after_interrupt
ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackOptions(options_module.Options):
    """Packs text into rows."""

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


def test_a_command_collects_garbage_less_often_while_it_works():
    before, seen = gc.get_threshold(), []
    _run("--input_file=a", work=lambda *_: seen.append(gc.get_threshold()))
    assert seen[0][0] > before[0]
    assert gc.get_threshold() == before


def test_flags_become_a_record_and_the_report_is_printed(capsys):
    code, seen = _run("--input_file=a,b", "--do_train", "--learning_rate", "2e-5")
    assert code == 0
    expected = PackOptions(input_file=("a", "b"), do_train=True, learning_rate=2e-5)
    assert seen == [expected]
    assert capsys.readouterr().out == "report\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceOptions(options_module.Options):
    """Uses a device."""

    device: str = options_module.option(help="A device.")


@pytest.mark.parametrize("before, expected", [(None, "true"), ("false", "false")])
def test_every_tool_takes_gpu_memory_as_it_needs_it(before, expected, monkeypatch):
    name = "TF_FORCE_GPU_ALLOW_GROWTH"
    monkeypatch.setenv(name, before or "")
    if before is None:
        monkeypatch.delenv(name)
    seen = []

    def work(record, progress):
        seen.append(os.environ.get(name))

    assert command_line.run("t", DeviceOptions, work, ["--device=cpu"]) == 0
    assert seen == [expected]


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
            "Unknown flag --max_sequence_length; did you mean --max_seq_length?",
        ),
        (
            ["--do-train"],
            "Unknown flag --do-train; did you mean --do_train?",
        ),
        (["--xyzzy=3"], "Unknown flag --xyzzy; --help lists all flags."),
        (
            ["--use_tpu"],
            "--use_tpu=true is no longer supported: use --device=tpu, with --tpu_name "
            "unless this is a TPU VM.",
        ),
        (
            ["--master=grpc://x"],
            "--master=grpc://x is no longer supported: use --device=tpu with the "
            "address as --tpu_name.",
        ),
        (
            ["--num_tpu_cores=32"],
            "--num_tpu_cores=32 is no longer supported: omit it; all cores of the "
            "TPU are used.",
        ),
        (["--use_tpu=maybe"], "--use_tpu: expected true or false, got 'maybe'."),
        (["a.txt"], "Unexpected 'a.txt'; write every option as --flag=value."),
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
    def fail(record, progress):
        progress("stage", 1, 2, unit="steps")
        raise failure

    assert _run("--input_file=a", work=fail)[0] == code
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert line is None or shown == line


class Interrupting:
    """Its finalizer is interrupted, as if Ctrl-C came just then."""

    def __del__(self):
        raise KeyboardInterrupt


def test_an_interrupt_that_python_drops_is_repeated(capsys):
    def work(record, progress):
        Interrupting()
        threading.Event().wait(60)

    assert _run("--input_file=a", work=work)[0] == 130
    assert capsys.readouterr().err == f"pack: interrupted. {AFTER}\n"


@pytest.mark.parametrize(
    "argv, failure",
    [
        (["--traceback"], ValueError),  # Developers want to see where.
        ([], TypeError),  # A defect of ours is not hidden.
        ([], ModuleNotFoundError("no", name="bert_tf.gone")),
    ],
)
def test_a_traceback_is_kept_where_it_helps(argv, failure):
    def fail(record, progress):
        raise failure

    with pytest.raises(failure if isinstance(failure, type) else type(failure)):
        _run("--input_file=a", *argv, work=fail)


def test_messages_begin_with_what_the_user_typed(capsys):
    code = command_line.run(
        "pack", PackOptions, lambda record, progress: None, [], typed="bert_tf pack"
    )
    assert code == 2
    assert capsys.readouterr().err.startswith("bert_tf pack: --input_file is required")


def test_a_report_of_a_failure_is_printed_and_exit_code_1(capsys):
    def work(record, progress):
        return options_module.FailureReport("2 errors")

    assert _run("--input_file=a", work=work)[0] == 1
    assert capsys.readouterr().out == "2 errors\n"


def test_help_is_printed_and_nothing_is_run(capsys):
    assert _run("--input_file=a", "--help") == (0, [])
    assert "Usage: pack --input_file=FILE,..." in capsys.readouterr().out


def test_the_librarys_log_is_shown_and_only_while_a_tool_runs(capsys):
    def work(record, progress):
        logging.getLogger("bert_tf.data").info("%d documents", 3)
        logging.getLogger("bert_tf.data").warning("few documents")

    handlers = list(logging.getLogger("bert_tf").handlers)
    _run("--input_file=a", work=work)
    assert capsys.readouterr().err == "3 documents\nWARNING: few documents\n"
    assert logging.getLogger("bert_tf").handlers == handlers


def test_a_reader_that_closes_early_is_not_a_failure(tmp_path):
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
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "line\n", "")


def test_a_tool_runs_with_closed_standard_streams(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import dataclasses, sys\n"
        "from bert_tf import command_line\n"
        "from bert_tf import options\n"
        "@dataclasses.dataclass(frozen=True, kw_only=True)\n"
        "class NoOptions(options.Options):\n"
        "    'None.'\n"
        "def work(record, progress):\n"
        "    progress('work', 1, 1, unit='steps')\n"
        "    return 'report'\n"
        "sys.exit(command_line.run('pack', NoOptions, work, []))\n"
    )
    for redirection, stdout in (("2>&-", b"report\n"), (">&- 2>&-", b"")):
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" "$1" {redirection}', sys.executable, str(script)],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=500,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, stdout)
