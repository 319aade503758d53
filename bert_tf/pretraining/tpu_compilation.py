"""Answers, without a TPU, whether a pretraining step fits and how long it may take.

libtpu compiles the step for the real chips on any Linux machine. `jax_step` does so in
a process of its own, on Keras's JAX backend. The model, its formulas and the optimizer
are the ones that TensorFlow trains, and both backends use the same compiler (XLA), but
the programs that they hand to it are not identical.
"""

import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from bert_tf.modeling import config as config_module
from bert_tf.pretraining import objectives
from bert_tf.training import estimates
from bert_tf.training import tpu_slices

_PROGRAM = (
    "import sys; from bert_tf.pretraining import jax_step; "
    "jax_step.write_report(*sys.argv[1:])"
)
_PACKAGES = ("jax", "libtpu")
_GIGA = 1e9


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepSettings:
    """What determines the compiled program of a step."""

    config: config_module.BertConfig
    slice_name: str  # A key of `tpu_slices.SLICES`.
    batch_size: int  # Sequences of a step, over all chips.
    max_seq_length: int
    max_predictions_per_seq: int
    dtype: str = "mixed_bfloat16"
    recompute_layers: bool = False
    next_sentence: bool = True
    optimizer: str = "adamw"
    vocabulary_multiple: int = 1

    @property
    def slice(self) -> tpu_slices.Slice:
        """The TPU."""
        return tpu_slices.SLICES[self.slice_name]

    @property
    def model_flops(self) -> float:
        """FLOPs per chip of the model's matrix products, none of them computed twice.

        Estimates of a chip's utilization ("MFU") are based on this number.
        """
        forward = estimates.forward_flops(
            self.config,
            self.max_seq_length,
            num_predictions=self.max_predictions_per_seq,
            reads_all_positions=False,
        )
        passes = 1 + estimates.BACKWARD_COST
        return passes * forward * self.batch_size / self.slice.num_chips


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompiledStep:
    """What the compiler reports about one step on one chip."""

    fits: bool
    memory_bytes: float  # Weights, slots and activations, without machine code.
    # The fields below are 0 if the step does not fit.
    flops: float = 0.0
    bytes_accessed: float = 0.0  # XLA's count; see `memory_traffic`.
    traffic_bytes: float = 0.0  # From and to the chip's memory.
    compile_seconds: float = 0.0

    def seconds(self, chip: tpu_slices.Chip) -> float:
        """Returns the time of a step that the chip's published figures allow."""
        return max(
            self.flops / chip.flops_per_second,
            self.traffic_bytes / chip.bytes_per_second,
        )


def compile_step(settings: StepSettings) -> CompiledStep:
    """Compiles a step. Takes a minute of processor time or more for a large model.

    Raises:
        ValueError: JAX or libtpu is missing, the batch cannot be divided among the
            chips, or the compiler fails.
    """
    check_packages()
    num_chips = settings.slice.num_chips
    if settings.batch_size % num_chips:
        raise ValueError(
            f"--train_batch_size={settings.batch_size} is not divisible by the "
            f"{num_chips} chips of {settings.slice_name}; choose a multiple."
        )
    values = dataclasses.asdict(settings) | {
        "topology": settings.slice.topology,
        "chip_memory_bytes": settings.slice.chip.memory_bytes,
    }
    with tempfile.TemporaryDirectory() as folder:
        given, report = pathlib.Path(folder, "given"), pathlib.Path(folder, "report")
        given.write_text(json.dumps(values | {"xla_folder": folder}), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(given), str(report)],
            env=_environment(settings.slice, folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stdout.strip().splitlines() or ["no output"])[-1]
            raise ValueError(f"The TPU compiler failed: {reason[:500]}")
        return CompiledStep(**json.loads(report.read_text(encoding="utf-8")))


def report(
    settings: StepSettings, compiled: CompiledStep, *, num_steps: int | None
) -> str:
    """Returns what a user wants to know about a compiled step, as text.

    Args:
        settings: what was compiled.
        compiled: the result.
        num_steps: steps of the run, or None.
    """
    chip = settings.slice.chip
    memory = (
        f"{compiled.memory_bytes / _GIGA:.1f} GB of {chip.memory_bytes / _GIGA:.0f} GB"
    )
    lines = [
        f"TPU               {settings.slice_name}, {settings.slice.num_chips} chips "
        "(compiled for it, not run on it)"
    ]
    if not compiled.fits:
        advice = "a smaller --train_batch_size"
        if not settings.recompute_layers:
            advice += " or --recompute_layers"
        return "\n".join(
            [*lines, f"memory per chip   {memory}: does not fit; use {advice}"]
        )
    seconds = compiled.seconds(chip)
    by_flops = compiled.flops / chip.flops_per_second
    by_traffic = compiled.traffic_bytes / chip.bytes_per_second
    lines += [
        f"memory per chip   {memory}: fits",
        f"FLOPs per chip    {compiled.flops:.3g} per step (the model's matrix "
        f"products: {settings.model_flops:.3g})",
        f"memory traffic    {compiled.traffic_bytes / _GIGA:.1f} GB per chip and step",
        f"time per step     at least {1000 * seconds:.1f} ms (FLOPs "
        f"{1000 * by_flops:.1f} ms, memory traffic {1000 * by_traffic:.1f} ms)",
        f"examples          at most {settings.batch_size / seconds:,.0f} per second",
    ]
    if num_steps is not None:
        total = estimates.format_seconds(num_steps * seconds)
        lines.append(f"time              at least {total}")
    return "\n".join(lines)


def check_packages() -> None:
    """Raises ValueError if JAX or libtpu is not installed."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(
            f"Compiling for a TPU needs {' and '.join(missing)}, which this "
            "environment lacks; run pip install 'bert_tf[tpu-compile]'."
        )


def _environment(tpu, folder):
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        **os.environ,
        # If a flag is given twice, XLA uses the last one.
        "XLA_FLAGS": f"{flags} --xla_dump_to={folder} --xla_dump_hlo_as_text",
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        # Away from Google Cloud, libtpu would wait for the metadata server.
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": tpu.accelerator_type,
        "TPU_WORKER_HOSTNAMES": "localhost",
        # By default, libtpu refuses to load while another process has loaded it,
        # because that process may use a chip.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }


def settings_of(
    config: config_module.BertConfig, options: Any, *, schema: Mapping[str, Any]
) -> StepSettings:
    """Returns the settings of the step of a run.

    Args:
        config: of the model.
        options: `RunPretrainingOptions` with one of `tpu_slices.DEVICES`.
        schema: the columns of the records.

    Raises:
        ValueError: the step has a part that cannot be compiled here.
    """
    if config.is_causal or "sequence_ids" in schema:
        found = "a left-to-right model" if config.is_causal else "packed rows"
        raise ValueError(
            f"--device={options.device} compiles masked-word models of one sequence "
            f"per row, but this run has {found}; use --dry_run without --device."
        )
    multiple = objectives.VOCABULARY_MULTIPLE if options.pad_vocabulary else 1
    return StepSettings(
        config=config,
        slice_name=options.device.removeprefix(tpu_slices.PREFIX),
        batch_size=options.train_batch_size,
        max_seq_length=options.max_seq_length,
        max_predictions_per_seq=options.max_predictions_per_seq,
        dtype=options.dtype,
        recompute_layers=options.recompute_layers,
        next_sentence="next_sentence_labels" in schema,
        optimizer=options.optimizer,
        vocabulary_multiple=multiple,
    )
