"""Rows and masks: what is chosen, what replaces it, and that the graph agrees."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.pretraining_data import graph_arrays
from bert_tf.pretraining_data import numpy_arrays
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import rows as rows_module
from bert_tf.tokenization import vocabulary as vocabulary_module

SPECIAL = vocabulary_module.SPECIAL_TOKENS
ROWS, LENGTH = 2000, 12
ONLY_RANDOM = {"mask_share": 0.0, "same_share": 0.0, "random_share": 1.0}
ARRAYS = numpy_arrays


def sampler(num_words, **arguments):
    vocabulary = vocabulary_module.Vocabulary(
        [*SPECIAL, *(f"word{n}" for n in range(num_words))]
    )
    options = pretraining_data_options.of_arguments(
        max_seq_length=LENGTH,
        max_predictions_per_seq=LENGTH,
        **{"masked_lm_prob": 0.5, **arguments},
    )
    return vocabulary, rows_module.MaskSampler(ARRAYS, vocabulary, options)


def masked(masks, ids, draws=None, starts_word=None):
    return masks.mask(
        ids,
        np.ones(ids.shape, bool),
        np.full(len(ids), ids.shape[1]),
        draws or numpy_arrays.Draws(1),
        np.ones(ids.shape, bool) if starts_word is None else starts_word,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_whole_word_mask": True},
        {"masking": "span"},
        {"next_sentence": False},
        # Sort keys of 64 bits.
        {"max_seq_length": 4500, "max_predictions_per_seq": 600},
    ],
)
def test_the_graph_makes_the_rows_that_numpy_makes(options):
    vocabulary = vocabulary_module.Vocabulary(
        [*SPECIAL, *(f"{kind}{n}" for n in range(50) for kind in ("", "##"))]
    )
    options = pretraining_data_options.of_arguments(**{"max_seq_length": 64, **options})
    # Pairs of all lengths, some of which begin inside a word.
    random = np.random.default_rng(1)
    longest = (options.max_seq_length - 3) // 2
    columns = [random.integers(0, 5000, 300), random.integers(1, longest, 300)] * 2
    pairs = pairs_module.Pairs(*columns, random.integers(0, 2, 300) > 0)
    ids = random.integers(5, len(vocabulary), 10_000, np.int32)
    text = pairs_module.Text(ids=ids, sentence_starts=None, document_starts=None)
    keys = graph_arrays.row_keys(1, 0, rows=tf.range(300)).numpy()

    def rows(arrays, text, pairs, keys):
        maker = rows_module.RowMaker(arrays, vocabulary, options)
        return maker.rows(text, pairs, numpy_arrays.RowDraws(arrays, keys))

    expected = rows(ARRAYS, text, pairs, keys)
    in_graph = tf.function(
        lambda keys: rows(
            graph_arrays,
            text._replace(ids=tf.constant(ids)),
            pairs_module.Pairs(*map(tf.constant, pairs)),
            keys,
        ),
        autograph=False,
    )(tf.constant(keys))
    assert in_graph.keys() == expected.keys()
    assert expected["masked_lm_weights"].sum() > 300
    for name, values in expected.items():
        np.testing.assert_array_equal(in_graph[name].numpy(), values, err_msg=name)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_piece_of_the_vocabulary_is_a_random_replacement(seed):
    vocabulary, masks = sampler(3, **ONLY_RANDOM, masked_lm_prob=1.0)
    ids = np.full((ROWS, LENGTH), vocabulary.unk_id, np.int32)
    replaced = masked(masks, ids, numpy_arrays.Draws(seed))["input_ids"]
    assert set(replaced.ravel()) == set(range(len(vocabulary)))


def test_all_words_of_a_span_share_one_fate(monkeypatch):
    spans = []
    choose_spans = rows_module.choose_spans

    def record(*arguments):
        spans.append(choose_spans(*arguments))
        return spans[-1]

    monkeypatch.setattr(rows_module, "choose_spans", record)
    # So many words that a random one is neither the mask nor the word itself.
    vocabulary, masks = sampler(100_000, masking="span")
    ids = np.tile(
        np.arange(len(SPECIAL), len(SPECIAL) + LENGTH, dtype=np.int32), (ROWS, 1)
    )
    replaced = masked(masks, ids)["input_ids"]
    fate = np.where(replaced == vocabulary.mask_id, "mask", "random")
    fate[replaced == ids] = "same"
    [(is_chosen, first_of)] = spans
    fates, most_words = {}, 0
    for row in range(ROWS):
        for first in np.unique(first_of[row, is_chosen[row]]):
            span = is_chosen[row] & (first_of[row] == first)
            [one] = set(fate[row, span])
            fates.setdefault(first, set()).add(one)
            most_words = max(most_words, span.sum())
    assert most_words == 6  # Half of the row.
    # Spans at the same position of other rows are drawn independently.
    assert fates[0] == {"mask", "same", "random"}


def test_the_words_of_a_random_span_are_different_words():
    _, masks = sampler(100_000, masking="span", **ONLY_RANDOM, masked_lm_prob=1.0)
    replaced = masked(masks, np.full((10, LENGTH), 5, np.int32))["input_ids"]
    assert all(len(set(row)) == LENGTH for row in replaced)


def test_the_pieces_of_a_word_are_replaced_independently():
    vocabulary, masks = sampler(10, do_whole_word_mask=True, masked_lm_prob=1.0)
    ids = np.full((ROWS, 2), 7, np.int32)
    starts_word = np.tile([True, False], (ROWS, 1))
    replaced = masked(masks, ids, starts_word=starts_word)["input_ids"]
    is_mask = replaced == vocabulary.mask_id
    # .8 for each piece, so 2 * .8 * .2 for words with one mask and another piece.
    assert np.mean(is_mask[:, 0] != is_mask[:, 1]) == pytest.approx(0.32, abs=0.05)


def choose_spans(num_wanted, words, is_candidate):
    return rows_module.choose_spans(
        ARRAYS,
        words,
        is_candidate,
        np.full(len(is_candidate), num_wanted),
        numpy_arrays.Draws(1),
    )


def words_of_two(rows, length):
    """Every word has two pieces."""
    word = np.tile(np.arange(length) // 2, (rows, 1))
    sizes = np.zeros((rows, length), np.int64)
    sizes[:, : length // 2] = 2
    return rows_module.Words(word, sizes)


def test_lengths_of_spans_are_geometric_up_to_ten_words():
    words = words_of_two(4000, 400)
    # So few that spans seldom meet, and the first one is never cut short.
    is_chosen, firsts = choose_spans(20, words, np.ones(words.word.shape, bool))
    lengths = []
    for first, is_in_span in zip(firsts, is_chosen, strict=True):
        counts = np.unique(first[is_in_span], return_counts=True)[1]
        assert (counts % 2 == 0).all()  # Whole words.
        lengths += [count // 2 for count in counts]
    # The rest of the last span of a row is shorter; long spans are too rare here.
    shares = np.bincount(lengths, minlength=11)[1:] / len(lengths)
    ratios = shares[1:4] / shares[:3]
    assert shares.argmax() == 0
    np.testing.assert_allclose(ratios, 1 - rows_module.LENGTH_PARAMETER, atol=0.15)
    assert max(lengths) == rows_module.MAX_WORDS
    assert (is_chosen.sum(axis=1) == 20).all()


def test_a_span_ends_with_its_segment_and_leaves_no_word_split():
    # [CLS] 0 0 1 [SEP] 2 3 3 3 [SEP]: words of 2, 1, 1 and 3 pieces.
    word = np.array([[0, 0, 0, 1, 1, 2, 3, 3, 3, 3]] * ROWS)
    sizes = np.zeros((ROWS, 10), np.int64)
    sizes[:, :4] = [2, 1, 1, 3]
    is_candidate = np.ones((ROWS, 10), bool)
    is_candidate[:, [0, 4, 9]] = False
    is_chosen, firsts = choose_spans(4, rows_module.Words(word, sizes), is_candidate)
    taken = {
        (tuple(np.flatnonzero(row)), tuple(first[row]))
        for row, first in zip(is_chosen, firsts, strict=True)
    }
    # Word 1 may go on with a span of word 0, word 2 after the [SEP] may not.
    assert taken == {
        ((1, 2, 3, 5), (1, 1, 1, 5)),
        ((1, 2, 3, 5), (1, 1, 3, 5)),
        ((3, 6, 7, 8), (3, 6, 6, 6)),
        ((5, 6, 7, 8), (5, 5, 5, 5)),
        ((5, 6, 7, 8), (5, 6, 6, 6)),
    }


def test_rows_without_candidates_have_no_spans():
    words = words_of_two(2, 8)
    words = words._replace(sizes=0 * words.sizes)
    assert not choose_spans(4, words, np.zeros((2, 8), bool))[0].any()


WORDS = [3527068094297800258, 5648030432468382359]


def test_the_stream_is_what_it_has_always_been():
    # Files made under another version of NumPy must come out the same.
    assert numpy_arrays.Draws(12345, 0).words(2).tolist() == WORDS
    assert numpy_arrays.Draws(12345, 1).words(2).tolist() != WORDS


def test_numbers_below_a_limit_are_even():
    numbers = numpy_arrays.Draws(1).below(np.full(60_000, 6))
    counts = np.bincount(numbers, minlength=6)
    assert len(counts) == 6
    assert np.abs(counts - 10_000).max() < 5 * 91  # Five deviations.


def test_heads_have_the_mean_and_spread_of_coins():
    numbers = np.array([0, 1, 5, 64, 65, 200])
    tosses = numpy_arrays.Draws(2).heads(np.tile(numbers, 4000)).reshape(4000, 6)
    assert (tosses >= 0).all()
    assert (tosses <= numbers).all()
    deviation = np.sqrt(numbers) / 2
    assert (np.abs(tosses.mean(axis=0) - numbers / 2) <= 5 * deviation / 63).all()
    np.testing.assert_allclose(tosses.std(axis=0), deviation, rtol=0.06)
