"""The table of compiled steps, with a double of the compiler."""

import importlib.util
import pathlib
import sys

import pytest

from bert_tf.modeling import config as config_module
from bert_tf.pretraining import tpu_compilation

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent.parent / "benchmarks"


@pytest.fixture
def tpu_compile(monkeypatch):
    """The script, as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location(
        "tpu_compile", BENCHMARKS / "tpu_compile.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("report", None)


def test_a_case_is_compiled_again_when_versions_or_sources_change(
    tpu_compile, tmp_path, monkeypatch
):
    compiled = []
    step = tpu_compilation.CompiledStep(fits=True, memory_bytes=1.0)
    monkeypatch.setattr(
        tpu_compilation, "compile_step", lambda given: compiled.append(given) or step
    )
    settings = tpu_compilation.StepSettings(
        config=config_module.BertConfig.of_size("L-1_H-64", vocab_size=100),
        slice_name="v5e-4",
        batch_size=32,
        max_seq_length=128,
        max_predictions_per_seq=20,
    )
    path, counts = tmp_path / "cases.jsonl", []
    for libtpu in ("1", "1", "2"):
        found = {"libtpu": libtpu}
        monkeypatch.setattr(tpu_compile.report, "versions", lambda *_, f=found: dict(f))
        assert tpu_compile.Cases(path).compiled("tiny", settings) == step
        counts.append(len(compiled))
    assert counts == [1, 1, 2]
    assert len(tpu_compile.origin()["sources"]) == 8
