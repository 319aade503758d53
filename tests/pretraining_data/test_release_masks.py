import random

import pytest

from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_masks
from bert_tf.tokenization import vocabulary as vocabulary_module

VOCABULARY = vocabulary_module.Vocabulary(
    [*vocabulary_module.SPECIAL_TOKENS, "un", "##aff", "##able", "man", "##s", "go"]
)


class InOrder(random.Random):
    """Leaves the order as it is."""

    def shuffle(self, items):
        pass


def mask(tokens, **flags):
    """Masks positions in their order, and keeps their pieces."""
    options = pretraining_data_options.of_arguments(
        mask_share=0.0, same_share=1.0, random_share=0.0, **flags
    )
    return release_masks.mask(tokens.split(), InOrder(), VOCABULARY, options)


@pytest.mark.parametrize(
    "length, wanted",
    [
        (128, 19),
        (3, 1),  # At least one.
        (50, 8),  # 7.5 is rounded to the even number,
        (30, 4),  # and so is 4.5.
    ],
)
def test_the_number_of_predictions_is_rounded_as_python_does(length, wanted):
    assert release_masks.num_wanted(length, 0.15) == wanted


def test_special_tokens_are_no_candidates():
    text = "[CLS] un ##aff [SEP] man [SEP]"
    assert mask(text, masked_lm_prob=1.0) == (text.split(), [1, 2, 4])
    _, positions = mask(
        "[CLS] un go [SEP]", masked_lm_prob=1.0, max_predictions_per_seq=1
    )
    assert positions == [1]


@pytest.mark.parametrize(
    "tokens, prob, positions",
    [
        # Six pieces, three wanted: the first word has three.
        ("[CLS] un ##aff ##able man [SEP]", 0.5, [1, 2, 3]),
        # Two wanted: a word that is too large is skipped for a later one.
        ("[CLS] un ##aff ##able man [SEP]", 0.34, [4]),
        # A word continues after a [SEP], as in 2018.
        ("[CLS] man [SEP] ##s go [SEP]", 0.34, [1, 3]),
        # Nothing before it: a separate word.
        ("[CLS] ##s go [SEP]", 0.25, [1]),
    ],
)
def test_whole_words_are_chosen_together(tokens, prob, positions):
    masked = mask(tokens, masked_lm_prob=prob, do_whole_word_mask=True)
    assert masked == (tokens.split(), positions)
