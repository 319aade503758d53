"""What checks of data found, one record a finding, and the report made of them."""

import dataclasses
import re
from collections.abc import Iterable

PASSED, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
# Of one check, so that a thousand wrong rows do not hide another finding.
MAX_SHOWN = 10
_PLACE = re.compile(r"(?s)(?P<file>.+?):(?P<line>\d+): (?P<message>.+)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a check found."""

    severity: str  # PASSED, NOTE, WARNING or ERROR.
    check: str  # Name of the check, such as "labels"; findings of one come together.
    message: str  # One sentence.
    file: str | None = None  # Where it is, if it is in one place.
    line: int | None = None  # From 1.

    def __str__(self):
        place = "" if self.file is None else f"{self.file}: "
        if self.line is not None:
            place = f"{self.file}:{self.line}: "
        return f"{self.severity:8}{self.check}: {place}{self.message}"


class Findings:
    """Collects findings in the order in which checks make them.

    Attributes:
        all: list of `Finding`.
    """

    def __init__(self):
        self.all = []

    def passed(self, check: str, message: str) -> None:
        """Adds a check that found nothing wrong, and what it saw."""
        self.all.append(Finding(severity=PASSED, check=check, message=message))

    def note(self, check: str, message: str) -> None:
        """Adds something to know that is neither right nor wrong."""
        self.all.append(Finding(severity=NOTE, check=check, message=message))

    def warning(self, check: str, message: str, place: str | None = None) -> None:
        """Adds what may be meant so, and often is not.

        Args:
            check: name of the check.
            message: one sentence.
            place: "file:line", or None.
        """
        self.all.append(_placed(WARNING, check, message, place))

    def error(self, check: str, message: str, place: str | None = None) -> None:
        """Adds what has to be put right; arguments as those of `warning`."""
        self.all.append(_placed(ERROR, check, message, place))

    def failure(self, check: str, error: Exception | str) -> None:
        """Adds what a reader raised; "file:line: " at its start becomes the place."""
        found = _PLACE.fullmatch(str(error))
        if found is None:
            self.error(check, str(error))
            return
        self.error(check, found["message"], f"{found['file']}:{found['line']}")

    def broken_rows(self, check: str, faults: list[str]) -> None:
        """Adds what is wrong with each row that a reader left out; empties the list."""
        for fault in faults:
            self.failure(check, fault)
        faults.clear()

    def judge(self, check: str, message: str, *, is_good: bool) -> None:
        """Adds a check that passed, or a warning of the same words."""
        self.passed(check, message) if is_good else self.warning(check, message)

    def count(self, severity: str) -> int:
        """Returns how many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.all)

    @property
    def has_errors(self) -> bool:
        """Whether something has to be put right."""
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
        """Returns a line a finding, at most `MAX_SHOWN` of a check, and the summary."""
        by_check = {}
        for finding in self.all:
            key = (finding.check, finding.severity)
            by_check.setdefault(key, []).append(finding)
        lines = []
        for (check, severity), found in by_check.items():
            lines += map(str, found[:MAX_SHOWN])
            if len(found) > MAX_SHOWN:
                lines.append(f"{severity:8}{check}: and {len(found) - MAX_SHOWN} more")
        return "\n".join([*lines, self.summary])


def places(found: Iterable[str], *, most: int = 3) -> str:
    """Returns the first places for a message: "a.tsv:3, a.tsv:9 and 7 more"."""
    found = list(found)
    rest = f" and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + rest


def _placed(severity, check, message, place):
    if place is None:
        return Finding(severity=severity, check=check, message=message)
    file, _, line = place.rpartition(":")
    if not (file and line.isdecimal()):
        return Finding(severity=severity, check=check, message=message, file=place)
    return Finding(
        severity=severity, check=check, message=message, file=file, line=int(line)
    )


def _number(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
