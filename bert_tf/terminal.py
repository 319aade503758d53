"""Progress bars and log lines of a running tool, on one stream."""

import contextlib
import logging
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import TextIO

from bert_tf import progress as progress_module

SECONDS_BETWEEN_LINES = 10.0
# A rate over less time is meaningless.
_SECONDS_FOR_RATE = 1.0
_COUNT = "{n_fmt}/{total_fmt}{unit} "
_BAR = "{l_bar}{bar}| "  # On a terminal.
_LINE = "{desc}: "  # Elsewhere.
_IN_PROGRESS = _COUNT + "[{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
_DONE = _COUNT + "[{elapsed}, {rate_noinv_fmt}{postfix}]"
_WITHOUT_RATE = _COUNT + "[{elapsed}{postfix}]"


@contextlib.contextmanager
def progress_and_logging(stream: TextIO) -> Iterator["TerminalProgress"]:
    """Yields a `TerminalProgress` and shows the package's log lines above its bars.

    Args:
        stream: usually standard error.
    """
    bars = TerminalProgress(stream)
    logger = logging.getLogger("bert_tf")
    level = logger.level
    handler = _LogHandler(bars)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield bars
    finally:
        bars.close()
        logger.removeHandler(handler)
        logger.setLevel(level)


class TerminalProgress:
    """A `progress.Progress` that draws bars on a terminal and prints lines elsewhere.

    A stage within another one, such as an evaluation during training, leaves nothing
    behind when it ends.

    Args:
        stream: if it is not a terminal, a line is written every ten seconds and at the
            end of a stage.
        clock: returns seconds.
    """

    def __init__(
        self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._is_terminal = stream.isatty()
        self._start = _BAR if self._is_terminal else _LINE
        self._bars: dict[str, Any] = {}
        self._started: dict[str, float] = {}
        self._last_line: dict[str, float] = {}

    def __call__(
        self,
        stage: str,
        done: float,
        total: float | None,
        *,
        unit: str = "",
        values: Mapping[str, float] = progress_module.NO_VALUES,
    ) -> None:
        """Shows how much of a stage is done."""
        if stage not in self._bars:
            self._bars[stage] = self._new_bar(stage, done, total, unit)
            self._started[stage] = self._last_line[stage] = self._clock()
        bar = self._bars[stage]
        bar.total = _rounded(total)
        bar.set_postfix({k: f"{v:.4g}" for k, v in values.items()}, refresh=False)
        bar.update((_rounded(done) or 0) - bar.n)
        is_done = total is not None and done >= total
        if is_done:
            is_short = self._clock() - self._started[stage] < _SECONDS_FOR_RATE
            has_rate = unit and not is_short
            bar.bar_format = self._start + (_DONE if has_rate else _WITHOUT_RATE)
        is_due = self._clock() - self._last_line[stage] >= SECONDS_BETWEEN_LINES
        if not self._is_terminal and (is_due or (is_done and bar.leave)):
            self._last_line[stage] = self._clock()
            line = bar.format_meter(**{**bar.format_dict, "ncols": None})
            # tqdm pads the rate.
            self.print_line(line.replace(",  ", ", "))
        if is_done:
            bar.refresh()
            bar.close()
            del self._bars[stage]

    def close(self) -> None:
        """Closes the bars of unfinished stages."""
        for bar in self._bars.values():
            bar.close()

    def print_line(self, line: str) -> None:
        """Prints a line above the bars."""
        _tqdm().write(line, file=self._stream)
        self._stream.flush()

    def _new_bar(self, stage: str, done: float, total: float | None, unit: str) -> Any:
        return _tqdm()(
            desc=stage,
            total=_rounded(total),
            # The speed of a resumed stage counts only the steps of this process.
            initial=0 if total is not None and done >= total else _rounded(done),
            unit=f" {unit}" if unit else "",
            file=self._stream if self._is_terminal else _NullStream(),
            bar_format=self._start + (_IN_PROGRESS if unit else _WITHOUT_RATE),
            leave=not self._bars,
            smoothing=0,  # The rate is the mean, so it agrees with the other numbers.
            dynamic_ncols=True,
        )


def _tqdm() -> Any:
    """Returns the class of bars. It is loaded late because that takes time."""
    import tqdm

    return tqdm.tqdm


class _NullStream:
    """A stream for bars that are not shown."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


class _LogHandler(logging.Handler):
    """Prints log records as lines above the bars."""

    def __init__(self, bars: TerminalProgress) -> None:
        super().__init__()
        self._bars = bars

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno == logging.INFO else f"{record.levelname}: "
        self._bars.print_line(level + self.format(record))


def _rounded(amount: float | None) -> float | None:
    """Returns whole amounts as int, fractional ones, such as MB, with one decimal."""
    if amount is None or amount == int(amount):
        return None if amount is None else int(amount)
    return round(amount, 1)
