"""Runs tools as a user does, each in its own process."""

import shlex
import subprocess
import sys
from collections.abc import Callable

_CONTINUED = " \\\n    "


class Shell:
    """Shows each command, runs it, and shows its output.

    Args:
        show: called with each piece of text to show.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def run(self, tool: str, *, stdin: str | None = None, **flags: object) -> str:
        """Runs a tool and returns its output. Progress bars go to standard error.

        Args:
            tool: name of the tool.
            stdin: file for its standard input.
            **flags: its flags by name; None means not given.

        Raises:
            ValueError: the tool failed. It has printed the reason to standard error.
        """
        flags = {name: value for name, value in flags.items() if value is not None}
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        redirected = [f"< {shlex.quote(stdin)}"] if stdin else []
        quoted = [shlex.quote(argument) for argument in arguments]
        self._show("\n$ " + _CONTINUED.join([tool, *quoted, *redirected]))
        printed = _output(
            [sys.executable, "-m", f"bert_tf.tools.{tool}", *arguments], stdin
        )
        self._show(printed.rstrip())
        return printed


def _output(command: list[str], stdin: str | None) -> str:
    with open(stdin or "/dev/null", encoding="utf-8") as file:
        done = subprocess.run(
            command, stdin=file, stdout=subprocess.PIPE, text=True, check=False
        )
    if done.returncode != 0:
        raise ValueError(f"The command ended with exit code {done.returncode}.")
    return done.stdout
