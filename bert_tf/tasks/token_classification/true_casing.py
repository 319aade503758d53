"""True-casing: restores the usual case of sentences in capitals, such as headlines.

Named entities are tagged with a cased model, since capitals mark names in English
(arXiv:1810.04805, section 5.3). But a cased vocabulary lacks "JAPAN" and "LUCKY": it
splits them into pieces of one or two letters, which the encoder has rarely seen
together, and entities in headlines are missed. So the words of such a sentence get the
case that they have elsewhere: "Japan get lucky win".
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import schemes


def is_all_capitals(words: Sequence[str]) -> bool:
    """Returns whether a sentence has two words in capitals and no lowercase letter.

    Only words of two or more letters count as words in capitals, so "A" does not.
    """
    cased = [word for word in words if word.lower() != word.upper()]
    capitals = [word for word in cased if sum(map(str.isalpha, word)) > 1]
    return len(capitals) > 1 and all(word == word.upper() for word in cased)


def learned_cases(sentences: Iterable[Sequence[str]]) -> dict[str, str]:
    """Returns the most frequent form of each word, by the word in lower case.

    Sentences in capitals are ignored, as is the first word of every sentence, which is
    always capitalized. Words that usually have one capital first letter, like "Japan",
    are omitted, because `true_cased` writes unknown words in this form.

    Args:
        sentences: the words of each sentence.

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
        # Between equally frequent forms, the one that sorts last: lower case.
        lower: max(forms.items(), key=lambda item: (item[1], item[0]))[0]
        for lower, forms in counts.items()
    }
    return {lower: word for lower, word in usual.items() if word != _as_name(lower)}


def true_cased(words: Sequence[str], cases: Mapping[str, str]) -> list[str]:
    """Returns the words of a sentence; if it is in capitals, in their usual case.

    Args:
        words: the words of the sentence.
        cases: the result of `learned_cases`. A word that it lacks gets a capital first
            letter, because most of these are names.

    Example:
        >>> true_cased(["JAPAN", "GET", "LUCKY", "WIN"], {"get": "get", "win": "win"})
        ['Japan', 'get', 'Lucky', 'win']
    """
    if not is_all_capitals(words):
        return list(words)
    return [cases.get(word.lower(), _as_name(word.lower())) for word in words]


def advice(
    sentences: Sequence[examples.Sentence],
    *,
    tag_scheme: str,
    do_lower_case: bool,
    is_true_cased: bool,
) -> str | None:
    """Returns a suggestion for finding more entities, or None.

    Args:
        sentences: the sentences to train on.
        tag_scheme: one of `schemes.SCHEMES`.
        do_lower_case: whether the model lowercases words.
        is_true_cased: whether sentences in capitals are true-cased.
    """
    if tag_scheme == schemes.NONE:
        return None
    if do_lower_case:
        return (
            "Lowercasing removes the capitals that mark names. Cased checkpoints with "
            "--do_lower_case=False find more entities."
        )
    count = sum(is_all_capitals(sentence.words) for sentence in sentences)
    if is_true_cased or not count:
        return None
    return (
        f"{count} of {len(sentences)} training sentences are in capitals, which a "
        "cased vocabulary covers poorly; --true_case restores their usual case."
    )


def _as_name(lower):
    return lower[:1].upper() + lower[1:]
