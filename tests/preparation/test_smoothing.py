import numpy as np

from bert_tf.preparation import smoothing


def _copies(sizes, exponent, seed=1):
    """Returns copies of documents of 10 characters; sizes: documents per language."""
    languages = np.repeat(np.arange(len(sizes)), sizes)
    codes = [f"l{number}" for number in range(len(sizes))]
    characters = np.full(len(languages), 10)
    return languages, smoothing.copies(
        languages, characters, codes, exponent=exponent, seed=seed
    )


def test_shares_are_those_of_the_power_and_the_size_stays():
    languages, copies = _copies([10_000, 1_000, 10], 0.7)
    taken = np.bincount(languages, copies)
    weights = np.array([10_000, 1_000, 10]) ** 0.7
    expected = weights / weights.sum() * 11_010
    np.testing.assert_allclose(taken, expected, atol=1)


def test_an_exponent_of_one_takes_everything_once_and_zero_makes_shares_equal():
    assert (_copies([50, 5], 1.0)[1] == 1).all()
    languages, copies = _copies([90, 10], 0.0)
    assert abs(np.bincount(languages, copies) - 50).max() <= 1


def test_within_a_language_copies_differ_by_one_at_most_and_are_spread_evenly():
    languages, copies = _copies([1000, 10], 0.7)
    small = copies[languages == 1]
    assert small.max() - small.min() <= 1
    halves = copies[:1000].reshape(2, 500).sum(axis=1)
    assert abs(halves[0] - halves[1]) <= 1


def test_the_seed_draws_which_documents_and_not_how_many():
    languages, first = _copies([1000, 10], 0.7, seed=1)
    _, second = _copies([1000, 10], 0.7, seed=2)
    assert (first != second).any()
    taken = [np.bincount(languages, copies) for copies in (first, second)]
    assert abs(taken[0] - taken[1]).max() <= 1
