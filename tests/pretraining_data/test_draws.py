import numpy as np

from bert_tf.pretraining_data import draws as draws_module

WORDS = [3527068094297800258, 5648030432468382359]


def test_the_stream_is_what_it_has_always_been():
    # Files made under another version of NumPy must come out the same.
    assert draws_module.Draws(12345, 0).words(2).tolist() == WORDS
    assert draws_module.Draws(12345, 1).words(2).tolist() != WORDS


def test_numbers_below_a_limit_are_even():
    numbers = draws_module.Draws(1).below(np.full(60_000, 6))
    counts = np.bincount(numbers, minlength=6)
    assert len(counts) == 6
    assert np.abs(counts - 10_000).max() < 5 * 91  # Five deviations.


def test_heads_have_the_mean_and_spread_of_coins():
    numbers = np.array([0, 1, 5, 64, 65, 200])
    tosses = draws_module.Draws(2).heads(np.tile(numbers, 4000)).reshape(4000, 6)
    assert (tosses >= 0).all()
    assert (tosses <= numbers).all()
    deviation = np.sqrt(numbers) / 2
    assert (np.abs(tosses.mean(axis=0) - numbers / 2) <= 5 * deviation / 63).all()
    np.testing.assert_allclose(tosses.std(axis=0), deviation, rtol=0.06)
