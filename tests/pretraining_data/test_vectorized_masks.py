"""Vectorized masks: what replaces the chosen pieces."""

import numpy as np
import pytest

from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import vectorized_masks
from bert_tf.tokenization import vocabulary as vocabulary_module

SPECIAL = vocabulary_module.SPECIAL_TOKENS
ROWS, LENGTH = 2000, 12
ONLY_RANDOM = {"mask_share": 0.0, "same_share": 0.0, "random_share": 1.0}


def sampler(num_words, **arguments):
    vocabulary = vocabulary_module.Vocabulary(
        [*SPECIAL, *(f"word{n}" for n in range(num_words))]
    )
    options = pretraining_data_options.of_arguments(
        max_seq_length=LENGTH,
        max_predictions_per_seq=LENGTH,
        **{"masked_lm_prob": 0.5, **arguments},
    )
    return vocabulary, vectorized_masks.MaskSampler(vocabulary, options)


def masked(masks, ids, draws=None, **arguments):
    return masks.mask(
        ids,
        np.ones(ids.shape, bool),
        np.full(len(ids), ids.shape[1]),
        draws or draws_module.Draws(1),
        **arguments,
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_every_piece_of_the_vocabulary_is_a_random_replacement(seed):
    vocabulary, masks = sampler(3, **ONLY_RANDOM, masked_lm_prob=1.0)
    ids = np.full((ROWS, LENGTH), vocabulary.unk_id, np.int32)
    found = masked(masks, ids, draws_module.Draws(seed))["input_ids"]
    assert set(found.ravel()) == set(range(len(vocabulary)))


def test_all_words_of_a_span_share_one_fate(monkeypatch):
    spans = []
    choose_spans = vectorized_masks.choose_spans

    def record(*arguments):
        spans.append(choose_spans(*arguments))
        return spans[-1]

    monkeypatch.setattr(vectorized_masks, "choose_spans", record)
    # So many words that a random one is neither the mask nor the word itself.
    vocabulary, masks = sampler(100_000, masking="span")
    ids = np.tile(
        np.arange(len(SPECIAL), len(SPECIAL) + LENGTH, dtype=np.int32), (ROWS, 1)
    )
    found = masked(masks, ids)["input_ids"]
    fate = np.where(found == vocabulary.mask_id, "mask", "random")
    fate[found == ids] = "same"
    [chosen] = spans
    fates, most_words = {}, 0
    for row in range(ROWS):
        for first in np.unique(chosen.first_place[row, chosen.is_chosen[row]]):
            span = chosen.is_chosen[row] & (chosen.first_place[row] == first)
            [one] = set(fate[row, span])
            fates.setdefault(first, set()).add(one)
            most_words = max(most_words, span.sum())
    assert most_words == 6  # Half of the row.
    # Spans at the same position of other rows are drawn independently.
    assert fates[0] == {"mask", "same", "random"}


def test_the_words_of_a_random_span_are_different_words():
    _, masks = sampler(100_000, masking="span", **ONLY_RANDOM, masked_lm_prob=1.0)
    found = masked(masks, np.full((10, LENGTH), 5, np.int32))["input_ids"]
    assert all(len(set(row)) == LENGTH for row in found)


def test_the_pieces_of_a_word_are_replaced_independently():
    vocabulary, masks = sampler(10, do_whole_word_mask=True, masked_lm_prob=1.0)
    ids = np.full((ROWS, 2), 7, np.int32)
    starts_word = np.tile([True, False], (ROWS, 1))
    found = masked(masks, ids, starts_word=starts_word)["input_ids"]
    is_mask = found == vocabulary.mask_id
    # .8 for each piece, so 2 * .8 * .2 for words with one mask and another piece.
    assert np.mean(is_mask[:, 0] != is_mask[:, 1]) == pytest.approx(0.32, abs=0.05)
