"""Tag schemes: how a column of tags says where an entity starts and ends.

| scheme | an entity of two words | of one word | when a second one follows at once |
|---|---|---|---|
| iob1 | I-PER I-PER | I-PER | the second one starts with B-PER |
| iob2 | B-PER I-PER | B-PER | as always |
| iobes | B-PER E-PER | S-PER | as always |
| bilou | B-PER L-PER | U-PER | as always |

Everything else has the tag O. Tags without such prefixes, as parts of speech have them,
are of the scheme "none".
"""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

OUTSIDE = "O"
NONE = "none"
# Scheme -> its prefixes: first, inner and last word of an entity, and an only word.
PREFIXES = {
    "iob1": ("B", "I"),
    "iob2": ("B", "I"),
    "iobes": ("B", "I", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
}
SCHEMES = (*PREFIXES, NONE)
_ALL_PREFIXES = frozenset("BIESLU")
# BILOU is IOBES with two letters changed.
_AS_IOBES = {"L": "E", "U": "S"}
# The first of two that fit equally well is taken.
_TRIED = ("iob2", "iob1", "iobes", "bilou")
# Of the words not tagged O: so few without a prefix are slips of the pen.
_STRAY_SHARE = 0.1
_END = None  # What follows the last tag of a sentence.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Breach:
    """A tag that cannot stand where it stands."""

    index: int  # Of the word in its sentence; the number of words for the end.
    reason: str  # What is wrong, for the reader.


def split_tag(tag: str) -> tuple[str, str]:
    """Returns prefix and type: ("B", "PER") of "B-PER"; ("O", "") of "O".

    A tag without prefix has the prefix "".
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, dash, kind = tag.partition("-")
    if dash and kind and prefix in _ALL_PREFIXES:
        return prefix, kind
    return "", tag


def breach(tags: Sequence[str], scheme: str) -> Breach | None:
    """Returns the first breach of a scheme in the tags of a sentence, or None.

    Args:
        tags: those of the sentence's words.
        scheme: one of `SCHEMES`; "none" allows everything.
    """
    if scheme == NONE:
        return None
    for index, (before, tag) in enumerate(_steps(tags)):
        reason = _reason_against(before, tag, scheme)
        if reason is not None:
            return Breach(index=index, reason=reason)
    return None


def recognize_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """Returns the scheme of the tags of some sentences.

    It is the one that the fewest tags break, so that a tag that was mistyped shows as
    the breach that it is, and does not make all others one.

    Args:
        sentences: the tags of each sentence.

    Returns:
        One of `SCHEMES`. "none" where all tags are O, or more than a tenth of the
        others have no prefix.
    """
    steps: collections.Counter[tuple[str, str | None]] = collections.Counter()
    for tags in sentences:
        steps.update(_steps(tags))
    prefixes: collections.Counter[str] = collections.Counter()
    for (_, tag), count in steps.items():
        if tag not in (OUTSIDE, _END):
            prefixes[split_tag(tag)[0]] += count
    if not prefixes or prefixes[""] > _STRAY_SHARE * prefixes.total():
        return NONE
    return min(_TRIED, key=lambda scheme: _num_breaches(steps, scheme))


def scheme_of_labels(labels: Iterable[str]) -> str:
    """Returns the scheme of the tags that a model knows, by the prefixes they have.

    Args:
        labels: each tag once.

    Returns:
        One of `SCHEMES`. "none" where a tag other than O has no prefix, or all are O.
        Between IOB1 and IOB2, IOB1 where more types have I- than B-.
    """
    prefixes = collections.Counter(split_tag(tag)[0] for tag in labels)
    del prefixes[OUTSIDE]
    if not prefixes or "" in prefixes:
        return NONE
    if prefixes["L"] or prefixes["U"]:
        return "bilou"
    if prefixes["E"] or prefixes["S"]:
        return "iobes"
    return "iob1" if prefixes["I"] > prefixes["B"] else "iob2"


def labels_of(tags: Iterable[str], scheme: str) -> list[str]:
    """Returns the tags that a model of some training data chooses from.

    They are O and, for every type, all prefixes of the scheme, whether or not the data
    have each of them: that two entities touch may be seen in other data only.

    Args:
        tags: those that occur.
        scheme: one of `SCHEMES`; "none" gives the tags that occur, sorted.
    """
    tags = set(tags)
    if scheme == NONE:
        return sorted(tags)
    kinds = sorted({split_tag(tag)[1] for tag in tags} - {""})
    prefixes = PREFIXES[scheme]
    return [OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in prefixes)]


def convert_to_iobes(tags: Sequence[str], scheme: str) -> list[str]:
    """Returns tags in which every entity's first and last word can be seen.

    BILOU becomes IOBES; the tags of other schemes stay as they are.
    """
    if scheme != "bilou":
        return list(tags)
    return [_renamed(tag) for tag in tags]


def _renamed(tag):
    prefix, kind = split_tag(tag)
    return f"{_AS_IOBES[prefix]}-{kind}" if prefix in _AS_IOBES else tag


def _steps(tags: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    """Returns each tag after the one before it, and the end after the last."""
    return zip([OUTSIDE, *tags], [*tags, _END], strict=True)


def _num_breaches(steps: Mapping[tuple, int], scheme: str) -> int:
    return sum(
        count
        for (before, tag), count in steps.items()
        if _reason_against(before, tag, scheme) is not None
    )


def _goes_on(tag):
    return split_tag(tag)[0] in ("B", "I")


def _reason_against(before: str, tag: str | None, scheme: str) -> str | None:
    """Returns why a tag cannot follow another one, or None where it can."""
    if tag is _END:
        if scheme in ("iobes", "bilou") and _goes_on(before):
            return f"the sentence ends within the entity that {before!r} belongs to"
        return None
    prefix, kind = split_tag(tag)
    if prefix != OUTSIDE and prefix not in PREFIXES[scheme]:
        expected = ", ".join(f"{letter}-…" for letter in PREFIXES[scheme])
        return f"the tag {tag!r} is none of {expected} and O"
    is_inside = split_tag(before)[0] in ("B", "I") and split_tag(before)[1] == kind
    if scheme == "iob1":
        wrong = prefix == "B" and not is_inside
        needed = f"follow an entity of the type {kind}"
    elif scheme == "iob2":
        wrong = prefix == "I" and not is_inside
        needed = f"go on with an entity of the type {kind}"
    else:
        return _reason_in_iobes(before, tag, is_inside)
    place = "at the start" if before == OUTSIDE else f"after {before!r}"
    return f"{tag!r} {place} does not {needed}" if wrong else None


def _reason_in_iobes(before, tag, is_inside):
    ends_or_goes_on = split_tag(tag)[0] in ("I", "E", "L")
    if ends_or_goes_on and not is_inside:
        return f"{tag!r} after {before!r} belongs to no entity that B-… started"
    if _goes_on(before) and not ends_or_goes_on:
        return f"{tag!r} comes before the entity that {before!r} belongs to has ended"
    return None
