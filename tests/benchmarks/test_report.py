"""The report of the benchmarks: sections of RESULTS.md and their plots."""

import importlib.util

import pytest


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


def test_a_new_table_replaces_the_old_one_but_not_what_was_added_by_hand(
    report, tmp_path
):
    report.write_section("Speed", "first table", all_versions={})
    report.write_section("Other", "unrelated", all_versions={})
    path = tmp_path / "RESULTS.md"
    text = path.read_text(encoding="utf-8")
    by_hand = "first table\n\nAdded by hand: nothing else was running.\n\nMore."
    path.write_text(text.replace("first table", by_hand), encoding="utf-8")
    report.write_section("Speed", "second table", all_versions={})
    text = path.read_text(encoding="utf-8")
    assert "first table" not in text
    assert "Check this" in text.split("second table")[1]
    assert text.endswith("Added by hand: nothing else was running.\n\nMore.\n")
    assert text.count("unrelated") == 1


@pytest.mark.parametrize(
    "vendor, flags, expected",
    [
        ("GenuineIntel", "avx512f amx_bf16", "Speed"),
        ("GenuineIntel", "avx512f", "Speed, Intel without AMX"),
        ("AuthenticAMD", "avx512f", "Speed, AMD without AMX"),
    ],
)
def test_machines_of_different_kinds_have_sections_of_their_own(
    report, monkeypatch, vendor, flags, expected
):
    facts = {"vendor_id": vendor, "flags": flags}
    monkeypatch.setattr(report, "_cpu_facts", lambda: facts)
    assert report.title_here("Speed") == expected


def test_the_plot_of_a_section_is_written_beside_the_others(report, tmp_path):
    pytest.importorskip("matplotlib")
    line = report.plot(
        "Step: 8 × 128, float32", {"seconds": {"`ours`": [1.0, 2.0], "theirs": [3.0]}}
    )
    assert line == "![Step: 8 × 128, float32](plots/step_8_128_float32.png)"
    assert (tmp_path / "step_8_128_float32.png").read_bytes().startswith(b"\x89PNG")
