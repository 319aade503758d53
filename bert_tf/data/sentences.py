"""Splits running text into sentences with the library sentencex.

No other module imports it. sentencex (Wikimedia, MIT, Rust, about 300 languages) was
the fastest of six libraries on 1,500 paragraphs of a novel, on one core:

| library               | MB/s | notes                                            |
|-----------------------|------|--------------------------------------------------|
| sentencex 1.0.32      | 68   | needs no data files                              |
| blingfire 0.1.8       | 10.4 | no release since 2021; splits `"Why?" she asked` |
| nupunkt 0.8           | 8.9  | English law                                      |
| sentence-splitter 1.4 | 1.4  | no release since 2019                            |
| syntok 1.4.4          | 1.4  | three languages                                  |
| pysbd 0.3.4           | 0.3  | no release since 2021                            |
"""

import itertools
import re

from bert_tf import machine

# sentencex never splits text in quotation marks, so that ten spoken sentences would be
# one. `split` therefore applies it again inside the marks. A single mark may be an
# apostrophe: a closing one must follow punctuation.
_QUOTED = re.compile(
    r'"([^"]+)"|“([^“”]+)”|„([^„“]+)“|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』'
    r"|‘([^‘]+?[.,!?;:—-])’(?!\w)|(?<!\w)'(?=\w)(.+?[.,!?;:—-])'(?!\w)"
)
# An opening mark that sentencex has left at the end of the previous sentence.
_STRAY_MARK = re.compile(r"\s[\"“„«'‘]\s*$")


def split(text: str, language: str) -> list[str]:
    """Returns the sentences of a paragraph without line ends, in order, none empty.

    A language has a code such as "en", "zh" or "pt-BR". An unknown code gets the rules
    of the nearest known one.

    Raises:
        ImportError: sentencex is not installed.

    >>> split('"Yes. I am here. Why?" she said. Oh.', "en")
    ['"Yes.', 'I am here.', 'Why?" she said.', 'Oh.']
    """
    library = machine.package(
        "sentencex", extra="corpus", needed_for="Splitting sentences"
    )
    segment = library.segment
    cuts = _boundaries(segment(language, text))
    for match in _QUOTED.finditer(text):
        start, end = match.span(match.lastindex or 0)
        inner = _boundaries(segment(language, text[start:end]))
        cuts += [start + cut for cut in inner if start + cut < end]
    if len(cuts) > 1:
        cuts = sorted({_before_stray_mark(text, cut) for cut in cuts})
    parts = (text[a:b].strip() for a, b in itertools.pairwise([0, *cuts, len(text)]))
    return [part for part in parts if part]


def _boundaries(pieces):
    """Returns the offset of the end of each piece."""
    return list(itertools.accumulate(map(len, pieces)))


def _before_stray_mark(text, cut):
    if cut < len(text) and (stray := _STRAY_MARK.search(text[max(0, cut - 3) : cut])):
        return cut - (min(3, cut) - stray.start())
    return cut
