import pytest

from bert_tf.data import label_names


@pytest.mark.parametrize(
    "one, other, is_same",
    [
        ("Praise", "praise", True),
        ("very  good", "Very good", True),
        ("1", "1.0", True),
        ("caf\u00e9", "cafe\u0301", True),  # Composed and decomposed Unicode.
        ("positive", "pos", False),
        ("1", "10", False),
        ("+0.50", "0.5", True),
        ("1.", "1", True),
        ("10", "10.0", True),
        ("1_0", "10", False),  # Python reads both as 10.
        ("01", "1", False),  # Different codes, as in ICD or NAICS.
        ("1e3", "1000", False),
        ("12345678901234567", "12345678901234568", False),  # The same as floats.
        ("no", "No.", False),
    ],
)
def test_spellings_of_one_name_have_one_key(one, other, is_same):
    assert (label_names.key(one) == label_names.key(other)) == is_same


@pytest.mark.parametrize(
    "name, is_missing",
    [("NaN", True), (" ", True), ("null", True), ("None", True), ("none", False)],
)
def test_signs_of_missing_values_are_known(name, is_missing):
    assert label_names.is_missing(name) == is_missing


def test_spellings_are_listed_by_frequency():
    counts = {"pos": 3, "Pos": 5, "neg": 1, "POS": 3}
    with pytest.raises(ValueError, match=r"'Pos' .5. and 'POS' .3. and 'pos' .3."):
        label_names.check_spellings("a.tsv", counts, "Correct them.")
