"""TPU slices that a training step can be compiled for without having one."""

import dataclasses
import types
from collections.abc import Mapping

# `--device=tpu:NAME` names a slice for --dry_run.
PREFIX = "tpu:"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chip:
    """The published figures of one chip."""

    flops_per_second: float  # Matrix products in bfloat16.
    bytes_per_second: float  # Of its memory.
    memory_bytes: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Slice:
    """Chips that are connected to each other."""

    num_chips: int
    chip: Chip
    topology: str  # libtpu's name of the arrangement.
    accelerator_type: str  # Google Cloud's name of the slice.


# https://cloud.google.com/tpu/docs/v5e and /v6e. TPUs also multiply float32 matrices at
# this rate by default: they round the inputs to bfloat16.
V5E = Chip(flops_per_second=197e12, bytes_per_second=819e9, memory_bytes=16e9)
V6E = Chip(flops_per_second=918e12, bytes_per_second=1640e9, memory_bytes=32e9)

SLICES: Mapping[str, Slice] = types.MappingProxyType(
    {
        "v5e-4": Slice(
            num_chips=4,
            chip=V5E,
            topology="v5e:2x2",
            accelerator_type="v5litepod-4",
        ),
        "v5e-16": Slice(
            num_chips=16,
            chip=V5E,
            topology="v5e:4x4",
            accelerator_type="v5litepod-16",
        ),
        "v6e-4": Slice(
            num_chips=4, chip=V6E, topology="v6e:2x2", accelerator_type="v6e-4"
        ),
    }
)
DEVICES = tuple(f"{PREFIX}{name}" for name in SLICES)
