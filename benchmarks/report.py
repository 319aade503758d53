"""What the comparisons with other libraries share: interleaved processes and a report.

Every library ("peer") runs in a process of its own, with its own Python if necessary.
The processes stay alive and take turns, one measurement at a time, so that a busy
moment of the machine does not affect one library alone. A script is its own peers:

    def serve_openvino(task):
        ...
        report.serve(measure, versions=report.versions("openvino"))

    def main():
        peer = report.start(__file__, "openvino", task, python=report.peers_python())
        rounds = report.interleave({"OpenVINO": peer}, count=7)
        ...

    report.run(main, openvino=serve_openvino)

This module needs only the standard library, so that every peer can import it.

    python benchmarks/report.py     # Draws the plots again, from the tables.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS_FILE = ROOT / "benchmarks" / "RESULTS.md"
PLOTS = ROOT / "benchmarks" / "plots"
SAMPLE = ROOT / "bert_tf" / "sample_data" / "corpus.txt"
# Section -> the column that its plot shows.
PLOTTED = {
    "Pretraining step": "time / ours",
    "Fine-tuning": "ratio",
    "Inference": "texts per second",
    "SQuAD": "ratio",
    "Tokenizing": "ratio",
}
# By default, glibc gives large tensors back to the kernel when they are freed and gets
# cleared pages for the next ones, which makes PyTorch slower.
KEEPS_MEMORY = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.arena_max=1:"
    "glibc.malloc.trim_threshold=100000000000"
}
# Marks the lines that `serve` writes; libraries print other ones.
_ANSWER = "ANSWER "
_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}
# Names this machine in the tables, where several have the same kind of processor.
_MACHINE_VARIABLE = "BERT_TF_MACHINE"


def argument_parser(docstring):
    """Returns a parser that describes a script by the first line of its docstring."""
    return argparse.ArgumentParser(
        description=docstring.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )


def run(main, **peers):
    """Runs a script: as a peer if `start` started it, or else `main`.

    Args:
        main: function without arguments; what it returns is the exit code.
        **peers: functions from the task of a peer, a dictionary.
    """
    if sys.argv[1:2] == ["peer"]:
        sys.exit(peers[sys.argv[2]](json.loads(sys.argv[3])))
    sys.exit(main())


def command_of_peer(script, name, task, python=sys.executable):
    """Returns the command that starts a script as the peer `name`; see `run`."""
    return [str(python), str(script), "peer", name, json.dumps(task)]


def result_of_peer(script, name, task, *, python=sys.executable, env=None):
    """Runs a script as the peer `name` to its end; returns the JSON that it prints."""
    command = command_of_peer(script, name, task, python)
    env = {**os.environ, **environment(), **(env or {})}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.strip().split(b"\n")[-1])


def start(script, name, task, *, python=sys.executable, env=None):
    """Starts a script as the peer `name` and returns its `Peer`."""
    return Peer(command_of_peer(script, name, task, python), env)


class Peer:
    """A process that measures one library, each time it is asked to.

    Args:
        command: the script and its arguments; it calls `serve`.
        env: environment variables to set, in addition to those of this process.

    Attributes:
        facts: dict that the process passed to `serve`.
    """

    def __init__(self, command, env=None):
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment(), **(env or {})},
        )
        self.facts = self._read()

    def measure(self):
        """Returns the figures of one measurement."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    def close(self):
        """Ends the process. Returns its peak memory in bytes."""
        self._process.stdin.close()
        peak = self._read()["peak_bytes"]
        self._process.wait()
        return peak

    def _read(self):
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                return json.loads(line.removeprefix(_ANSWER))
        raise RuntimeError(
            f"{shlex.join(self._process.args)} ended; its message is above."
        )


