"""Running text -> sentences, by the library sentencex (Wikimedia, about 300 languages).

The only module that knows sentencex.
"""

import itertools
import re

# sentencex keeps what stands in quotation marks in one piece; speech of ten sentences
# is then one. Single marks are apostrophes too: one that closes follows punctuation.
_QUOTED = re.compile(
    r'"([^"]+)"|“([^“”]+)”|„([^„“]+)“|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』'
    r"|‘([^‘]+?[.,!?;:—-])’(?!\w)|(?<!\w)'(?=\w)(.+?[.,!?;:—-])'(?!\w)"
)
# An opening mark that sentencex left at the end of the sentence before.
_STRAY_MARK = re.compile(r"\s[\"“„«'‘]\s*$")


def split(text: str, language: str) -> list[str]:
    """Returns the sentences of a paragraph, in order, none empty.

    Args:
        text: running text without line ends.
        language: code such as "en" or "zh"; one that is not known, or that a longer
            code such as "pt-BR" stands for, gets the rules of the nearest one.

    Raises:
        ImportError: sentencex is not installed.

    >>> split('"Yes. I am here. Why?" she said. Oh.', "en")
    ['"Yes.', 'I am here.', 'Why?" she said.', 'Oh.']
    """
    segment = _segmenter()
    cuts = _boundaries(segment(language, text))
    for match in _QUOTED.finditer(text):
        start, end = match.span(match.lastindex)
        inner = _boundaries(segment(language, text[start:end]))
        cuts += [start + cut for cut in inner if start + cut < end]
    if len(cuts) > 1:
        cuts = sorted({_before_stray_mark(text, cut) for cut in cuts})
    parts = (text[a:b].strip() for a, b in itertools.pairwise([0, *cuts, len(text)]))
    return [part for part in parts if part]


def _boundaries(pieces):
    """Returns the places after each piece."""
    return list(itertools.accumulate(map(len, pieces)))


def _before_stray_mark(text, cut):
    if cut < len(text) and (stray := _STRAY_MARK.search(text[max(0, cut - 3) : cut])):
        return cut - (min(3, cut) - stray.start())
    return cut


def _segmenter():
    try:
        import sentencex
    except ModuleNotFoundError:
        raise ImportError(
            "Sentences are found by sentencex, which is not installed; "
            "pip install 'bert_tf[corpus]'."
        ) from None
    return sentencex.segment
