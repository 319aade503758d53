import random

import pytest

from bert_tf.pretraining_data import release_masks
from bert_tf.tokenization import vocabulary as vocabulary_module

VOCABULARY = vocabulary_module.Vocabulary(
    [*vocabulary_module.SPECIAL_TOKENS, "un", "##aff", "##able", "man", "##s", "go"]
)


class InOrder(random.Random):
    """Leaves the order as it is."""

    def shuffle(self, items):
        pass


def mask(tokens, *, masked_lm_prob, max_predictions=20, whole_words=False):
    """Masks positions in their order, and keeps their pieces."""
    return release_masks.mask_tokens(
        tokens.split(),
        InOrder(),
        vocabulary=VOCABULARY,
        masked_lm_prob=masked_lm_prob,
        max_predictions=max_predictions,
        whole_words=whole_words,
        shares=release_masks.MaskShares(mask=0.0, same=1.0, random=0.0),
    )


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
    masked = mask("[CLS] un ##aff [SEP] man [SEP]", masked_lm_prob=1.0)
    assert masked.positions == (1, 2, 4)
    assert masked.labels == ("un", "##aff", "man")
    assert masked.tokens == ("[CLS]", "un", "##aff", "[SEP]", "man", "[SEP]")
    limited = mask("[CLS] un go [SEP]", masked_lm_prob=1.0, max_predictions=1)
    assert limited.positions == (1,)


@pytest.mark.parametrize(
    "tokens, prob, positions",
    [
        # Six pieces, three wanted: the first word has three.
        ("[CLS] un ##aff ##able man [SEP]", 0.5, (1, 2, 3)),
        # Two wanted: a word that is too large is skipped for a later one.
        ("[CLS] un ##aff ##able man [SEP]", 0.34, (4,)),
        # A word continues after a [SEP], as in 2018.
        ("[CLS] man [SEP] ##s go [SEP]", 0.34, (1, 3)),
        # Nothing before it: a separate word.
        ("[CLS] ##s go [SEP]", 0.25, (1,)),
    ],
)
def test_whole_words_are_chosen_together(tokens, prob, positions):
    masked = mask(tokens, masked_lm_prob=prob, whole_words=True)
    assert masked.positions == positions
