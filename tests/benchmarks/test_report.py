"""The report of the benchmarks: tables of RESULTS.md and their plots."""

import importlib.util
import sys

import pytest

HEADER = ["library", "seconds"]


@pytest.fixture
def report(project_root, tmp_path, monkeypatch):
    """The module, which writes into a folder of the test."""
    path = project_root / "benchmarks" / "report.py"
    spec = importlib.util.spec_from_file_location("report_of_benchmarks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS_FILE", tmp_path / "RESULTS.md")
    monkeypatch.setattr(module, "PLOTS", tmp_path)
    return module


def test_new_rows_replace_those_of_the_same_machine_and_keys_alone(report, monkeypatch):
    def write(machine, *rows, title="Speed"):
        monkeypatch.setenv("BERT_TF_MACHINE", machine)
        report.write_table(title, HEADER, rows, num_keys=1, versions={"keras": "3"})

    write("A", ["ours", "1"], ["theirs", "2"])
    write("B", ["ours", "3"])
    write("B", ["ours", "4"], title="Other")
    text = report.RESULTS_FILE.read_text(encoding="utf-8")
    by_hand = text.replace("## Speed\n", "## Speed\n\nMedians.\n\n* B was busy.\n", 1)
    report.RESULTS_FILE.write_text(by_hand, encoding="utf-8")
    write("A", ["ours", "9"])
    text = report.RESULTS_FILE.read_text(encoding="utf-8")
    section = text.split("## Speed")[1].split("## Other")[0]
    rows = [line[1:-1].split("|")[:3] for line in section.splitlines() if "| " in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["machine", "library", "seconds"],
        ["A", "theirs", "2"],
        ["A", "ours", "9"],
        ["B", "ours", "3"],
    ]
    assert "\n\nMedians.\n\n* B was busy.\n" in section
    assert section.count("* A, ") == section.count("* B, ") == 1
    assert section.count("keras 3; `python ") == 2


@pytest.mark.parametrize(
    "vendor, flags, expected",
    [
        ("GenuineIntel", "avx512f amx_bf16", "Intel with AMX"),
        ("GenuineIntel", "avx512f", "Intel without AMX"),
        ("AuthenticAMD", "avx512f", "AMD without AMX"),
    ],
)
def test_machines_of_different_kinds_have_different_names(
    report, monkeypatch, vendor, flags, expected
):
    monkeypatch.delenv("BERT_TF_MACHINE", raising=False)
    facts = {"vendor_id": vendor, "flags": flags}
    monkeypatch.setattr(report, "_cpu_facts", lambda: facts)
    assert report.machine_name() == expected


def test_the_plot_shows_the_column_of_the_table(report, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(report, "PLOTTED", {"Speed": "seconds"})
    rows = [["`ours`", "1.5 (1.0 to 2.0)"], ["theirs", "3.0"], ["other", ""]]
    report.write_table("Speed", HEADER, rows, num_keys=1, versions={})
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert "![Speed](plots/speed.png)" in report.RESULTS_FILE.read_text()


def test_a_script_runs_as_the_peer_that_its_arguments_name(report, monkeypatch):
    tasks = []
    command = report.command_of_peer("script.py", "ours", {"size": "mini"})
    monkeypatch.setattr(sys, "argv", command[1:])
    with pytest.raises(SystemExit):
        report.run(lambda: pytest.fail("not the driver"), ours=tasks.append)
    assert tasks == [{"size": "mini"}]
