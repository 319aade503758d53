"""TensorFlow's start-up lines are hidden; nothing else is, and never for ever."""

import importlib
import io
import os
import subprocess
import sys

import pytest

from bert_tf import import_hooks
from bert_tf import startup_lines

INFO = b"I0000 00:00:1795362536.705823   26460 port.cc:153] oneDNN is on.\n"
WARNING = b"W0000 00:00:1795362536.705823   26460 gpu.cc:2344] No GPU library.\n"
ERROR = b"E0000 00:00:1795362536.705823   26460 cuda_dnn.cc:8310] Registered twice.\n"
FATAL = b"F0000 00:00:1795362536.705823   26460 cpu_feature_guard.cc:68] No AVX.\n"
OLD_INFO = b"2026-11-22 15:50:14.001201: I tensorflow/core/port.cc:153] oneDNN.\n"
OLD_ERROR = b"2026-11-22 15:50:14.001201: E external/xla/cuda_fft.cc:485] Twice.\n"
ABOUT_LOGGING = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to "
    b"STDERR\n"
)
OTHER = b"python3: FutureWarning: I0000 is not at the start of this line.\n"
ALL = (ABOUT_LOGGING, INFO, WARNING, OTHER, ERROR, OLD_INFO, OLD_ERROR, FATAL)


@pytest.mark.parametrize(
    "level, shown",
    [
        (0, ALL),
        (1, (WARNING, OTHER, ERROR, OLD_ERROR, FATAL)),
        (2, (OTHER, ERROR, OLD_ERROR, FATAL)),
        (3, (OTHER, FATAL)),  # A fatal line is the last one of a process.
    ],
)
def test_log_lines_below_the_level_are_hidden(level, shown):
    stream = io.BytesIO()
    startup_lines.filter_lines([*ALL, b"\0"], level, stream)
    assert stream.getvalue() == b"".join(shown)


def test_without_the_sign_of_success_every_line_is_shown():
    stream = io.BytesIO()
    startup_lines.filter_lines(ALL, 3, stream)
    assert sorted(stream.getvalue().splitlines(keepends=True)) == sorted(ALL)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package that stands for TensorFlow, and makes it importable."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(startup_lines.LEVEL_VARIABLE, "3")

    def write(name, last_line):
        lines = [
            "import contextlib, os",
            "with contextlib.suppress(OSError):",  # Standard error may be closed.
            f"    os.write(2, {ABOUT_LOGGING + INFO + OTHER!r})",
            last_line,
        ]
        (tmp_path / f"{name}.py").write_text("\n".join(lines))
        importlib.invalidate_caches()
        return name

    return write


def test_an_import_shows_only_what_others_write(package, capfd):
    name = package("starts_well", "")
    with import_hooks.importing_within(name, startup_lines.hidden):
        module = importlib.import_module(name)
    os.write(2, INFO)  # After the import nothing is hidden.
    assert capfd.readouterr().err.encode() == OTHER + INFO
    assert module.__spec__.loader.get_filename(name) == module.__file__


def test_a_failed_import_gives_the_lines_back(package, capfd):
    name = package("starts_badly", "raise ImportError('libcudart.so.12 is missing')")
    finders = sys.meta_path[:]
    with (
        import_hooks.importing_within(name, startup_lines.hidden),
        pytest.raises(ImportError, match="libcudart"),
    ):
        importlib.import_module(name)
    assert capfd.readouterr().err.encode() == OTHER + ABOUT_LOGGING + INFO
    assert sys.meta_path == finders


def test_ctrl_c_during_the_import_does_not_show_them(package, capfd):
    name = package("is_interrupted", "raise KeyboardInterrupt")
    with (
        import_hooks.importing_within(name, startup_lines.hidden),
        pytest.raises(KeyboardInterrupt),
    ):
        importlib.import_module(name)
    assert capfd.readouterr().err.encode() == OTHER


@pytest.mark.parametrize(
    "last_line, redirection, code, stderr",
    [
        # TensorFlow aborts on a processor without the instructions it was built for.
        (f"os.write(2, {FATAL!r}); os._exit(134)", "", 134, [OTHER, FATAL, INFO]),
        ("", "2>&-", 0, []),  # Standard error is closed.
        ("", "", 0, [OTHER]),
    ],
)
def test_a_process_that_ends_early_or_has_no_standard_error(
    package, tmp_path, last_line, redirection, code, stderr
):
    name = package("ends", last_line)
    script = tmp_path / "script.py"
    script.write_text(
        "from bert_tf import import_hooks, startup_lines\n"
        f"with import_hooks.importing_within({name!r}, startup_lines.hidden):\n"
        f"    import {name}\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$1" {redirection}', sys.executable, str(script)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.getcwd()}"},
        timeout=500,
        check=False,
    )
    assert done.returncode == code
    shown = done.stderr.splitlines(keepends=True)
    assert [line for line in stderr if line not in shown] == []
    assert (INFO in shown) == (INFO in stderr)