def serve(measure, **facts):
    """Takes measurements for the `Peer` of another process, until that closes.

    Args:
        measure: function that returns the figures of one measurement, a dict.
        **facts: for `Peer.facts`, such as `versions`.
    """

    def answer(values):
        print(f"{_ANSWER}{json.dumps(values)}", flush=True)

    answer(facts)
    for _ in sys.stdin:
        answer(measure())
    # Linux reports kilobytes.
    peak_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer({"peak_bytes": peak_bytes})


def interleave(peers, count):
    """Returns {name: list of `count` measurements} of peers that take turns.

    Args:
        peers: {name: Peer}.
        count: measurements of each. Every round starts with another peer.
    """
    names = list(peers)
    measurements = {name: [] for name in names}
    for index in range(count):
        first = index % len(names)
        for name in names[first:] + names[:first]:
            measurements[name].append(peers[name].measure())
    return measurements


def all_versions(peers):
    """Returns {package: version} of what all peers reported."""
    return {
        package: version
        for peer in peers.values()
        for package, version in peer.facts["versions"].items()
    }


def peers_python():
    """Returns the Python that has PyTorch, which TensorFlow's environment lacks.

    `make benchmark` creates it; the variable BERT_TF_PEERS_PYTHON names another one.
    """
    default = ROOT / ".venv-peers" / "bin" / "python"
    return os.environ.get("BERT_TF_PEERS_PYTHON", str(default))


def has_package(python, name):
    """Returns whether a Python exists and has a package."""
    code = f"import importlib.util as u, sys; sys.exit(not u.find_spec({name!r}))"
    try:
        return subprocess.run([python, "-c", code], check=False).returncode == 0
    except OSError:
        return False


def environment():
    """Returns environment variables for every process."""
    return {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}",
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # Hugging Face's tokenizers use all cores, as ours do.
        "TOKENIZERS_PARALLELISM": "true",
    }


def num_cores():
    """Returns the number of cores that this process may use, as after `taskset`."""
    if hasattr(os, "sched_getaffinity"):  # Linux.
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def seconds_of(function, *arguments):
    """Returns the seconds that a call takes."""
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def versions(*packages):
    """Returns {package: its version} for installed packages."""
    return {package: importlib.metadata.version(package) for package in packages}


def machine_name():
    """Returns the name of this machine in the tables."""
    facts = _cpu_facts()
    vendor = _VENDORS.get(facts.get("vendor_id", ""), platform.machine())
    has_amx = "amx_bf16" in facts.get("flags", "").split()
    name = f"{vendor} {'with' if has_amx else 'without'} AMX"
    return os.environ.get(_MACHINE_VARIABLE, name)


