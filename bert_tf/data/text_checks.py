"""Checks of texts and labels that all tasks share, and what they find."""

import collections
import dataclasses
import logging
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)

PASSED, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
# Per check, so that a thousand wrong rows do not hide the findings of other checks.
MAX_SHOWN = 10
MAJORITY_SHARE = 0.9
TRUNCATED_SHARE = 0.05
UNKNOWN_SHARE = 0.01
_MIN_TEXTS_FOR_CASE = 20
TEXTS_PER_CALL = 2048
MAX_LABELS_SHOWN = 20
MAX_PLACES = 3


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
        for (check, severity), findings in by_check.items():
            lines += map(str, findings[:MAX_SHOWN])
            if len(findings) > MAX_SHOWN:
                lines.append(
                    f"{severity:8}{check}: and {len(findings) - MAX_SHOWN} more"
                )
        text = "\n".join([*lines, self.summary])
        return options_module.FailureReport(text) if self.has_errors else text


def places(found: Iterable[str]) -> str:
    """Returns the first places for a message: "a.tsv:3, a.tsv:9 and 7 more"."""
    all_places = list(found)
    rest = len(all_places) - MAX_PLACES
    return ", ".join(all_places[:MAX_PLACES]) + (
        f" and {rest:,} more" if rest > 0 else ""
    )


