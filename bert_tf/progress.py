"""How the library tells its caller how far it is; it prints nothing itself."""

import types
from collections.abc import Mapping
from typing import Protocol

NO_VALUES = types.MappingProxyType({})


class Progress(Protocol):
    """What the library calls while it works; a tool draws a bar from it."""

    def __call__(
        self,
        stage: str,
        done: float,
        total: float | None,
        *,
        unit: str = "",
        values: Mapping[str, float] = NO_VALUES,
    ) -> None:
        """Tells how much of a stage is done.

        Args:
            stage: name of the stage, such as "train".
            done: amount done so far, in `unit`s; it never falls within a stage.
            total: amount of the whole stage, or None where it is not known.
            unit: plural word for what is counted: "steps", "examples", "MB".
            values: latest numbers worth seeing, such as the loss.
        """


def silent(stage, done, total, *, unit="", values=NO_VALUES):
    """A `Progress` that does nothing."""
