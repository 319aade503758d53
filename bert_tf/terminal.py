"""What a tool shows while it works: progress bars and log lines on one stream."""

import contextlib
import logging
import time

from bert_tf import progress as progress_module

SECONDS_BETWEEN_LINES = 10.0
_LINE_FORMAT = (
    "{desc}: {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
)


@contextlib.contextmanager
def progress_and_logging(stream):
    """Yields a `TerminalProgress`, and shows the package's log lines above its bars.

    Args:
        stream: text stream, as a rule standard error.
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
    """A `progress.Progress` that draws bars, or prints lines where nobody looks.

    Args:
        stream: text stream; bars are drawn when it is a terminal, and else a line is
            written each ten seconds and at the end of a stage.
        clock: returns seconds; a test passes its own.
    """

    def __init__(self, stream, *, clock=time.monotonic):
        self._stream = stream
        self._clock = clock
        self._is_terminal = stream.isatty()
        self._bars = {}
        self._last_line = {}

    def __call__(
        self, stage, done, total, *, unit="", values=progress_module.NO_VALUES
    ):
        """Shows how much of a stage is done."""
        if stage not in self._bars:
            self._bars[stage] = self._new_bar(stage, done, total, unit)
            self._last_line[stage] = self._clock()
        bar = self._bars[stage]
        bar.total = _rounded(total)
        bar.set_postfix({k: f"{v:.4g}" for k, v in values.items()}, refresh=False)
        bar.update(_rounded(done) - bar.n)
        is_done = total is not None and done >= total
        is_due = self._clock() - self._last_line[stage] >= SECONDS_BETWEEN_LINES
        if not self._is_terminal and (is_done or is_due):
            self._last_line[stage] = self._clock()
            self.print_line(bar.format_meter(**{**bar.format_dict, "ncols": None}))
        if is_done:
            bar.refresh()
            bar.close()
            del self._bars[stage]

    def close(self):
        """Closes the bars of stages that did not come to their end."""
        for bar in self._bars.values():
            bar.close()

    def print_line(self, line):
        """Prints a line above the bars."""
        _tqdm().write(line, file=self._stream)
        self._stream.flush()

    def _new_bar(self, stage, done, total, unit):
        return _tqdm()(
            desc=stage,
            total=_rounded(total),
            # A resumed stage's speed is that of the steps done now.
            initial=0 if total is not None and done >= total else _rounded(done),
            unit=f" {unit}",
            file=self._stream if self._is_terminal else _Nowhere(),
            bar_format=None if self._is_terminal else _LINE_FORMAT,
            dynamic_ncols=True,
        )


def _tqdm():
    """Returns the class of bars; loading it takes time, and not all draw one."""
    import tqdm

    return tqdm.tqdm


class _Nowhere:
    """Takes what tqdm draws where no bar is wanted."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


class _LogHandler(logging.Handler):
    """Prints log records as lines above the bars."""

    def __init__(self, bars):
        super().__init__()
        self._bars = bars

    def emit(self, record):
        level = "" if record.levelno == logging.INFO else f"{record.levelname}: "
        self._bars.print_line(level + self.format(record))


def _rounded(amount):
    # Whole numbers of steps, a tenth of a megabyte.
    if amount is None or amount == int(amount):
        return None if amount is None else int(amount)
    return round(amount, 1)
