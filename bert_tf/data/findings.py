"""The findings of data checks, and the report about them."""

import dataclasses
from collections.abc import Iterable

from bert_tf import options as options_module

PASSED, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
# Per check, so that a thousand wrong rows do not hide the findings of other checks.
MAX_SHOWN = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a check found."""

    severity: str  # PASSED, NOTE, WARNING or ERROR.
    check: str  # Name of the check, such as "labels"; the report groups by it.
    message: str  # One sentence.
    place: str | None = None  # Such as "file:line", if the problem is in one place.

    def __str__(self) -> str:
        place = "" if self.place is None else f"{self.place}: "
        return f"{self.severity:8}{self.check}: {place}{self.message}"


class Findings:
    """Collects the findings of checks in order.

    Attributes:
        all: the findings.
    """

    def __init__(self) -> None:
        self.all: list[Finding] = []

    def passed(self, check: str, message: str) -> None:
        """Adds a check that found no problem, with what it saw."""
        self._add(PASSED, check, message)

    def note(self, check: str, message: str) -> None:
        """Adds information that is neither right nor wrong."""
        self._add(NOTE, check, message)

    def warning(self, check: str, message: str, place: str | None = None) -> None:
        """Adds something that may be intended but often is a mistake.

        Args:
            check: name of the check.
            message: one sentence.
            place: "file:line", or None.
        """
        self._add(WARNING, check, message, place)

    def error(self, check: str, message: str, place: str | None = None) -> None:
        """Adds a problem that must be fixed; the arguments are those of `warning`."""
        self._add(ERROR, check, message, place)

    def failure(self, check: str, error: Exception | str) -> None:
        """Adds a reader's error, which names its place itself."""
        self.error(check, str(error))

    def broken_rows(self, check: str, faults: list[str]) -> None:
        """Adds the error of each row that a reader skipped, and empties the list."""
        for fault in faults:
            self.failure(check, fault)
        faults.clear()

    def judge(self, check: str, message: str, *, is_good: bool) -> None:
        """Adds a passed check or a warning, with the same message."""
        self.passed(check, message) if is_good else self.warning(check, message)

    def _add(self, severity, check, message, place=None):
        self.all.append(
            Finding(severity=severity, check=check, message=message, place=place)
        )

    def count(self, severity: str) -> int:
        """Returns the number of findings of a severity."""
        return sum(finding.severity == severity for finding in self.all)

    @property
    def has_errors(self) -> bool:
        """Whether a problem must be fixed."""
        return self.count(ERROR) > 0

    @property
    def summary(self) -> str:
        """The last line: "N checks passed, M warnings, K errors"."""
        return (
            f"{_number(self.count(PASSED), 'check')} passed, "
            f"{_number(self.count(WARNING), 'warning')}, "
            f"{_number(self.count(ERROR), 'error')}"
        )

    def report(self) -> str:
        """Returns one line per finding, `MAX_SHOWN` per check, and the summary.

        It is a `FailureReport` if there are errors.
        """
        by_check: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.all:
            key = (finding.check, finding.severity)
            by_check.setdefault(key, []).append(finding)
        lines: list[str] = []
        for (check, severity), found in by_check.items():
            lines += map(str, found[:MAX_SHOWN])
            if len(found) > MAX_SHOWN:
                lines.append(f"{severity:8}{check}: and {len(found) - MAX_SHOWN} more")
        text = "\n".join([*lines, self.summary])
        return options_module.FailureReport(text) if self.has_errors else text


def places(found: Iterable[str], *, most: int = 3) -> str:
    """Returns the first places for a message: "a.tsv:3, a.tsv:9 and 7 more"."""
    found = list(found)
    rest = f" and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + rest


def _number(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
