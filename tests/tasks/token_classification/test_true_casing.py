import pytest

from bert_tf.tasks.token_classification import true_casing


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
    assert true_casing.is_all_capitals(words.split()) == is_all_capitals


def test_the_usual_form_is_the_most_frequent_away_from_starts_and_headlines():
    sentences = [
        "Win for them and win or Win",
        "WIN WIN WIN WIN",  # A headline.
        "Win and Win",  # One at the start.
        "the UN and the un and the UN",
        "the US and Rome",  # Rome is written so anyway.
    ]
    cases = true_casing.learned_cases([sentence.split() for sentence in sentences])
    assert cases["un"] == "UN"
    assert cases["us"] == "US"
    assert "rome" not in cases
    assert "win" not in cases  # win counts 1, Win 2: as it is written anyway.


def test_of_equally_frequent_forms_lower_case_is_usual():
    cases = true_casing.learned_cases([["x", "win", "Win"]])
    assert cases == {"win": "win"}


def test_only_sentences_in_capitals_are_changed():
    cases = {"get": "get", "un": "UN", "win": "win"}
    cased = true_casing.true_cased(["JAPAN", "GET", "UN", "WIN", "!"], cases)
    assert cased == ["Japan", "get", "UN", "win", "!"]
    as_they_were = ["Japan", "GET", "UN"]
    assert true_casing.true_cased(as_they_were, cases) == as_they_were
