"""Fixtures for all tests: recorded results, configurations, tools."""

import contextlib
import dataclasses
import gc
import importlib
import io
import json
import os
import pathlib
import pkgutil
import shutil
import signal
import subprocess
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest
import wrapt

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool printed."""

    tool: str
    stdout: str
    stderr: str

    @property
    def refusal(self):
        """The last line of standard error, which is no traceback and names the tool."""
        assert "Traceback" not in self.stderr
        line = self.stderr.strip().splitlines()[-1]
        assert line.startswith(f"{self.tool}: ")
        return line


# A tool that sends itself a signal when it has logged a step.
SELF_SIGNALLING = """
import os, runpy
from bert_tf.training import run_folder

log = run_folder.RunFolder.log

def log_and_signal(folder, step, *values, **named):
    log(folder, step, *values, **named)
    if step >= {step}:
        os.kill(os.getpid(), {number})

run_folder.RunFolder.log = log_and_signal
runpy.run_path({path!r}, run_name="__main__")
"""


def pytest_configure():
    # Tests send Ctrl-C, which a shell makes its background jobs ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    # Otherwise a search for garbage looks at every object of TensorFlow, for a second.
    gc.freeze()


@wrapt.when_imported("tensorflow")
def divide_cpu(tensorflow):
    """Divides the CPU into four devices, for tests of replicas.

    TensorFlow allows this only before its first use, so it happens right after the
    import. Every process therefore has the same devices, whichever tests it runs.
    """
    cpu = tensorflow.config.list_physical_devices("CPU")[0]
    devices = [tensorflow.config.LogicalDeviceConfiguration()] * 4
    tensorflow.config.set_logical_device_configuration(cpu, devices)


@pytest.fixture(autouse=True)
def fixed_seed():
    """Gives every test the same initial weights and dropout on every run.

    A test that draws its own weights would otherwise compare other numbers each time,
    and a rare draw would fail it.
    """
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(20181011)


@pytest.fixture(scope="session")
def project_root():
    """Folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def golden():
    """Folder of small results that were recorded from the 2018 release."""
    return ROOT / "tests" / "golden"


@pytest.fixture(scope="session")
def copy_release(golden):
    """Copies the recorded model into a new folder, as a released zip unpacks.

    `copy_release(path)` copies checkpoint, configuration and vocabulary, and returns
    the folder.
    """

    def copy(folder):
        folder.mkdir(parents=True)
        for path in (*(golden / "model").glob("bert_*"), golden / "vocab.txt"):
            shutil.copy(path, folder)
        return folder

    return copy


@pytest.fixture(scope="session")
def quick_config(golden, tmp_path_factory):
    """Path of the configuration of a model that learns a task in very few steps.

    It is the recorded model with one layer, no dropout, and initial weights that are
    five times as large. It learns in a quarter of the steps that the tests take, with
    any seed and on any processor. Tests of resumed runs need `dropout_config` instead:
    what has to resume is also the state of dropout.
    """
    return _changed_config(
        golden,
        tmp_path_factory.mktemp("quick"),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )


@pytest.fixture(scope="session")
def dropout_config(golden, tmp_path_factory):
    """Path of the recorded model's configuration with one layer; it has dropout."""
    return _changed_config(golden, tmp_path_factory.mktemp("dropout"))


@pytest.fixture(scope="session")
def shared():
    """Folder with public data and the large recorded results, where there is one."""
    folder = pathlib.Path(os.environ.get("BERT_TF_SHARED", ROOT.parent / "shared"))
    if not (folder / "golden").is_dir():
        pytest.skip(f"no golden/ in {folder}; set BERT_TF_SHARED to the folder with it")
    return folder


@pytest.fixture(scope="session")
def sample_data():
    """Folder of the texts that come with the package."""
    return ROOT / "bert_tf" / "sample_data"


@pytest.fixture
def write(tmp_path):
    """Writes a text, bytes, or a list as JSON lines; returns the path of the file."""

    def write_file(name, content):
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file


