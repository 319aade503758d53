import pytest

pytest.importorskip("sentencex")

from bert_tf.preparation import documents


@pytest.mark.parametrize(
    "language, text, expected",
    [
        # Abbreviations end nothing.
        (
            "en",
            "Mr. Hale met Dr. Lee. It was late.",
            ["Mr. Hale met Dr. Lee.", "It was late."],
        ),
        (
            "de",
            "Am 3. Mai kam Dr. Müller z.B. an. Gut.",
            ["Am 3. Mai kam Dr. Müller z.B. an.", "Gut."],
        ),
        # Speech of several sentences is not a single sentence.
        (
            "en",
            '"Yes. I am here. Why?" she said. Oh.',
            ['"Yes.', "I am here.", 'Why?" she said.', "Oh."],
        ),
        ("en", "'I know. It's late,' he said.", ["'I know.", "It's late,' he said."]),
        (
            "de",
            "Er rief: „Halt. Wer da?“ Still.",
            ["Er rief: „Halt.", "Wer da?“", "Still."],
        ),
        # An opening mark goes with what it opens.
        ("en", 'It was fun. "Open quote.', ["It was fun.", '"Open quote.']),
        # No spaces between sentences.
        ("zh", "我來了。你好嗎？", ["我來了。", "你好嗎？"]),
        ("ar", "مرحبا. كيف حالك؟ أنا بخير.", ["مرحبا.", "كيف حالك؟", "أنا بخير."]),
        ("hi", "मैं आया। तुम कैसे हो?", ["मैं आया।", "तुम कैसे हो?"]),
        # An unknown language gets the most common rules.
        ("xx", "One. Two.", ["One.", "Two."]),
        ("en", "", []),
    ],
)
def test_sentences_end_where_the_language_ends_them(language, text, expected):
    assert documents.split_sentences(text, language) == expected


@pytest.mark.parametrize(
    "text", ['A "b. c" d. "E? f! g" h.', "“a. “b. c” d.” 'e.' f", "…!"]
)
def test_no_character_but_space_is_lost(text):
    joined = "".join(documents.split_sentences(text, "en"))
    assert joined.replace(" ", "") == text.replace(" ", "")
