"""Steps compiled for a TPU that is not there."""

import dataclasses
import importlib.util
import json
import subprocess

import pytest

from bert_tf import options as options_module
from bert_tf.modeling import config as config_module
from bert_tf.pretraining import jax_step
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import tpu_compilation
from bert_tf.training import tpu_slices

V5E = tpu_slices.SLICES["v5e-4"].chip
needs_compiler = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("jax", "libtpu")),
    reason="needs JAX and libtpu: pip install -e '.[tpu-compile]'",
)


def usage_of(num_bytes):
    return f"Memory Space: default (color=0)\nTotal bytes: {num_bytes} (0GiB)\n"


def settings(**changes):
    config = config_module.BertConfig(
        vocab_size=128,
        hidden_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=128,
    )
    values = {
        "config": config,
        "slice_name": "v5e-4",
        "batch_size": 32,
        "max_seq_length": 128,
        "max_predictions_per_seq": 8,
    }
    return tpu_compilation.StepSettings(**values | changes)


@needs_compiler
def test_a_whole_step_is_compiled_for_a_tpu():
    compiled = tpu_compilation.compile_step(settings())
    assert compiled.fits
    # At least weights and two slots, in float32.
    assert compiled.memory_bytes > 3 * 4 * 100_000
    # The compiler also counts what is not a matrix product.
    assert 0.8 < compiled.flops / settings().model_flops < 4
    assert 0 < compiled.traffic_bytes <= compiled.bytes_accessed


@needs_compiler
def test_a_batch_that_exceeds_the_memory_of_the_chip_does_not_fit():
    # 4096 x 128 x 30522 logits of 2 bytes take 32 GB.
    given = settings(
        config=dataclasses.replace(settings().config, vocab_size=30_522),
        batch_size=4 * 4096,
        max_predictions_per_seq=128,
    )
    compiled = tpu_compilation.compile_step(given)
    assert not compiled.fits
    assert 32e9 < compiled.memory_bytes < 64e9
    assert compiled.flops == 0


@pytest.mark.parametrize(
    "usage, error, message",
    [
        # Another memory than the chip's is exhausted.
        (usage_of(5_000_000_000), "RESOURCE_EXHAUSTED: vmem", "EXHAUSTED: vmem"),
        ("", "RESOURCE_EXHAUSTED: host", "EXHAUSTED: host"),
        (usage_of(20_000_000_000), "INTERNAL: a bug", "INTERNAL: a bug"),
        ("Something else", "RESOURCE_EXHAUSTED: hbm", "no line 'Total bytes'"),
    ],
)
def test_what_else_ends_the_compiler_is_an_error(usage, error, message):
    with pytest.raises((RuntimeError, ValueError), match=message):
        jax_step.check_is_too_large(usage, V5E.memory_bytes, error=RuntimeError(error))


def test_a_program_that_was_not_written_is_an_error():
    with pytest.raises(ValueError, match="did not write the program"):
        jax_step.check_is_too_large("", V5E.memory_bytes, error=None)


def test_too_little_memory_of_the_chip_is_no_error():
    exhausted = RuntimeError("RESOURCE_EXHAUSTED: hbm")
    usage = usage_of(20_000_000_000)
    jax_step.check_is_too_large(usage, V5E.memory_bytes, error=exhausted)
    assert jax_step.needed_bytes(usage) == 20_000_000_000


def test_flags_of_the_user_reach_the_compiler(monkeypatch):
    monkeypatch.setattr(tpu_compilation, "check_packages", lambda: None)
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1 --xla_dump_to=mine")
    seen = {}

    def run(command, *, env, **options):
        seen.update(env)
        return subprocess.CompletedProcess(command, 1, stdout="stopped")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ValueError, match="The TPU compiler failed: stopped"):
        tpu_compilation.compile_step(settings())
    flags = seen["XLA_FLAGS"].split()
    assert flags[:2] == ["--xla_a=1", "--xla_dump_to=mine"]
    # XLA takes the last one.
    assert flags[2].startswith("--xla_dump_to=/")


