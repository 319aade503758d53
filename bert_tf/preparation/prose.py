"""Lines of running text to paragraphs: unwrapped, without headings or licenses."""

import collections
import itertools
import re
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np

_SAMPLE_LINES = 4096  # Lines from which the layout of a text is inferred.
_WIDEST_WRAP = 120  # Columns; text is not wrapped at greater widths.
_TOLERANCE = 3  # Columns by which lines may fall short of the width.
_FULL_SHARE = 0.4  # Minimum share of full lines in wrapped text.
_OPEN_SHARE = 0.4  # Minimum share of lines that end mid-sentence if wrapped by hand.
_RAGGED_SHARE = 0.6  # Minimum length of hand-wrapped lines, as a share of the width.
_MIN_LINES = 4  # With fewer lines, wrapping cannot be detected.
_MAX_JOINED = 20_000  # Characters; limits blocks of text without any full stop.
_MAX_HEADING = 100  # Characters.
_END = re.compile(r"[.!?…。！？｡؟۔।॥։።][\"'”’»“「」』）)\]*_]*$|[\"'”’»」』]$|[:—-]$")
_NUMBER = (
    r"(?:[ivxlcdm]+|\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:the )?(?:first|second|third|fourth|fifth|sixth|last))"
)
_NUMBERED = re.compile(
    r"(?:chapter|book|part|volume|vol\.|canto|stave|letter|act|scene|kapitel|buch|teil"
    r"|chapitre|livre|partie|tome|cap[ií]tulo|capitolo|libro|parte|hoofdstuk|глава"
    rf"|часть|том|книга)\s+(?:the\s+)?{_NUMBER}\b\W*(?:.*\w)?$",
    re.IGNORECASE,
)
_ORNAMENT = re.compile(r"(?:[ivxlcdm]+|\d+|[\W\d_]*)[.):\]]?$", re.IGNORECASE)
_ILLUSTRATION = re.compile(r"\[(?:illustration|frontispiece)\b[^\]]*\]", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<!\w)_([^_]+)_(?!\w)")
_LICENSE_START = re.compile(r"\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG.*")
_LICENSE_END = re.compile(
    r"\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG|End of (?:the |this )?Project Guten"
)
# Scripts without spaces: no space is put between wrapped lines.
_NO_SPACE = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uff00-\uffef]"
)


def paragraphs(lines: Iterable[str], counts: collections.Counter[str]) -> Iterator[str]:
    """Yields the running text of a document, one paragraph at a time.

    Wrapped lines are joined again, even if no blank lines separate the paragraphs. Text
    that is not wrapped has one paragraph per line. Chapter headings, ornaments,
    captions of illustrations and the license text of Project Gutenberg are left out.
    White space becomes single spaces.

    The lines have no line endings, and only the first 4,096 are held in memory.
    `counts` receives the number of headings left out.
    """
    lines = (line.rstrip() for line in lines)
    sample = list(itertools.islice(lines, _SAMPLE_LINES))
    for number, line in enumerate(sample):
        if _LICENSE_START.match(line.strip()):
            sample = sample[number + 1 :]
            break
    is_full = _find_wrap(sample)
    lines = itertools.takewhile(
        lambda line: not _LICENSE_END.match(line.strip()),
        itertools.chain(sample, lines),
    )
    blocks = lines if is_full is None else _unwrapped(lines, is_full)
    return _without_headings(_continued(map(_cleaned, blocks)), counts)


def _find_wrap(lines):
    """Returns how lines are wrapped, or None if each line is a paragraph.

    The result is a function that says whether a paragraph may continue from a line on
    the one that follows. In wrapped text, a line ends where the next word does not fit.
    In text that was wrapped by hand, lines may end before the width is used up, and
    most of them end in the middle of a sentence.
    """
    sizes = [len(line) for line in lines if line]
    if len(sizes) < _MIN_LINES or (most := np.percentile(sizes, 95)) > _WIDEST_WRAP:
        return None
    width = int(most)

    def is_full(line, following):
        following = following.lstrip()
        word = following[:1] if _NO_SPACE.match(following) else following.split()[0]
        return len(line) + 1 + len(word) >= width - _TOLERANCE

    pairs = [(a, b) for a, b in itertools.pairwise(lines) if a and b]
    if sum(itertools.starmap(is_full, pairs)) > _FULL_SHARE * len(pairs):
        return is_full
    if sum(not _END.search(line) for line, _ in pairs) > _OPEN_SHARE * len(pairs):
        return lambda line, _: len(line) >= _RAGGED_SHARE * width
    return None


def _unwrapped(lines, is_full):
    """Yields lines joined into blocks."""
    block: list[str] = []
    for line, following in itertools.pairwise(itertools.chain(lines, [""])):
        if line:
            block.append(line.strip())
        if not block:
            continue
        ends = not line or not following or following[0].isspace() > line[0].isspace()
        if not ends and not is_full(line, following):
            # The first line of a paragraph is full, unless it is the only one.
            ends = len(block) == 1 or bool(_END.search(line))
            ends = ends and not line.endswith((",", ";"))
        if ends:
            yield _joined(block)
            block = []


def _continued(blocks):
    """Yields blocks; one that starts in lower case is joined to the previous block."""
    held = ""
    for block in filter(None, blocks):
        if held and len(held) < _MAX_JOINED and _goes_on(held, block):
            held = _joined([held, block])
            continue
        if held:
            yield held
        held = block
    if held:
        yield held


def _goes_on(held, block):
    if not (block[0].islower() or block[0] in ",;"):
        return False
    return not (_END.search(held) or is_heading(held))


def _joined(block):
    text = block[0]
    for line in block[1:]:
        # Avoids "half- hour" and "word-- word".
        is_glued = text.endswith(("-", "—")) and text[-2:-1].strip()
        if is_glued or (_NO_SPACE.match(text[-1]) and _NO_SPACE.match(line)):
            text += line
        else:
            text += " " + line
    return text


def _cleaned(block):
    if "[" in block:
        block = _ILLUSTRATION.sub(" ", block)
    if "_" in block:
        block = _EMPHASIS.sub(r"\1", block)
    return " ".join(block.split())


def _without_headings(blocks, counts):
    after_heading = False
    for text in filter(None, blocks):
        after_heading = is_heading(text) or (
            after_heading and not _END.search(text) and _is_short_title(text)
        )
        counts["headings"] += after_heading
        if not after_heading:
            yield text


def is_heading(text: str) -> bool:
    """Returns whether a paragraph is a heading: numbered, ornamental or in capitals."""
    if len(text) > _MAX_HEADING:
        return False
    if _ORNAMENT.match(text) or _NUMBERED.match(text):
        return True
    if text.endswith(("!", "?", ",", ";", '"', "”", "'", "’")):
        return False
    return text == text.upper() and sum(c != c.lower() for c in text) > 1


def _is_short_title(text):
    """Returns whether a text may be a title; never so in scripts without case."""
    is_credit = text.lower().startswith(
        ("by ", "translated ", "illustrated ", "edited ")
    )
    return len(text) <= _MAX_HEADING and (is_credit or text[0] != text[0].lower())