def _number(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Item:
    """One example, as far as these checks need it."""

    texts: tuple[str, ...]  # All texts that the model sees.
    label: str | None  # None if it is unknown, as in a test set.
    place: str  # "file:line", or another name.


def check_texts(findings: Findings, parts: Mapping[str, Sequence[Item]]) -> None:
    """Checks the number of texts, empty texts, duplicates, and overlap of parts.

    Args:
        findings: collects the findings.
        parts: the examples by part: "train", "dev" and "test", if they exist.
    """
    counts = ", ".join(f"{len(items):,} in {part}" for part, items in parts.items())
    findings.passed("examples", counts)
    _check_empty(findings, parts)
    for part, items in parts.items():
        _check_duplicates(findings, part, items)
        if part != "train" and "train" in parts:
            _check_overlap(findings, parts, part)


def check_labels(findings: Findings, parts: Mapping[str, Sequence[str]]) -> None:
    """Checks the balance of labels, and labels missing from a part.

    Args:
        findings: collects the findings.
        parts: the label of each example by part: "train" and "dev".
    """
    counts = {part: collections.Counter(labels) for part, labels in parts.items()}
    for part, part_counts in counts.items():
        total = sum(part_counts.values())
        (_, most), *_ = part_counts.most_common(1)
        findings.judge(
            "label balance",
            f"{part}: {balance(part_counts)}",
            is_good=most / total <= MAJORITY_SHARE or part != "train",
        )
    if {"train", "dev"} <= counts.keys():
        _check_seen(findings, counts)


def check_lengths(
    findings: Findings,
    part: str,
    lengths: npt.ArrayLike,
    *,
    room: int,
    limit: str,
) -> None:
    """Checks how many inputs are truncated.

    Args:
        findings: collects the findings.
        part: "train", "dev" or "test".
        lengths: number of pieces of each example before truncation, without [CLS] and
            [SEP].
        room: maximum number of pieces that are kept.
        limit: the flag that determines it, such as "--max_seq_length=128".
    """
    findings.judge(
        "length",
        f"{part}: {truncation(lengths, room=room, limit=limit)}",
        is_good=float(np.mean(np.asarray(lengths) > room)) <= TRUNCATED_SHARE,
    )


def balance(labels: Iterable[str] | Mapping[str, int]) -> str:
    """Returns the share and number of each label: "rain 75.0% (6), sun 25.0% (2)".

    Args:
        labels: the labels, or the number of each one.
    """
    counts = collections.Counter(labels)
    total = sum(counts.values())
    shares = ", ".join(
        f"{label} {count / total:.1%} ({count:,})"
        for label, count in counts.most_common(MAX_LABELS_SHOWN)
    )
    rest = len(counts) - MAX_LABELS_SHOWN
    return shares + (f" and {rest} more" if rest > 0 else "")


def truncation(lengths: npt.ArrayLike, *, room: int, limit: str) -> str:
    """Returns how many inputs are truncated, by how much, and how long they are.

    Args:
        lengths: as in `check_lengths`.
        room: as in `check_lengths`.
        limit: as in `check_lengths`.
    """
    pieces = np.asarray(lengths)
    median, high, longest = np.percentile(pieces, [50, 95, 100]).astype(int)
    lost = np.sum(np.maximum(pieces - room, 0)) / max(np.sum(pieces), 1)
    text = (
        f"{np.mean(pieces > room):.1%} are longer than {limit} and are truncated; half "
        f"have at most {median:,} pieces, 95 % at most {high:,}, the longest "
        f"{longest:,}"
    )
    return text + (f"; {lost:.1%} of the pieces are cut off" if lost else "")


def warn_of_truncated(
    lengths: npt.ArrayLike, *, room: int, limit: str, inputs: str
) -> None:
    """Logs how many inputs are truncated.

    Args:
        lengths: as in `check_lengths`.
        room: as in `check_lengths`.
        limit: as in `check_lengths`.
        inputs: what they are, such as "texts of test".
    """
    pieces = np.asarray(lengths)
    if count := int(np.sum(pieces > room)):
        message = "%d of %d %s are longer than %s and are truncated."
        logger.warning(message, count, len(pieces), inputs, limit)


def check_unknown(
    findings: Findings,
    part: str,
    *,
    lengths: npt.ArrayLike,
    num_unknown: npt.ArrayLike,
) -> None:
    """Checks how many pieces are [UNK].

    Args:
        findings: collects the findings.
        part: "train", "dev" or "test".
        lengths: number of pieces of each example before truncation.
        num_unknown: number of [UNK] among them.
    """
    share = float(np.sum(num_unknown) / max(np.sum(lengths), 1))
    findings.judge(
        "unknown words",
        f"{part}: {share:.2%} of the pieces are [UNK], in "
        f"{np.mean(np.asarray(num_unknown) > 0):.1%} of the examples",
        is_good=share <= UNKNOWN_SHARE,
    )


def count_pieces(
    tokenizer: Any,
    texts: Sequence[str],
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the number of pieces of each text, and the number of [UNK] among them.

    Args:
        tokenizer: a `FullTokenizer` or an `InGraphTokenizer`.
        texts: N texts.

    Returns:
        int64 [N], int64 [N].
    """
    unknown = tokenizer.vocabulary.unk_id
    lengths: list[int] = []
    num_unknown: list[int] = []
    for start in range(0, len(texts), TEXTS_PER_CALL):
        rows = packing.token_ids(tokenizer, texts[start : start + TEXTS_PER_CALL])
        lengths += map(len, rows)
        num_unknown += [row.count(unknown) for row in rows]
        progress_module.report("tokenize", len(lengths), len(texts), unit="texts")
    return np.array(lengths, np.int64), np.array(num_unknown, np.int64)


def check_casing(
    findings: Findings,
    texts: Sequence[str],
    vocabulary: vocabulary_module.Vocabulary,
    *,
    do_lower_case: bool,
    never_split: Sequence[str] = (),
) -> None:
    """Checks that vocabulary, flag and text agree on capital letters.

    Args:
        findings: collects the findings.
        texts: some or all texts of the data.
        vocabulary: vocabulary of the model.
        do_lower_case: whether the run lowercases text.
        never_split: tokens that the run finds as they are written.
    """
    with_capitals = sum(text != text.lower() for text in texts) / max(len(texts), 1)
    seen = f"{with_capitals:.0%} of the texts have capitals"
    warning = full.casing_warning(
        vocabulary, do_lower_case=do_lower_case, never_split=never_split
    )
    if warning is not None:
        report = findings.warning if do_lower_case else findings.error
        report("casing", f"{warning} In this data, {seen}.")
        return
    is_cased = full.cased_piece(vocabulary, never_split) is not None
    kind = "has" if is_cased else "has no"
    findings.judge(
        "casing",
        f"the vocabulary {kind} cased pieces, which agrees with "
        f"--do_lower_case={do_lower_case}; {seen}",
        # A cased model has seen little text without any capitals.
        is_good=not is_cased
        or with_capitals > 0.01
        or len(texts) < _MIN_TEXTS_FOR_CASE,
    )


def text_key(text: str) -> str:
    """Returns a key that ignores case and white space."""
    return " ".join(text.lower().split())


def _check_empty(findings, parts):
    num_empty = 0
    for items in parts.values():
        for item in items:
            if not all(map(str.strip, item.texts)):
                num_empty += 1
                findings.warning("empty texts", "a text is empty", item.place)
    if not num_empty:
        findings.passed("empty texts", "none")


def _check_duplicates(findings, part, items):
    by_key = collections.defaultdict(list)
    for item in items:
        by_key[_key(item)].append(item)
    repeated = [group for group in by_key.values() if len(group) > 1]
    spare = sum(len(group) - 1 for group in repeated)
    if not repeated:
        findings.passed("duplicates", f"{part}: every text occurs once")
        return
    where = places(f"{group[1].place} as {group[0].place}" for group in repeated)
    findings.warning(
        "duplicates",
        f"{part}: {spare:,} of {len(items):,} texts occurred before ({where})",
    )
    torn = [group for group in repeated if len({item.label for item in group}) > 1]
    for group in torn:
        other = next(item for item in group if item.label != group[0].label)
        findings.warning(
            "contradictions",
            f"{part}: same text as {group[0].place}, which has the label "
            f"{group[0].label!r:.60} instead of {other.label!r:.60}",
            other.place,
        )


def _check_overlap(findings, parts, part):
    place_of = {_key(item): item.place for item in reversed(parts["train"])}
    shared = [item for item in parts[part] if _key(item) in place_of]
    if not shared:
        findings.passed("overlap", f"no text of {part} is in train")
        return
    where = places(f"{item.place} as {place_of[_key(item)]}" for item in shared)
    findings.warning(
        "overlap",
        f"{len(shared):,} of {len(parts[part]):,} texts of {part} are also in train "
        f"({where}); scores on them are too high",
    )


def _check_seen(findings, counts):
    unseen = sorted(counts["dev"].keys() - counts["train"].keys())
    for label in unseen:
        findings.error(
            "label sets",
            f"{label!r} occurs {counts['dev'][label]:,} times in dev but not in train",
        )
    unscored = sorted(counts["train"].keys() - counts["dev"].keys())
    if unscored:
        shown = ", ".join(map(repr, unscored[:5]))
        findings.warning(
            "label sets", f"in train but not in dev ({len(unscored)}): {shown}"
        )
    if not (unseen or unscored):
        findings.passed("label sets", "train and dev have the same labels")


def _key(item):
    """Returns a key that ignores case and white space."""
    return tuple(map(text_key, item.texts))
