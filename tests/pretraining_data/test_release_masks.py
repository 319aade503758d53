import random

import pytest

from bert_tf.pretraining_data import release_masks
from bert_tf.tokenization import vocabulary as vocabulary_module

VOCABULARY = vocabulary_module.Vocabulary(
    [*vocabulary_module.SPECIAL_TOKENS, "un", "##aff", "##able", "man", "##s", "go"]
)


class Kept(random.Random):
    """Leaves order as it is and keeps every chosen piece."""

    def shuffle(self, items):
        pass

    def random(self):
        return 0.9 if self.is_second() else 0.4

    def __init__(self):
        super().__init__()
        self.count = 0

    def is_second(self):
        self.count += 1
        return self.count % 2 == 1


def mask(tokens, rng=None, **arguments):
    return release_masks.mask_tokens(
        tokens.split(),
        rng or Kept(),
        vocabulary=VOCABULARY,
        **{
            "masked_lm_prob": 0.5,
            "max_predictions": 20,
            "whole_words": False,
            "shares": release_masks.MaskShares(),
            **arguments,
        },
    )


@pytest.mark.parametrize(
    "length, prob, most, wanted",
    [
        (128, 0.15, 20, 19),
        (128, 0.15, 10, 10),  # No more than there are places for.
        (3, 0.15, 20, 1),  # At least one.
        (50, 0.15, 20, 8),  # 7.5 is rounded to the even number,
        (30, 0.15, 20, 4),  # and so is 4.5.
    ],
)
def test_num_predictions_rounds_as_python_does(length, prob, most, wanted):
    assert release_masks.num_predictions(length, prob, most) == wanted


def test_special_tokens_are_no_candidates():
    masked = mask("[CLS] un ##aff [SEP] man [SEP]", masked_lm_prob=1.0)
    assert masked.positions == (1, 2, 4)
    assert masked.labels == ("un", "##aff", "man")
    assert masked.tokens == ("[CLS]", "un", "##aff", "[SEP]", "man", "[SEP]")


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
