"""Tag schemes: how the tags of words mark where an entity starts and ends.

A tagger labels words one by one, but an entity can have several words, and two of the
same type can be adjacent. A scheme resolves this with a prefix before the type:

| scheme | entity of two words | entity of one word | directly after the same type |
|---|---|---|---|
| iob1 | I-PER I-PER | I-PER | starts with B-PER |
| iob2 | B-PER I-PER | B-PER | no difference |
| iobes | B-PER E-PER | S-PER | no difference |
| bilou | B-PER L-PER | U-PER | no difference |

All other words have the tag O. Tags without prefixes, such as parts of speech, have the
scheme "none".
"""

import collections
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from bert_tf.data import label_names

OUTSIDE = "O"
NONE = "none"
# Scheme -> prefixes for the first, inner, last and only word of an entity.
PREFIXES = {
    "iob1": ("B", "I"),
    "iob2": ("B", "I"),
    "iobes": ("B", "I", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
}
SCHEMES = (*PREFIXES, NONE)
_ALL_PREFIXES = frozenset("BIESLU")
_BEGIN, _LAST = frozenset("BSU"), frozenset("ESLU")
# In order of preference if several schemes fit equally well.
_TRIED = ("iob2", "iob1", "iobes", "bilou")
# Up to this share of tags without a prefix, not counting O, are assumed to be typing
# errors.
_STRAY_SHARE = 0.1
_END = None  # Follows the last tag of a sentence.


def split_tag(tag: str) -> tuple[str, str]:
    """Returns prefix and type: ("B", "PER") for "B-PER", ("O", "") for "O".

    The prefix is "" if the tag has none.
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, dash, kind = tag.partition("-")
    if dash and kind and prefix in _ALL_PREFIXES:
        return prefix, kind
    return "", tag


def type_of(tag: str, scheme: str) -> str:
    """Returns the type of a tag, "O" for O; with the scheme "none" the tag itself."""
    return tag if scheme == NONE else split_tag(tag)[1] or tag


def begins_entity(before: str, tag: str, scheme: str) -> bool:
    """Returns whether an entity begins at a tag, also where tags break their scheme.

    Args:
        before: the tag of the word before; O at the start of a sentence.
        tag: the tag of the word.
        scheme: one of `SCHEMES`. With "none", equal tags in a row are an entity.

    Source: conlleval of CoNLL-2000.
    """
    if tag == OUTSIDE:
        return False
    if before == OUTSIDE or type_of(before, scheme) != type_of(tag, scheme):
        return True
    is_marked = split_tag(tag)[0] in _BEGIN or split_tag(before)[0] in _LAST
    return scheme != NONE and is_marked


def entities(tags: Sequence[str], scheme: str) -> list[tuple[str, int, int]]:
    """Returns the type, the first and the last word of each entity of a sentence.

    Example:
        >>> entities(["B-PER", "I-PER", "O", "B-LOC"], "iob2")
        [('PER', 0, 1), ('LOC', 3, 3)]
    """
    ranges: list[tuple[str, int, int]] = []
    for index, (before, tag) in enumerate(zip([OUTSIDE, *tags], tags, strict=False)):
        if begins_entity(before, tag, scheme):
            ranges.append((type_of(tag, scheme), index, index))
        elif tag != OUTSIDE:
            ranges[-1] = (*ranges[-1][:2], index)
    return ranges


def breach(tags: Sequence[str], scheme: str) -> tuple[int, str] | None:
    """Returns index and description of a sentence's first violation of a scheme.

    The end of the sentence has the number of tags as index. "none" allows any tags.
    """
    for index, (before, tag) in enumerate(_steps(tags)):
        reason = None if scheme == NONE else _reason_against(before, tag, scheme)
        if reason is not None:
            return index, reason
    return None


def breaches(sentences: Sequence[Any], scheme: str) -> Iterator[tuple[int, str]]:
    """Yields line number and description of each `examples.Sentence`'s `breach`."""
    for sentence in sentences:
        first = breach(sentence.tags or (), scheme)
        if first is not None:
            line = sentence.lines[min(first[0], len(sentence.lines) - 1)]
            yield line, f"{first[1]}, so the tags are not {scheme.upper()}"


def check_tags(
    path: str, sentences: Sequence[Any], scheme: str, labels: Sequence[str]
) -> None:
    """Checks that all words have tags of a model, and that these follow their scheme.

    Args:
        path: the file, for error messages.
        sentences: the sentences of the file.
        scheme: one of `SCHEMES`.
        labels: the tags of the model.

    Raises:
        ValueError: there is no column of tags, or a tag is unknown or violates the
            scheme; the message names the line.
    """
    if any(sentence.tags is None for sentence in sentences):
        raise ValueError(
            f"{path} has no column of tags; expected one word with its tag per line."
        )
    for line, reason in breaches(sentences, scheme):
        raise ValueError(
            f"{path}:{line}: {reason}; correct the tag, or set --tag_scheme "
            f"({', '.join(SCHEMES)})."
        )
    known = frozenset(labels)
    for sentence in sentences:
        for line, tag in zip(sentence.lines, sentence.tags or (), strict=True):
            if tag not in known:
                raise ValueError(
                    f"{path}:{line}: the tag {tag!r} is not one of the model's tags "
                    f"{', '.join(labels)}; correct it, or train with --labels that "
                    "list all tags."
                )


def recognize_scheme(
    sentences: Iterable[Sequence[str]], *, path: str = "the data"
) -> str:
    """Recognizes the scheme of tags.

    The scheme with the fewest violations wins. So a mistyped tag is reported as an
    error later, rather than changing the scheme of the whole file. It is "none" if all
    tags are O, or if at least half of the other tags have no prefix.

    Raises:
        ValueError: more than a tenth of them have none, but most have one.
    """
    steps = collections.Counter(itertools.chain.from_iterable(map(_steps, sentences)))
    tags = collections.Counter[str]()
    for (_, tag), count in steps.items():
        if tag not in (OUTSIDE, _END):
            tags[tag] += count
    plain = sorted(tag for tag in tags if not split_tag(tag)[0])
    num_plain, num_tags = sum(map(tags.__getitem__, plain)), tags.total()
    if 2 * num_plain >= num_tags:
        return NONE
    if num_plain > _STRAY_SHARE * num_tags:
        raise ValueError(
            f"{path}: {num_plain:,} of {num_tags:,} tags have no prefix such as B- or "
            f"I-, and the others have one; the first is {plain[0]!r}. Correct them, or "
            f"set --tag_scheme={NONE} to score words instead of entities."
        )

    def num_breaches(scheme):
        return sum(
            count
            for (before, tag), count in steps.items()
            if _reason_against(before, tag, scheme) is not None
        )

    return min(_TRIED, key=num_breaches)


def scheme_of_labels(labels: Iterable[str]) -> str:
    """Recognizes the scheme of a model's tags by their prefixes.

    It is "none" if a tag other than O has no prefix, or if there is only O. IOB1 and
    IOB2 have the same prefixes; it is IOB1 if more types have I- than B-.
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
    """Returns the tags of a model for training data.

    They are O and each type with every prefix of the scheme, even if the training data
    lack a combination: two adjacent entities may occur only in other data. With the
    scheme "none", they are the tags that occur, sorted.
    """
    tags = set(tags)
    if scheme == NONE:
        return sorted(tags)
    kinds = sorted({split_tag(tag)[1] for tag in tags} - {""})
    prefixes = PREFIXES[scheme]
    return [OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in prefixes)]


def labels_of_training(
    path: str, tags: Iterable[Sequence[str]], scheme: str
) -> list[str]:
    """Returns the tags of a model that is trained on a file.

    Args:
        path: the file, for error messages.
        tags: the tags of each sentence.
        scheme: one of `schemes.SCHEMES`.

    Raises:
        ValueError: every word has the same tag, two tags differ only in case, or a tag
            stands for a missing value.
    """
    seen = collections.Counter(tag for sentence in tags for tag in sentence)
    missing = list(filter(label_names.is_missing, seen))
    if missing:
        raise ValueError(
            f"{path}: {seen[missing[0]]:,} words have the tag {missing[0]!r}, which "
            "stands for a missing value; correct it, or list all tags in --labels."
        )
    label_names.check_spellings(
        path, seen, "Correct them, or list all tags in --labels."
    )
    if len(seen) == 1:
        raise ValueError(
            f"{path}: every word has the tag {min(seen)!r}; expected at least two "
            "different tags (see --tag_column)."
        )
    return labels_of(seen, scheme)


def _steps(tags: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    """Returns pairs of consecutive tags, from the start of a sentence to its end."""
    return zip([OUTSIDE, *tags], [*tags, _END], strict=True)


def _reason_against(before: str, tag: str | None, scheme: str) -> str | None:
    """Returns why a tag cannot follow another one, or None if it can."""
    prefix, kind = split_tag(OUTSIDE if tag is _END else tag)
    if prefix not in (OUTSIDE, *PREFIXES[scheme]):
        expected = ", ".join(f"{letter}-…" for letter in PREFIXES[scheme])
        return f"the tag {tag!r} is not one of {expected} and O"
    is_open = split_tag(before)[0] in ("B", "I")
    is_inside = is_open and split_tag(before)[1] == kind
    if scheme == "iob1":
        is_allowed = prefix != "B" or is_inside
    elif scheme == "iob2":
        is_allowed = prefix != "I" or is_inside
    else:
        is_allowed = is_inside if prefix in ("I", "E", "L") else not is_open
    if is_allowed:
        return None
    if tag is _END:
        return f"the sentence ends inside the entity of {before!r}"
    if before == OUTSIDE:
        return f"{tag!r} cannot start an entity"
    return f"{tag!r} cannot follow {before!r}"
