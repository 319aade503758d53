"""Plain text is divided into the words that a column file would have."""

import pytest

from bert_tf.tokenization import words as words_module

LEARNED = frozenset(["Corp.", "'s", "'90s", "(a)", "?!"])


@pytest.mark.parametrize(
    "text, words",
    [
        ("  ", ""),
        ("a\u00a0b\u3000c", "a b c"),  # Any white space.
        ("in Port-au-Prince.", "in Port-au-Prince ."),
        ('("Rome," he said)', '( " Rome , " he said )'),
        ("Don't!", "Don't !"),
        # The full stop of an abbreviation stays, also at the end of a sentence.
        ("the U.S., e.g. the U.S.", "the U.S. , e.g. the U.S."),
        ("a Ph.D. at 9 a.m.", "a Ph.D. at 9 a.m."),
        ("J. Doe has plan B.", "J. Doe has plan B ."),
        ("at example.com. 3.5.", "at example.com . 3.5 ."),
        # Equal marks are one word.
        ("Wait... ``what''?! --", "Wait ... `` what '' ? ! --"),
        ("Rome—the city…", "Rome — the city …"),
        # Neither Chinese nor Japanese has spaces between words.
        ("東京、2020年。iPhone，好", "東 京 、 2020 年 。 iPhone ， 好"),
        ("これは、ペンです。", "これは 、 ペンです 。"),
        # Words of the training data.
        ("Acme Corp., left", "Acme Corp. , left"),
        ("John's and Ana’s", "John 's and Ana ’s"),
        ("John 's (a) '90s", "John 's (a) '90s"),
        ("the U.S.'s", "the U.S. 's"),
        ("?! what?!", "?! what ? !"),
    ],
)
def test_only_outer_punctuation_is_taken_off(text, words):
    split = words_module.split_text(text, LEARNED)
    assert " ".join(split.words) == words
    places = zip(split.starts, split.ends, strict=True)
    assert tuple(text[start:end] for start, end in places) == split.words


def test_the_words_of_the_training_data_that_would_be_divided_are_learned():
    words = "Acme Corp. 's Lloyd's U.S. Port-au-Prince J. ... . ?! 日本 a—b :-)"
    learned = words_module.learned_whole_words([words.split(), ["Corp.", "New Bay,"]])
    assert learned == ("'s", ":-)", "?!", "Corp.", "J.", "Lloyd's")


# As in CoNLL-2003: the words of each sentence as they are written in a column file.
SENTENCES = (
    "U.N. official Ekeus heads for Baghdad .",
    "He said the U.S. 's envoy , J. Doe , left Port-au-Prince on 1996-08-22 .",
    "\" We do n't support any such recommendation , \" St. John's mayor said ( AP ) .",
    "SOCCER - JAPAN GET LUCKY WIN , CHINA IN SURPRISE DEFEAT .",
    "Acme Corp. rose 5 % to $ 3.50 -- its best since the '90s ...",
    "1. Jesper Parnevik ( Sweden ) 61 , Mr. O'Neill +1 , No. 7 in the U.S.",
)


def test_a_column_files_words_are_the_same_in_plain_text():
    learned = frozenset(words_module.learned_whole_words(map(str.split, SENTENCES)))
    for sentence in SENTENCES:
        found = words_module.split_text(sentence, learned)
        assert list(found.words) == sentence.split()
        # As people write it.
        text = sentence
        for mark in (" ,", " .", " )", " %", " 's", "( ", "$ "):
            text = text.replace(mark, mark.strip())
        found = words_module.split_text(text, learned)
        assert list(found.words) == sentence.split()


@pytest.mark.parametrize(
    "words, is_all_capitals",
    [
        ("SOCCER - JAPAN GET LUCKY WIN", True),
        ("LONDON 1996-08-30", False),  # One word: a dateline, and a name.
        ("AL-AIN , UAE 1996", True),
        ("UN GENEVA talks", False),
        ("1. 2. 3.", False),
        ("A B C", False),  # Letters, not words.
        ("日本 東京", False),  # No case at all.
    ],
)
def test_a_sentence_in_capitals_has_two_such_words_and_no_other(words, is_all_capitals):
    assert words_module.is_all_capitals(words.split()) == is_all_capitals


def test_the_usual_form_is_the_most_frequent_away_from_starts_and_headlines():
    sentences = [
        "Win for them and win or Win",
        "WIN WIN WIN WIN",  # A headline.
        "Win and Win",  # One at the start.
        "the UN and the un and the UN",
        "the US and Rome",  # Rome is written so anyway.
    ]
    cases = words_module.learned_cases([sentence.split() for sentence in sentences])
    assert cases["un"] == "UN"
    assert cases["us"] == "US"
    assert "rome" not in cases
    assert "win" not in cases  # win counts 1, Win 2: as it is written anyway.


def test_only_sentences_in_capitals_are_changed():
    cases = {"get": "get", "un": "UN", "win": "win"}
    cased = words_module.true_cased(["JAPAN", "GET", "UN", "WIN", "!"], cases)
    assert cased == ["Japan", "get", "UN", "win", "!"]
    as_they_were = ["Japan", "GET", "UN"]
    assert words_module.true_cased(as_they_were, cases) == as_they_were
