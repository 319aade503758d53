"""Removes the markers of the data set wiki40b.

An article is a string with the lines `_START_ARTICLE_`, `_START_SECTION_` and
`_START_PARAGRAPH_`, each followed by a title or by text. `_NEWLINE_` separates
paragraphs (Guo et al. 2020).
"""

import re

from bert_tf.preparation import counts as counts_module

_MARK = re.compile(r"_START_(ARTICLE|SECTION|PARAGRAPH)_")
_LINE_END = "_NEWLINE_"


def running_text(text: str, counts: counts_module.ReadCounts) -> str:
    """Returns a text without markers and titles, one line per paragraph.

    Args:
        text: an article; text without markers is returned unchanged.
        counts: receives the number of titles left out, as headings.
    """
    before, *marked = _MARK.split(text)
    if not marked:
        return text
    kept = [before]
    for kind, content in zip(marked[::2], marked[1::2], strict=True):
        if kind == "PARAGRAPH":
            kept.append(content)
        else:
            counts.headings += bool(content.strip())
    return "\n".join(kept).replace(_LINE_END, "\n")
