"""Progress callbacks: the library reports how far it is and prints nothing itself."""

import types
from collections.abc import Mapping
from typing import Protocol

NO_VALUES: Mapping[str, float] = types.MappingProxyType({})


class Progress(Protocol):
    """A callback that the library calls while it works. A tool draws a bar from it."""

    def __call__(
        self,
        stage: str,
        done: float,
        total: float | None,
        *,
        unit: str = "",
        values: Mapping[str, float] = NO_VALUES,
    ) -> None:
        """Reports how much of a stage is done.

        Args:
            stage: name of the stage, such as "train".
            done: amount done so far, in `unit`. It never decreases within a stage.
            total: amount of the whole stage, or None if it is unknown.
            unit: what is counted, in the plural: "steps", "examples", "MB". Empty for
                parts of different sizes, for which a rate is meaningless.
            values: latest numbers to show, such as the loss.
        """


def silent(
    stage: str,
    done: float,
    total: float | None,
    *,
    unit: str = "",
    values: Mapping[str, float] = NO_VALUES,
) -> None:
    """A `Progress` that does nothing."""