@pytest.fixture
def small_disk(tmp_path):
    """Returns the folder of a new disk of some bytes: small_disk(48 * 1024)."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size):
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        if shutil.which("mount") is None or subprocess.run(command).returncode:
            pytest.skip("a small disk can be mounted by root only")
        return folder

    yield mount
    if os.path.ismount(folder):
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def reported():
    """The progress that is reported during the test: a list of (stage, done, total)."""
    from bert_tf import progress

    calls = []
    with progress.reporting_to(lambda *call, **_: calls.append(call)):
        yield calls


@pytest.fixture
def recorded_flags(golden):
    """Flags with which run_pretraining trains the recorded model on its examples."""
    return {
        "input_file": golden / "model" / "examples.tfrecord",
        "bert_config_file": golden / "model" / "bert_config.json",
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "train_batch_size": 4,
        "do_train": True,
    }


@pytest.fixture
def pretrain(recorded_flags, tmp_path, run_tool):
    """Runs run_pretraining on its recorded examples; keywords replace or add flags.

    A flag of None is left out.
    """

    def run(**flags):
        output_dir = {"output_dir": tmp_path / "run"}
        return run_tool("run_pretraining", **recorded_flags | output_dir | flags)

    return run


@pytest.fixture(scope="session")
def run_tool():
    """Runs a tool in this process: run_tool("build_vocabulary", "--input_file=...").

    Flags can also be keywords. One with the value None is left out. The tool must end
    with `exit_code`.
    """
    return _run_in_process


@pytest.fixture(scope="session")
def run_tool_process():
    """Runs a tool in a separate process, as a user does; `env` adds variables."""
    return _run_in_new_process


@pytest.fixture(scope="session")
def options_of_tool():
    """Returns the options record of a tool: options_of_tool("run_classifier")."""
    return _options_of_tool


@pytest.fixture(scope="session")
def self_signalling():
    """Returns a program that runs a tool and sends itself a signal at a logged step.

    A signal from outside may come too late on a busy machine.
    """

    def program(tool, step, number):
        path = str(ROOT / "tools" / f"{tool}.py")
        return SELF_SIGNALLING.format(step=step, number=int(number), path=path)

    return program


@pytest.fixture
def signal_at(monkeypatch):
    """Returns a context in which a run sends itself a signal at a logged step."""

    @contextlib.contextmanager
    def sends(at_step, number):
        from bert_tf.training import run_folder

        log = run_folder.RunFolder.log

        def log_and_send(folder, step, *values, **named):
            log(folder, step, *values, **named)
            if step == at_step:
                os.kill(os.getpid(), number)

        with monkeypatch.context() as patch:
            patch.setattr(run_folder.RunFolder, "log", log_and_send)
            yield

    return sends


def _changed_config(golden, folder, **changes):
    config = json.loads((golden / "model" / "bert_config.json").read_text())
    path = folder / "bert_config.json"
    path.write_text(json.dumps(config | {"num_hidden_layers": 1} | changes))
    return str(path)


def _options_of_tool(tool):
    from bert_tf import subcommands

    return pkgutil.resolve_name(subcommands.BY_NAME[tool].options)


def _run_in_process(name, *arguments, exit_code=0, **flags):
    arguments = [*arguments, *(f"--{k}={v}" for k, v in flags.items() if v is not None)]
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        tool = importlib.import_module(f"tools.{name}")
        code = tool.main(list(map(str, arguments)))
    assert code == exit_code, stderr.getvalue()
    return ToolResult(tool=name, stdout=stdout.getvalue(), stderr=stderr.getvalue())


def _run_in_new_process(name, *arguments, exit_code=0, env=None, timeout=300):
    command = [sys.executable, ROOT / "tools" / f"{name}.py", *map(str, arguments)]
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(env or {})},
        check=False,
    )
    assert done.returncode == exit_code, done.stderr
    return ToolResult(tool=name, stdout=done.stdout, stderr=done.stderr)