def _cpu_facts():
    """Returns the first entry of /proc/cpuinfo; {} where there is none."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def median_and_spread(values, digits=3):
    """Returns "median (smallest to largest)"."""
    median = statistics.median(values)
    return f"{median:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(header, rows):
    """Returns a table in Markdown.

    Args:
        header: list of column titles.
        rows: lists of cells; numbers are printed with two decimals, None as nothing.
    """

    def line(cells):
        return f"| {' | '.join(_cell(cell) for cell in cells)} |"

    return "\n".join([line(header), "|---" * len(header) + "|", *map(line, rows)])


def _cell(value):
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def write_table(title, header, rows, *, num_keys, versions, machine=None):
    """Writes this machine's rows into a section of RESULTS.md, and prints them.

    A row replaces that of this machine with the same keys. Rows of other machines, and
    what the section says above its table, stay.

    Args:
        title: of the section.
        header: titles of the columns; "machine" and "date" are added.
        rows: lists of cells.
        num_keys: number of columns, from the left, that say what was measured.
        versions: {package: version}.
        machine: name of the measured machine; default: this one.
    """
    machine, date = (
        machine or machine_name(),
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
    )
    rows = [[_cell(cell) for cell in (machine, *row, date)] for row in rows]
    sections = _read_sections()
    lines = sections.get(title, f"## {title}").splitlines()
    written = {tuple(row[: num_keys + 1]) for row in rows}
    earlier = [
        row
        for row in _rows(lines)[1:]
        # The columns may have changed.
        if tuple(row[: num_keys + 1]) not in written and len(row) == len(rows[0])
    ]
    machines = list(dict.fromkeys(row[0] for row in [*earlier, *rows]))
    all_rows = sorted([*earlier, *rows], key=lambda row: machines.index(row[0]))
    prose = "\n".join(
        line for line in lines if not line.startswith((f"* {machine}, ", "|", "!["))
    )
    has_list = prose.rstrip().split("\n\n")[-1].startswith("* ")
    body = [
        prose.strip()
        + ("\n" if has_list else "\n\n")
        + _run_line(machine, date, versions)
    ]
    body.append(table(["machine", *header, "date"], all_rows))
    if title in PLOTTED:
        body.append(f"![{title}](plots/{_plot_path(title).name})")
    sections[title] = "\n\n".join(body)
    RESULTS_FILE.write_text("\n\n".join(sections.values()) + "\n", encoding="utf-8")
    print(table(["machine", *header, "date"], rows))
    if title in PLOTTED:
        draw(title)


def _run_line(machine, date, packages):
    """Returns a list item: on what, when and how the rows of a machine were made."""
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    words = ", ".join(f"{name} {version}" for name, version in packages.items())
    command = shlex.join(part.replace(f"{ROOT}{os.sep}", "") for part in sys.argv)
    return f"* {machine}, {date}, load {load}: {words}; `python {command}`"


def _read_sections():
    """Returns {title: text} of RESULTS.md; its head is the section ""."""
    text = RESULTS_FILE.read_text(encoding="utf-8") if RESULTS_FILE.exists() else ""
    head, *sections = text.strip().split("\n## ")
    named = {part.split("\n")[0]: f"## {part.strip()}" for part in sections}
    return {"": head.strip() or "# Benchmarks", **named}


def _rows(lines):
    """Returns the cells of the first table, its header included."""
    rows = []
    for line in lines:
        if line.startswith("| "):
            rows.append([cell.strip() for cell in line[1:].rstrip("|").split("|")])
        elif rows and not line.startswith("|---"):
            break
    return rows or [[]]


def _plot_path(title):
    return PLOTS / f"{re.sub('[^a-z0-9]+', '_', title.lower()).strip('_')}.png"


def draw(title):
    """Draws the table of a section: a panel per machine, a bar per row."""
    from bert_tf.training import plots  # Only this function needs matplotlib.

    header, *rows = _rows(_read_sections()[title].splitlines())
    column = header.index(PLOTTED[title])
    rows = [row for row in rows if row[column]]
    machines = list(dict.fromkeys(row[0] for row in rows))
    num_rows = -(-len(machines) // 2)
    figure, panels = plots.create(num_rows, 2)
    most_bars = max(sum(row[0] == machine for row in rows) for machine in machines)
    figure.set_figheight(num_rows * (1 + 0.25 * most_bars))
    for axes in panels[len(machines) :]:
        axes.remove()
    for axes, machine in zip(panels, machines, strict=False):
        for row in (row for row in rows if row[0] == machine):
            median, *spread = map(float, re.findall(r"\d+(?:\.\d+)?", row[column]))
            low, high = spread or (median, median)
            values = [_is_value(cell) for cell in row]
            label = ", ".join(row[1 : values.index(True)]).replace("`", "")
            axes.barh(
                label,
                median,
                xerr=[[median - low], [high - median]],
                color=plots.COLORS[5],
            )
        axes.set_ylim(most_bars - 0.4, -0.6)
        axes.set_title(machine)
        axes.set_xlabel(PLOTTED[title])
    _plot_path(title).write_bytes(plots.image(figure))


def _is_value(cell):
    return re.fullmatch(r"[\d.,]+( s)?( \(.* to .*\))?", cell) is not None


if __name__ == "__main__":
    for section_title in PLOTTED:
        draw(section_title)
