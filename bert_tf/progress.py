"""Progress callbacks: the library reports how far it is and prints nothing itself."""

import types
from collections.abc import Mapping
from typing import Any
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


class ProgressBar:
    """A `Progress` that draws bars with tqdm, in a notebook as well as in a terminal.

    The library shows nothing unless it is given such a callback.

    Example:
        model.predict(texts, progress=bert_tf.ProgressBar())
    """

    def __init__(self) -> None:
        self._bars: dict[str, Any] = {}

    def __call__(
        self,
        stage: str,
        done: float,
        total: float | None,
        *,
        unit: str = "",
        values: Mapping[str, float] = NO_VALUES,
    ) -> None:
        """Shows how much of a stage is done."""
        import tqdm.auto  # Loaded late because that takes time.

        if stage not in self._bars:
            self._bars[stage] = tqdm.auto.tqdm(
                desc=stage, total=total, unit=f" {unit}".rstrip()
            )
        bar = self._bars[stage]
        bar.total = total
        bar.set_postfix({k: f"{v:.4g}" for k, v in values.items()}, refresh=False)
        bar.update(done - bar.n)
        if total is not None and done >= total:
            self._bars.pop(stage).close()
