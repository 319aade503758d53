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


def test_chosen_pieces_become_mask_or_random_or_stay():
    tokens = "[CLS] " + "man " * 98 + "[SEP]"
    masked = mask(tokens, random.Random(1), masked_lm_prob=1.0, max_predictions=98)
    found = masked.tokens[1:-1]
    assert masked.labels == ("man",) * 98
    assert 60 < found.count("[MASK]") < 95
    assert set(found) > {"[MASK]", "man"}


def test_every_piece_of_the_vocabulary_is_a_random_replacement():
    only_random = release_masks.MaskShares(mask=0.0, same=0.0, random=1.0)
    rng = random.Random(1)
    seen = {
        mask("[CLS] un [SEP]", rng, shares=only_random).tokens[1] for _ in range(500)
    }
    assert seen == set(VOCABULARY.tokens)


def test_the_pieces_of_a_word_are_replaced_independently():
    rng = random.Random(1)
    words = {
        mask("[CLS] un ##aff ##able [SEP]", rng, whole_words=True, masked_lm_prob=0.6)
        for _ in range(500)
    }
    assert {word.positions for word in words} == {(1, 2, 3)}
    mixed = ("[MASK]", "##aff", "[MASK]")
    assert mixed in {word.tokens[1:4] for word in words}
