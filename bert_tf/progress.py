"""Progress of long work: the library reports it, and a tool or a notebook shows it.

Long-running functions call `report`. To show the progress, set a reporter:

    with progress.reporting_to(progress.ProgressBar()):
        model.predict(texts)

Without a reporter, nothing is shown.
"""

import contextlib
import logging
import sys
import time
import types
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import TextIO

NO_VALUES: Mapping[str, float] = types.MappingProxyType({})
SECONDS_BETWEEN_LINES = 10.0
# A rate over less time is meaningless.
_SECONDS_FOR_RATE = 1.0
_COUNT = "{n_fmt}/{total_fmt}{unit} "
_IN_PROGRESS = _COUNT + "[{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
_DONE = _COUNT + "[{elapsed}, {rate_noinv_fmt}{postfix}]"
_WITHOUT_RATE = _COUNT + "[{elapsed}{postfix}]"


# A function with the arguments of `report`.
Progress = Callable[..., None]

# The innermost reporter is the last. Not a context variable, because other threads,
# such as those of a download, report too.
_reporters: list[Progress | None] = []


def report(
    stage: str,
    done: float,
    total: float | None,
    *,
    unit: str = "",
    values: Mapping[str, float] = NO_VALUES,
) -> None:
    """Reports how much of a stage is done to the current reporter, if any.

    Args:
        stage: name of the stage, such as "train".
        done: amount done so far, in `unit`. It never decreases within a stage.
        total: amount of the whole stage, or None if it is unknown.
        unit: what is counted, in the plural: "steps", "examples", "MB". Empty for
            parts of different sizes, for which a rate is meaningless.
        values: latest numbers to show, such as the loss.
    """
    if is_set() and (reporter := _reporters[-1]) is not None:
        reporter(stage, done, total, unit=unit, values=values)


def is_set() -> bool:
    """Returns whether a block has set a reporter, or that nothing is shown."""
    return bool(_reporters)


@contextlib.contextmanager
def reporting_to(reporter: Progress | None) -> Iterator[None]:
    """Passes the progress of the block to a reporter; None shows nothing."""
    _reporters.append(reporter)
    try:
        yield
    finally:
        _reporters.pop()


@contextlib.contextmanager
def shown_with_log(stream: TextIO) -> Iterator["ProgressBar"]:
    """Shows progress and the package's log lines on one stream within the block.

    Args:
        stream: usually standard error.
    """
    bars = ProgressBar(stream)
    logger = logging.getLogger("bert_tf")
    level = logger.level
    handler = _LogHandler(bars)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with reporting_to(bars):
            yield bars
    finally:
        bars.close()
        logger.removeHandler(handler)
        logger.setLevel(level)


class ProgressBar:
    """A reporter that draws bars with tqdm.

    A stage within another one, such as an evaluation during training, leaves nothing
    behind when it ends.

    Args:
        stream: None draws in the terminal or in the notebook. A stream that is not a
            terminal gets a line every ten seconds and at the end of a stage.
        clock: returns seconds.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._draws = stream is None or stream.isatty()
        self._start = "{l_bar}{bar}| " if self._draws else "{desc}: "
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
        values: Mapping[str, float] = NO_VALUES,
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
        if not self._draws and (is_due or (is_done and bar.leave)):
            self._last_line[stage] = self._clock()
            line = bar.format_meter(**{**bar.format_dict, "ncols": None})
            self.print_line(line.replace(",  ", ", "))  # tqdm pads the rate.
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
        stream = self._stream or sys.stderr
        self._tqdm().write(line, file=stream)
        stream.flush()

    def _new_bar(self, stage: str, done: float, total: float | None, unit: str) -> Any:
        return self._tqdm()(
            desc=stage,
            total=_rounded(total),
            # The speed of a resumed stage counts only the steps of this process.
            initial=0 if total is not None and done >= total else _rounded(done),
            unit=f" {unit}" if unit else "",
            file=self._stream if self._draws else _NullStream(),
            bar_format=self._start + (_IN_PROGRESS if unit else _WITHOUT_RATE),
            leave=not self._bars,
            smoothing=0,  # The rate is the mean, so it agrees with the other numbers.
            dynamic_ncols=True,
        )

    def _tqdm(self) -> Any:
        """Returns the class of bars; its import takes time."""
        import tqdm
        import tqdm.auto

        return tqdm.auto.tqdm if self._stream is None else tqdm.tqdm


class _NullStream:
    """A stream for bars that are not shown."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


class _LogHandler(logging.Handler):
    """Prints log records as lines above the bars."""

    def __init__(self, bars: ProgressBar) -> None:
        super().__init__()
        self._bars = bars

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno == logging.INFO else f"{record.levelname}: "
        self._bars.print_line(level + self.format(record))


def _rounded(amount: float | None) -> float | None:
    """Returns whole amounts as int, fractional ones, such as MB, with one decimal."""
    if amount is None:
        return None
    return int(amount) if amount == int(amount) else round(amount, 1)
