"""True-casing: headlines in capitals, as text would have them.

A cased vocabulary has no "JAPAN" and no "LUCKY": such words fall to pieces of a letter
or two, and their entities are lost. So a sentence in capitals is given the case that
its words have elsewhere: "Japan get lucky win".
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.tasks.token_classification import schemes


def is_all_capitals(words: Sequence[str]) -> bool:
    """Returns whether a sentence is in capitals: two such words, none in lower case.

    Words without letters do not count, nor do words of one letter, such as "A".
    """
    cased = [word for word in words if word.lower() != word.upper()]
    capitals = [word for word in cased if sum(map(str.isalpha, word)) > 1]
    return len(capitals) > 1 and all(word == word.upper() for word in cased)


def learned_cases(sentences: Iterable[Sequence[str]]) -> dict[str, str]:
    """Returns the usual form of the words of some text, by the word in lower case.

    Sentences in capitals are not looked at, and of the others not the first word,
    which has a capital whatever it is. Words whose usual form is that of an unknown
    one, "Japan", are left out: `true_cased` writes those so anyway.

    Args:
        sentences: the words of each.

    Example:
        >>> learned_cases([["The", "UN", "meets", "Japan"]])
        {'un': 'UN', 'meets': 'meets'}
    """
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for words in sentences:
        if not is_all_capitals(words):
            for word in words[1:]:
                counts[word.lower()][word] += 1
    usual = {
        # Of two forms that are equally frequent the one that sorts last: lower case.
        lower: max(forms.items(), key=lambda item: (item[1], item[0]))[0]
        for lower, forms in counts.items()
    }
    return {lower: word for lower, word in usual.items() if word != _as_name(lower)}


def true_cased(words: Sequence[str], cases: Mapping[str, str]) -> list[str]:
    """Returns the words of a sentence, in their usual case where it is in capitals.

    Args:
        words: those of the sentence.
        cases: what `learned_cases` returned. A word that is not in it is written as a
            name, with a capital first letter: it is most often one.

    Example:
        >>> true_cased(["JAPAN", "GET", "LUCKY", "WIN"], {"get": "get", "win": "win"})
        ['Japan', 'get', 'Lucky', 'win']
    """
    if not is_all_capitals(words):
        return list(words)
    return [cases.get(word.lower(), _as_name(word.lower())) for word in words]


def advice(task, sentences) -> str | None:
    """Returns what to do for more entities with words in capitals, or None.

    Args:
        task: `task.Task` that is to be trained.
        sentences: those to train on.
    """
    if task.tag_scheme == schemes.NONE:
        return None
    if task.do_lower_case:
        return (
            "Capitals tell names from words, and lower-casing takes them away: cased "
            "checkpoints, with --do_lower_case=False, find more entities."
        )
    count = sum(is_all_capitals(sentence.words) for sentence in sentences)
    if task.true_cases is not None or not count:
        return None
    return (
        f"{count} of {len(sentences)} sentences to train on are in capitals, which a "
        "cased vocabulary hardly knows; --true_case gives them their usual case."
    )


def _as_name(lower):
    return lower[:1].upper() + lower[1:]
