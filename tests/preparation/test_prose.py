import collections

import pytest

from bert_tf.preparation import prose


def _paragraphs(text):
    counts = collections.Counter()
    return list(prose.paragraphs(text.split("\n"), counts)), counts["headings"]


WRAPPED = """\
The first paragraph of the text is wrapped at
forty-five columns or so, as many old texts
are, and ends with a short line.
The second has no blank line before it, yet it
begins where the line above was not full, for
a word more had room in it; and a half-
way house-- or two --stays whole here."""
BLANK_LINES = """\
Here lines end with phrases,
wherever the editor liked,
and paragraphs are parted by blank lines
so that nothing is lost.

"Yes," he said,
and went away from there
without another word to them."""


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            WRAPPED,
            [
                "The first paragraph of the text is wrapped at forty-five columns or "
                "so, as many old texts are, and ends with a short line.",
                "The second has no blank line before it, yet it begins where the line "
                "above was not full, for a word more had room in it; and a half-way "
                "house-- or two --stays whole here.",
            ],
        ),
        (
            BLANK_LINES,
            [
                "Here lines end with phrases, wherever the editor liked, and "
                "paragraphs are parted by blank lines so that nothing is lost.",
                '"Yes," he said, and went away from there without another word to '
                "them.",
            ],
        ),
        # A paragraph a line.
        (
            "One line here.\nAnother one.\nThird.",
            ["One line here.", "Another one.", "Third."],
        ),
        # Torn in two: the second half begins with a small letter.
        ("He drank\n\nacquavite, and left.", ["He drank acquavite, and left."]),
        # Scripts without case have no headings, and wrapped lines no spaces between.
        ("標題\n這是一個很長的句子。", ["標題", "這是一個很長的句子。"]),
        ("a\u00a0b\t c\u2028d.", ["a b c d."]),
        ("It was _very_ snake_case_name.", ["It was very snake_case_name."]),
        ("[Illustration: A ship.] The ship sailed.", ["The ship sailed."]),
        ("", []),
    ],
)
def test_paragraphs_are_joined_where_lines_were_wrapped(text, expected):
    assert _paragraphs(text)[0] == expected


def test_chapters_titles_and_licenses_are_left_out_and_counted():
    text = """\
The Project Gutenberg eBook of Something

*** START OF THE PROJECT GUTENBERG EBOOK SOMETHING ***

SOMETHING

by A. Writer

CHAPTER I.

The Beginning

It was a dark night, and nothing else was to be seen in the whole town.

* * *

He said nothing.

Chapter 2: In Which He Speaks

II

"HELP!" HE CRIED!

THE END

*** END OF THE PROJECT GUTENBERG EBOOK SOMETHING ***

Donations are gratefully accepted, and this is the licence."""
    paragraphs, headings = _paragraphs(text)
    assert paragraphs == [
        "It was a dark night, and nothing else was to be seen in the whole town.",
        "He said nothing.",
        '"HELP!" HE CRIED!',
    ]
    assert headings == 8


@pytest.mark.parametrize(
    "text, is_heading",
    [
        ("CHAPTER XII", True),
        ("Kapitel 3", True),
        ("Глава 2. Дом", True),
        ("XIV.", True),
        ("* * *", True),
        ("PREFACE TO THE SECOND EDITION", True),
        ("Part one of the plan was done.", False),  # A sentence; it ends like one.
        ("STOP!", False),  # Somebody shouts.
        ("I", True),  # The number.
        ("第一章", False),  # No case: nothing distinguishes it from text.
        ("Chapters are long here.", False),
    ],
)
def test_headings_are_distinguished_from_text(text, is_heading):
    assert prose.is_heading(text) == is_heading


def test_a_text_of_titles_alone_stays():
    assert _paragraphs("A Title\nAnother Title")[0] == ["A Title", "Another Title"]
