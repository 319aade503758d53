"""Facts about a finished training run, for its model card."""

import dataclasses
import datetime
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """What a training run was like; `loop.Trainer.facts()` returns it."""

    num_parameters: int
    num_trained_parameters: int  # Fewer where layers are frozen.
    num_steps: int  # Optimizer steps, those before a resumption included.
    examples_per_second: float | None  # None where this process took no step.
    devices: str  # See `hardware.description`.
    versions: Mapping[str, str | None]  # Package -> version.
    date: str  # Day of the last step, such as "2024-05-31".


def today() -> str:
    """Returns the day, such as "2024-05-31"."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()
