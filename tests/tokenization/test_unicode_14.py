"""bert_tf/tokenization/unicode_14.txt is what the Unicode Character Database says.

To write the file again (from a Python whose `unicodedata` is version 14.0):
`python tests/tokenization/test_unicode_14.py > bert_tf/tokenization/unicode_14.txt`.
"""

import itertools
import pathlib
import sys
import textwrap
import unicodedata

import pytest

from bert_tf.tokenization import unicode_14

HEADER = """\
# Properties of characters in Unicode 14.0, as far as the tokenizers use them.
# Derived from the Unicode Character Database, (c) Unicode, Inc., Unicode License.
# Numbers are hexadecimal. A range A-B/2 means every second code point.
"""
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)  # Their decompositions are computed.
KEPT_CONTROLS = "\t\n\r"
CAPITAL_SIGMA = "\u03a3"
FINAL_SIGMA = "\u03c2"


def ranges(codes):
    """Returns "A-B" texts for sorted code points; runs of every second one as A-B/2."""
    codes = sorted(codes)
    texts = []
    while codes:
        length = run_length(codes, step=1)
        step = 1
        if length == 1 and run_length(codes, step=2) > 2:
            length, step = run_length(codes, step=2), 2
        first, last = codes[0], codes[length - 1]
        text = f"{first:04X}" if length == 1 else f"{first:04X}-{last:04X}"
        texts.append(text + ("/2" if step == 2 else ""))
        codes = codes[length:]
    return texts


def run_length(codes, *, step):
    length = 1
    while length < len(codes) and codes[length] == codes[length - 1] + step:
        length += 1
    return length


def is_cased(character):
    """Whether a capital sigma after it is final: cased and not case-ignorable."""
    return (character + CAPITAL_SIGMA).lower().endswith(FINAL_SIGMA)


def is_case_ignorable(character):
    final = ("A" + character + CAPITAL_SIGMA).lower().endswith(FINAL_SIGMA)
    return final and not is_cased(character)


def table():
    """Returns the file's content from the running Python's own `unicodedata`."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    category = {c: unicodedata.category(c) for c in characters}
    sets = {
        "control": (c for c in characters if category[c] in ("Cc", "Cf")),
        "space": (c for c in characters if category[c] == "Zs"),
        "punctuation": (c for c in characters if category[c].startswith("P")),
        "nonspacing_mark": (c for c in characters if category[c] == "Mn"),
        "cased": filter(is_cased, characters),
        "case_ignorable": filter(is_case_ignorable, characters),
    }
    lines = [(name, ranges(map(ord, members))) for name, members in sets.items()]
    lines += combining_classes(characters)
    lines += lower_cases(characters)
    lines.append(("decomposition", list(decompositions(characters))))
    wrapped = (
        textwrap.wrap(
            " ".join(values),
            width=88,
            initial_indent=f"{name} ",
            subsequent_indent=f"{name} ",
        )
        for name, values in lines
    )
    return HEADER + "".join(f"{line}\n" for line in itertools.chain(*wrapped))


def combining_classes(characters):
    classes = {}
    for character in characters:
        classes.setdefault(unicodedata.combining(character), []).append(ord(character))
    del classes[0]
    return [(f"class:{n}", ranges(codes)) for n, codes in sorted(classes.items())]


def lower_cases(characters):
    distances, several = {}, []
    for character in characters:
        lower = character.lower()
        if len(lower) > 1:
            several.append(mapping(character, lower))
        elif lower != character:
            distance = ord(lower) - ord(character)
            distances.setdefault(distance, []).append(ord(character))
    lines = [(f"lower:{n:+d}", ranges(codes)) for n, codes in sorted(distances.items())]
    return [*lines, ("lower", several)]


def decompositions(characters):
    for character in characters:
        decomposed = unicodedata.normalize("NFD", character)
        if decomposed != character and ord(character) not in HANGUL_SYLLABLES:
            yield mapping(character, decomposed)


def mapping(character, mapped):
    return f"{ord(character):04X}=" + "+".join(f"{ord(c):04X}" for c in mapped)


@pytest.mark.slow
@pytest.mark.skipif(
    unicodedata.unidata_version != "14.0.0",
    reason="only Python 3.11's unicodedata is Unicode 14.0, the reference",
)
def test_the_file_is_what_python_3_11_says():
    path = pathlib.Path(unicode_14.__file__).with_suffix(".txt")
    assert path.read_text(encoding="utf-8") == table()


if __name__ == "__main__":
    sys.stdout.write(table())
