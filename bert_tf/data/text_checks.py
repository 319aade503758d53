"""Checks of texts and labels that all tasks share, and what they find.

`held_out` chooses examples for evaluation whose first text does not occur in the
training data.
"""

import collections
import dataclasses
import functools
import hashlib
import json
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

PASSED, WARNING, ERROR = "ok", "warning", "error"
# Per check, so that a thousand wrong rows do not hide the findings of other checks.
MAX_SHOWN = 10
TRUNCATED_SHARE = 0.05
UNKNOWN_SHARE = 0.01
TEXTS_PER_CALL = 2048
MAX_LABELS_SHOWN = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a check found."""

    severity: str  # PASSED, WARNING or ERROR.
    check: str  # Name of the check, such as "labels"; the report groups by it.
    message: str  # One sentence.
    place: str | None = None  # Such as "file:line", if the problem is in one place.

    def __str__(self) -> str:
        place = "" if self.place is None else f"{self.place}: "
        return f"{self.severity:8}{self.check}: {place}{self.message}"


class Findings:
    """Collects the findings of checks in order, in the list `all`."""

    def __init__(self) -> None:
        self.all: list[Finding] = []

    def add(
        self, severity: str, check: str, message: object, place: str | None = None
    ) -> None:
        """Adds what a check found: a sentence or an error; see `Finding`."""
        self.all.append(
            Finding(severity=severity, check=check, message=str(message), place=place)
        )

    # The check found no problem; the message says what it looked at.
    passed = functools.partialmethod(add, PASSED)
    # It found something that may be intended but is often a mistake.
    warning = functools.partialmethod(add, WARNING)
    # It found a problem that must be fixed.
    error = functools.partialmethod(add, ERROR)

    def log_warnings(self) -> None:
        """Logs the warnings, for a run that goes on in spite of them."""
        for finding in self.all:
            if finding.severity == WARNING:
                logger.warning("%s: %s", finding.check, finding.message)

    def judge(self, check: str, message: str, *, is_good: bool) -> None:
        """Adds a passed check or a warning, with the same message."""
        self.add(PASSED if is_good else WARNING, check, message)

    def report(self) -> str:
        """Returns one line per finding, `MAX_SHOWN` per check, and their numbers.

        It is a `FailureReport` if there are errors.
        """
        by_check: dict[str, list[Finding]] = {}
        for finding in self.all:
            by_check.setdefault(f"{finding.severity:8}{finding.check}", []).append(
                finding
            )
        lines: list[str] = []
        for check, findings in by_check.items():
            lines += map(str, findings[:MAX_SHOWN])
            if len(findings) > MAX_SHOWN:
                lines.append(f"{check}: and {len(findings) - MAX_SHOWN} more")
        counts = collections.Counter(finding.severity for finding in self.all)
        lines.append(
            f"passed: {counts[PASSED]}, warnings: {counts[WARNING]}, errors: "
            f"{counts[ERROR]}"
        )
        text = "\n".join(lines)
        return options_module.FailureReport(text) if counts[ERROR] else text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Item:
    """One example, as far as these checks need it."""

    texts: tuple[str, ...]  # All texts that the model sees.
    label: str | None  # None if it is unknown, as in a test set.
    place: str  # "file:line", or another name.


def check_texts(findings: Findings, parts: Mapping[str, Sequence[Item]]) -> None:
    """Counts the examples of each part, and finds those that are also training data.

    More examples of "dev" than of "train" are a sign of swapped files.
    """
    counts = ", ".join(f"{len(items):,} in {part}" for part, items in parts.items())
    is_swapped = 0 < len(parts.get("train", ())) < len(parts.get("dev", ()))
    counts += ": are the files swapped?" if is_swapped else ""
    findings.judge("examples", counts, is_good=not is_swapped)
    place_of = {_key(item): item.place for item in parts.get("train", ())}
    for part, items in parts.items():
        shared = [item for item in items if part != "train" and _key(item) in place_of]
        if shared:
            findings.warning(
                "overlap",
                f"{len(shared):,} of {len(items):,} texts of {part} are also in train "
                f"(such as {shared[0].place} as {place_of[_key(shared[0])]}); scores "
                "on them are too high",
            )


def check_labels(findings: Findings, parts: Mapping[str, Sequence[str]]) -> None:
    """Reports the balance of labels, and labels that occur only in "dev".

    `parts` has the label of each example of "train" and "dev".
    """
    for part, labels in parts.items():
        findings.passed("labels", f"{part}: {balance(labels)}")
    if "train" in parts:
        unseen = collections.Counter(parts.get("dev", ()))
        for label in sorted(unseen.keys() - set(parts["train"])):
            findings.error(
                "labels",
                f"{label!r} occurs {unseen[label]:,} times in dev but not in train",
            )


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
    """Returns the share and number of each label: "rain 75.0% (6), sun 25.0% (2)"."""
    counts = collections.Counter(labels)
    total = sum(counts.values())
    shares = ", ".join(
        f"{label:.60} {count / total:.1%} ({count:,})"
        for label, count in counts.most_common(MAX_LABELS_SHOWN)
    )
    rest = len(counts) - MAX_LABELS_SHOWN
    return shares + (f" and {rest} more" if rest > 0 else "")


def truncation(lengths: npt.ArrayLike, *, room: int, limit: str) -> str:
    """Returns how many inputs are truncated, by how much, and how long they are.

    The arguments are those of `check_lengths`.
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
    """Logs how many inputs, such as "texts of test", are truncated.

    The other arguments are those of `check_lengths`.
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


def count_pieces(tokenizer: Any, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Returns how many pieces each of N texts has, and how many of them are [UNK].

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
    vocabulary: vocabulary_module.Vocabulary,
    *,
    do_lower_case: bool,
    never_split: Sequence[str] = (),
) -> None:
    """Checks that vocabulary and flag agree on capital letters.

    Args:
        findings: collects the findings.
        vocabulary: vocabulary of the model.
        do_lower_case: whether the run lowercases text.
        never_split: tokens that the run finds as they are written.
    """
    warning = full.casing_warning(
        vocabulary, do_lower_case=do_lower_case, never_split=never_split
    )
    if warning is None:
        agrees = f"the vocabulary agrees with --do_lower_case={do_lower_case}"
        findings.passed("casing", agrees)
    else:
        findings.add(WARNING if do_lower_case else ERROR, "casing", warning)


def text_key(text: str) -> str:
    """Returns a key that ignores case and white space."""
    return " ".join(text.lower().split())


def _key(item):
    return tuple(map(text_key, item.texts))


def held_out(
    texts: Sequence[Sequence[str]], strata: Sequence[int], *, share: float, seed: int
) -> np.ndarray:
    """Returns which examples are held out, as bool [N].

    The choice depends only on the arguments. Examples with the same first text,
    ignoring case and white space, are on the same side: otherwise the model would be
    evaluated on texts that it was trained on. Each stratum has about the same share on
    both sides and keeps at least one text for training.

    Args:
        texts: the texts of each of N examples.
        strata: the stratum of each example, such as the index of its class.
        share: share of the examples to hold out.
        seed: a different seed gives a different choice.

    Raises:
        ValueError: no example can be held out.
    """
    keys = [[text_key(text) for text in example] for example in texts]
    groups = _groups(keys)
    num_left = collections.Counter(strata[group[0]] for group in groups)
    # A few large groups would make the hold-out much too large or too small.
    groups = [group for group in groups if len(group) <= max(share * len(keys) / 2, 1)]
    groups.sort(key=lambda group: (strata[group[0]], _rank(keys[group[0]], seed)))
    share_of_groups = min(share * len(keys) / max(sum(map(len, groups)), 1), 0.5)
    chosen = np.zeros(len(keys), bool)
    num_chosen = 0
    for num_seen, group in enumerate(groups, start=1):
        stratum = strata[group[0]]
        if num_left[stratum] > 1 and num_chosen + 0.5 <= share_of_groups * num_seen:
            chosen[group] = True
            num_chosen += 1
            num_left[stratum] -= 1
    if not num_chosen:
        raise ValueError(
            f"--validation_split={share:g} of {len(texts):,} examples holds out none: "
            "there are too few, or each class has one text, or all examples have the "
            "same first text. Use a larger share, or separate examples for evaluation."
        )
    return chosen


def fingerprint(texts: Sequence[Sequence[str]]) -> str:
    """Returns the SHA-256 of texts, in any order."""
    lines = sorted(json.dumps(list(example)) for example in texts)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _groups(keys):
    """Returns lists of the indices of examples with the same first text."""
    groups = collections.defaultdict(list)
    for index, example in enumerate(keys):
        # Pairs without a first text are the same if their second one is.
        groups[example[0] or tuple(example)].append(index)
    return list(groups.values())


def _rank(keys, seed):
    return hashlib.sha256(json.dumps([seed, *keys]).encode()).digest()
