"""Hides the lines that TensorFlow writes to standard error while it is imported.

TF_CPP_MIN_LOG_LEVEL says which of its messages TensorFlow shows, but its libraries log
a few lines (oneDNN, CUDA) before they read it. `hidden` applies the level to these
lines, too.

While TensorFlow is imported, file descriptor 2 is a pipe to a small process that passes
everything else on at once: warnings of Python, of other threads and of other libraries.
If the import fails, the process writes the hidden lines as well. It is a separate
process because TensorFlow aborts on a processor that it was not built for, and these
lines contain the reason.
"""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from typing import BinaryIO

LEVEL_VARIABLE = "TF_CPP_MIN_LOG_LEVEL"
# Written to the pipe after an import that did not fail.
_IMPORTED = b"\0"
# "I0000 00:00:1795362536.705823   26460 port.cc:153] oneDNN custom operations are on."
# "2026-11-22 15:50:14.001201: I tensorflow/core/util/port.cc:153] oneDNN custom ..."
_LOG_LINE = re.compile(rb"(?:([IWEF])\d{4} |\d{4}-\d\d-\d\d [\d:.]+: ([IWEF]) )")
_SEVERITIES = b"IWEF"  # TF_CPP_MIN_LOG_LEVEL=1 hides the first of them, and so on.
_ABOUT_LOGGING = b"WARNING: All log messages before absl::InitializeLog()"
_SECONDS_TO_END = 5


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Connects descriptor 2 to a filter while the block imports TensorFlow."""
    if sys.__stderr__ is None:  # Descriptor 2 was closed; it may be another file now.
        yield
        return
    try:
        shown = os.dup(2)
    except OSError:
        yield
        return
    # -I and -S start Python faster.
    command = [sys.executable, "-I", "-S", __file__, os.environ.get(LEVEL_VARIABLE, "")]
    try:
        relay = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    except OSError:
        os.close(shown)
        yield
        return
    assert relay.stdin is not None  # Because stdin is a pipe.
    os.dup2(relay.stdin.fileno(), 2)
    has_failed = False
    try:
        yield
    except Exception:  # Not Ctrl-C, which says nothing about TensorFlow.
        has_failed = True
        raise
    finally:
        if not has_failed:
            with contextlib.suppress(OSError):  # The filter was killed.
                os.write(2, _IMPORTED)
        os.dup2(shown, 2)
        os.close(shown)
        relay.stdin.close()
        # A process that was started meanwhile may keep the pipe open. Then the filter
        # lives as long as that process.
        with contextlib.suppress(subprocess.TimeoutExpired):
            relay.wait(_SECONDS_TO_END)


def filter_lines(lines: Iterable[bytes], level: int, shown: BinaryIO) -> None:
    """Passes lines on, without the log lines below a level.

    If `_IMPORTED` is not among the lines, those below the level follow at the end.

    Args:
        lines: what is written while TensorFlow is imported.
        level: of TF_CPP_MIN_LOG_LEVEL.
        shown: receives the lines.
    """
    held_back: list[bytes] = []
    for line in lines:
        if line.endswith(_IMPORTED):
            held_back.clear()
            line = line.removesuffix(_IMPORTED)
        if _is_below(line, level):
            held_back.append(line)
        else:
            shown.write(line)
            shown.flush()
    shown.writelines(held_back)
    shown.flush()


def _is_below(line: bytes, level: int) -> bool:
    if line.startswith(_ABOUT_LOGGING):
        return level > 0
    found = _LOG_LINE.match(line)
    if found is None:
        return False
    return _SEVERITIES.index(found[1] or found[2]) < level


if __name__ == "__main__":
    given = sys.argv[1]
    filter_lines(
        sys.stdin.buffer, int(given) if given.isdecimal() else 0, sys.stderr.buffer
    )
