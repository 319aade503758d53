"""Text of the data set wiki40b, whose marks say what is a title and what is text.

An article is a string with the lines `_START_ARTICLE_`, `_START_SECTION_` and
`_START_PARAGRAPH_`, each followed by what it names; `_NEWLINE_` stands between
paragraphs (Guo et al. 2020).
"""

import re

from bert_tf.preparation import counts as counts_module

_MARK = re.compile(r"_START_(ARTICLE|SECTION|PARAGRAPH)_")
_LINE_END = "_NEWLINE_"


def running_text(text: str, counts: counts_module.ReadCounts) -> str:
    """Returns a text without its marks and titles, a line for each paragraph.

    Args:
        text: of an article; other text, which has no marks, is returned as it is.
        counts: titles left out are added to its headings.
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
