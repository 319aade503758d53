import collections

import pytest

pytest.importorskip("mwparserfromhell")

from bert_tf.preparation import wikitext


@pytest.mark.parametrize(
    "markup, expected",
    [
        ("'''Ada''' was a ''[[poet]]ic'' [[mind|genius]].", "Ada was a poetic genius."),
        ("A<ref name=x>note [[y]]</ref> b<ref name=x /> c.", "A b c."),
        ("A {{convert|5|km}}b {{a|{{b}}}}c.", "A b c."),
        ("Ada ({{IPA|eda}}; born 1815) and ({{IPA|x}}) b.", "Ada (born 1815) and b."),
        ("[[File:a.jpg|thumb|A [[caption]].]]Text.", "Text."),
        ("[[Datei:a.jpg|mini|Bild]]Text.", "Text."),
        ("[[ファイル:a.jpg|thumb]]Text.", "Text."),
        ("Text.[[Category:Poets]][[de:Ada]]", "Text."),
        ("The [[:Category:Poets|poets]].", "The poets."),
        ("See [http://x.org the site] and [http://y.org] z.", "See the site and z."),
        ("A &ndash; b&nbsp;c &lt;d&gt;.", "A – b c <d>."),
        ("A<!-- hidden --> b.__NOTOC__", "A b."),
        ("E<sup>2</sup> is <math>x^2</math> ok.", "E2 is ok."),
        ("* list\n** list\n# list\n: indented\n; term\nText.", "Text."),
        ('{| class="wikitable"\n! h\n|-\n| cell || {{x}}\n|}\nText.', "Text."),
        ("<gallery>\nFile:a.jpg|x\n</gallery>Text.", "Text."),
        ("Broken ''italic and {{template\nText.", "Broken italic and\nText."),
        ("{{Infobox\n| a = b\n| c = {{d}}\n}}\nText.", "Text."),
        ("One.\n\nTwo.", "One.\nTwo."),
    ],
)
def test_only_running_text_stays(markup, expected):
    counts = collections.Counter()
    assert "\n".join(wikitext.paragraphs(markup, counts)) == expected


def test_headers_go_and_are_counted():
    counts = collections.Counter()
    text = "A.\n== Life ==\nB.\n=== See also ===\n* [[C]]"
    assert wikitext.paragraphs(text, counts) == ["A.", "B."]
    assert counts["headings"] == 2