def test_the_report_says_whether_a_step_fits_and_its_shortest_time():
    compiled = tpu_compilation.CompiledStep(
        fits=True,
        memory_bytes=3.2e9,
        flops=4.5e12,
        bytes_accessed=66e9,
        traffic_bytes=20e9,
    )
    text = tpu_compilation.report(settings(), compiled, num_steps=1_000_000)
    assert "3.2 GB of 16 GB: fits" in text
    # 20 GB at 819 GB/s take longer than 4.5 TFLOP at 197 TFLOP/s.
    assert "at least 24.4 ms (FLOPs 22.8 ms, memory traffic 24.4 ms)" in text
    assert "at most 1,310 per second" in text
    assert "at least 6 h 47 min" in text


@pytest.mark.parametrize(
    "recompute_layers, advice",
    [
        (False, "a smaller --train_batch_size or --recompute_layers"),
        (True, "a smaller --train_batch_size"),
    ],
)
def test_the_report_says_what_to_do_if_a_step_does_not_fit(recompute_layers, advice):
    compiled = tpu_compilation.CompiledStep(fits=False, memory_bytes=21e9)
    given = settings(recompute_layers=recompute_layers)
    text = tpu_compilation.report(given, compiled, num_steps=None)
    assert text.endswith(f"21.0 GB of 16 GB: does not fit; use {advice}")


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs jax and libtpu.*\[tpu-compile\]"):
        tpu_compilation.check_packages()


def test_a_batch_that_the_chips_cannot_share_is_refused(monkeypatch):
    monkeypatch.setattr(tpu_compilation, "check_packages", lambda: None)
    with pytest.raises(ValueError, match=r"train_batch_size=30 .* 4 chips of v5e-4"):
        tpu_compilation.compile_step(settings(batch_size=30))


def test_settings_are_json():
    json.dumps(dataclasses.asdict(settings()))


@pytest.mark.parametrize(
    "flags, message",
    [
        ({"do_train": True}, "only works with --dry_run"),
        ({"dry_run": True, "dtype": "mixed_float16"}, "TPUs compute in bfloat16"),
        (
            {"dry_run": True, "gradient_accumulation_steps": 2},
            "size of one micro-batch",
        ),
    ],
)
def test_what_cannot_be_compiled_is_refused(flags, message):
    with pytest.raises(options_module.OptionError, match=message):
        pretraining_options.RunPretrainingOptions(
            output_dir="run", input_file="x", device="tpu:v5e-4", **flags
        )


@pytest.mark.parametrize(
    "changes, schema, found",
    [
        ({"attention": "causal"}, {}, "a left-to-right model"),
        ({}, {"sequence_ids": None}, "packed rows"),
    ],
)
def test_models_and_rows_of_another_kind_are_refused(changes, schema, found):
    config = dataclasses.replace(settings().config, **changes)
    options = pretraining_options.RunPretrainingOptions(
        output_dir="run", input_file="x", device="tpu:v5e-4", dry_run=True
    )
    with pytest.raises(ValueError, match=found):
        tpu_compilation.settings_of(config, options, schema=schema)


def test_a_gather_of_the_sparse_core_becomes_one_instruction():
    # As libtpu 0.0.52 writes it for a v6e: the operands follow in the update.
    program = """ENTRY %main {
  %table = f32[9,4]{1,0} parameter(0)
  %ids = s32[2]{0} parameter(1)
  %start = ((), (), (s32[5]{0:S(10)})) async-start(), calls=%gather
  %start.update = ((f32[9,4]), f32[2,4], (s32[5])) async-update(%start, %table, %ids)
  ROOT %done = f32[2,4]{1,0} async-done(%start.update), metadata={op_name="gather"}
}
"""
    assert (
        jax_step.parsable(program)
        == """ENTRY %main {
  %table = f32[9,4]{1,0} parameter(0)
  %ids = s32[2]{0} parameter(1)
  ROOT %done = f32[2,4]{1,0} custom-call(%table, %ids), custom_call_target="offloaded"
}
"""
    )
    usual = "  %a = s8[4] async-done(%slice-start.1), metadata={}\n"
    assert jax_step.parsable(usual) == usual
