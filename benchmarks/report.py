"""What the comparisons with other libraries share: interleaved processes and a report.

Every library ("peer") runs in a process of its own, with its own Python if necessary.
The processes stay alive and take turns, one measurement at a time, so that a busy
moment of the machine does not affect one library alone:

    peers = {
        "bert_tf": report.Peer([sys.executable, "inference_bert_tf.py", "task.json"]),
        "OpenVINO": report.Peer([other_python, "inference_openvino.py", "task.json"]),
    }
    rounds = report.interleave(peers, count=7)   # {peer: [{"seconds": ...}, ...]}

Each script ends with `report.serve(measure, versions=...)`, where `measure` takes one
measurement and returns its figures. This module needs only the standard library, so
that every peer can import it.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS_FILE = ROOT / "benchmarks" / "RESULTS.md"
PLOTS = ROOT / "benchmarks" / "plots"
RESULTS_HEAD = """\
# Benchmarks

`make benchmark` runs the scripts that need no files, and each of them replaces its
sections of this file: `training_step.py`, `tokenizing.py` and `inference.py`.
`make benchmark-NAME ARGS="..."` runs any script; `ARGS=--help` shows what it needs.
Some scripts write no section: `docs/measurements.md` and `docs/remote_data.md` have
their results. Compare ratios only within a table, because machines and loads differ.
"""
# By default, glibc gives large tensors back to the kernel when they are freed and gets
# cleared pages for the next ones, which makes PyTorch slower.
KEEPS_MEMORY = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.arena_max=1:"
    "glibc.malloc.trim_threshold=100000000000"
}
# Marks the lines that `serve` writes; libraries print other ones.
_ANSWER = "ANSWER "
# Starts the part of a section that a person wrote.
_NOTES = "Added by hand:"
_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}


def argument_parser(docstring):
    """Returns a parser that describes a script by the first line of its docstring."""
    return argparse.ArgumentParser(
        description=docstring.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )


class Peer:
    """A process that measures one library, each time it is asked to.

    Args:
        command: the script and its arguments; it calls `serve`.
        env: environment variables to set, in addition to those of this process.

    Attributes:
        facts: dict that the process passed to `serve`, `first_seconds` included.
    """

    def __init__(self, command, env=None):
        self._process = subprocess.Popen(
            [str(part) for part in command],
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
    found = {name: [] for name in names}
    for index in range(count):
        first = index % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(peers[name].measure())
    return found


def peers_python():
    """Returns the Python that has PyTorch, which TensorFlow's environment lacks.

    `make benchmark` creates it; the variable BERT_TF_PEERS_PYTHON names another one.
    """
    default = ROOT / ".venv-peers" / "bin" / "python"
    return os.environ.get("BERT_TF_PEERS_PYTHON", str(default))


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


def versions(*packages):
    """Returns {package: its version} for installed packages."""
    return {package: importlib.metadata.version(package) for package in packages}


def has_amx():
    """Returns whether the processor has AMX's matrix units for bfloat16."""
    return "amx_bf16" in _cpu_facts().get("flags", "").split()


def machine():
    """Returns a line about this machine: processor, matrix units, cores, memory."""
    facts = _cpu_facts()
    flags = facts.get("flags", "").split()
    units = [name for name in ("amx_bf16", "avx512_bf16", "avx512f") if name in flags]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{facts.get('model name', platform.processor())}, {num_cores()} cores, "
        f"{'with' if has_amx() else 'without'} AMX "
        f"({', '.join(units) or 'no AVX-512'}), {gigabytes:.0f} GB of memory, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


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


def write_section(title, body, *, all_versions, on_cpu=True, bars=None):
    """Writes or replaces a section of RESULTS.md, and prints it.

    What was added by hand to a section stays, with a reminder to check it.

    Args:
        title: of the section; a section with the same title is replaced.
        body: tables and what they mean, in Markdown.
        all_versions: {package: version}.
        on_cpu: whether the figures depend on this machine's processor. If so, each
            vendor's processors without AMX have a section of their own.
        bars: those of `plot`; None: no plot.
    """
    title = title_here(title) if on_cpu else title
    if bars is not None:
        body = f"{body.strip()}\n\n{plot(title, bars)}"
    packages = ", ".join(f"{name} {value}" for name, value in all_versions.items())
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    section = "\n".join(
        [
            f"## {title}",
            "",
            f"* Machine: {machine()}.",
            f"* Versions: {packages}.",
            f"* Date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}; load average "
            f"(1, 5, 15 minutes) at the end: {load}.",
            f"* Command: `python {shlex.join(_relative(part) for part in sys.argv)}`.",
            "",
            body.strip(),
        ]
    )
    text = RESULTS_HEAD
    if RESULTS_FILE.exists():
        text = RESULTS_FILE.read_text(encoding="utf-8")
    head, *sections = text.strip().split("\n## ")
    kept = {part.split("\n")[0]: f"## {part.strip()}" for part in sections}
    _, mark, notes = kept.get(title, "").partition(f"\n{_NOTES}")
    if mark:
        section += f"\n\n**Check this: it is about an earlier table.**\n{mark}{notes}"
    kept[title] = section
    text = "\n\n".join([head.strip(), *(kept[name] for name in sorted(kept))])
    RESULTS_FILE.write_text(f"{text}\n", encoding="utf-8")
    print(section)


def title_here(title):
    """Returns the title of a section whose figures depend on this processor."""
    if has_amx():
        return title
    vendor = _VENDORS.get(_cpu_facts().get("vendor_id", ""), platform.machine())
    return f"{title}, {vendor} without AMX"


def plot_path(title):
    """Returns the file for the plot of a section."""
    name = re.sub("[^a-z0-9]+", "_", title.lower()).strip("_")
    return PLOTS / f"{name}.png"


def plot(title, bars):
    """Draws measurements as bars, one panel per unit. Returns the plot's Markdown.

    Args:
        title: of the section.
        bars: {unit: {peer: measurements}}. Bars are medians, lines the whole range.
    """
    from bert_tf.training import plots  # The only function that needs matplotlib.

    figure, panels = plots.create(1, len(bars))
    for axes, (unit, peers) in zip(panels, bars.items(), strict=True):
        for name, values in peers.items():
            median = statistics.median(values)
            spread = [[median - min(values)], [max(values) - median]]
            label = name.replace("`", "")
            axes.barh(label, median, xerr=spread, color=plots.COLORS[5])
        axes.invert_yaxis()
        axes.set_xlabel(unit)
    path = plot_path(title)
    path.write_bytes(plots.image(figure))
    return f"![{title}](plots/{path.name})"


def _relative(argument):
    """Returns an argument with paths below the project relative to it."""
    return argument.replace(f"{ROOT}{os.sep}", "")
