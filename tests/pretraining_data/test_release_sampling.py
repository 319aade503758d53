import random

import pytest

from bert_tf import options as options_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_sampling
from bert_tf.tokenization import vocabulary as vocabulary_module

DOCUMENTS = [
    [[f"{name}{sentence}{piece}" for piece in "xyz"] for sentence in range(6)]
    for name in "abc"
]


class ScriptedRandom(random.Random):
    """Gives the numbers of a script, and keeps what was asked for."""

    def __init__(self, *numbers):
        super().__init__()
        self.numbers = list(numbers)
        self.asked = []

    def random(self):
        self.asked.append("random")
        return self.numbers.pop(0)

    def randint(self, low, high):
        self.asked.append((low, high))
        return self.numbers.pop(0)


def pairs(*numbers, max_tokens=6, document=0):
    rng = ScriptedRandom(*numbers)
    sampler = release_sampling.PairSampler(
        DOCUMENTS, rng, max_tokens=max_tokens, short_seq_prob=0.1
    )
    return sampler.pairs(document), rng


def joined(tokens):
    return " ".join(tokens)


def test_a_chunk_is_split_into_two_segments_that_follow_one_another():
    # Not short; A ends after one sentence of two; B is not random.
    found, rng = pairs(0.5, 1, 0.5)
    pair = next(found)
    assert joined(pair.tokens_a) == "a0x a0y a0z"
    assert joined(pair.tokens_b) == "a1x a1y a1z"
    assert not pair.is_random_next
    assert rng.asked == ["random", (1, 1), "random"]


def test_a_random_segment_gives_back_the_sentences_it_replaced():
    # Random B: this document is drawn first and drawn again; from its last sentence.
    found, rng = pairs(0.5, 1, 0.4, 0, 2, 5, 1, 0.5)
    pair = next(found)
    assert joined(pair.tokens_a) == "a0x a0y a0z"
    assert joined(pair.tokens_b) == "c5x c5y c5z"
    assert pair.is_random_next
    assert rng.asked[3:] == [(0, 2), (0, 2), (0, 5)]
    assert joined(next(found).tokens_a) == "a1x a1y a1z"


def test_a_short_target_makes_chunks_of_one_sentence_which_are_random_without_a_draw():
    found, rng = pairs(0.05, 2, 1, 3)
    pair = next(found)
    assert joined(pair.tokens_a) == "a0x a0y a0z"
    assert joined(pair.tokens_b) == "b3x b3y b3z"
    assert rng.asked == ["random", (2, 6), (0, 2), (0, 5)]


def test_the_longer_segment_loses_its_first_or_last_piece():
    # Chunk of two sentences for five places: equal, so B gives way, at its start.
    found, _ = pairs(0.5, 1, 0.5, 0.4, max_tokens=5)
    pair = next(found)
    assert joined(pair.tokens_a) == "a0x a0y a0z"
    assert joined(pair.tokens_b) == "a1y a1z"


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
    return release_sampling.mask(tokens.split(), InOrder(), VOCABULARY, options)


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
    assert pretraining_data_options.num_wanted(length, 0.15) == wanted


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


def created(**values):
    return pretraining_data_options.CreatePretrainingDataOptions(
        input_file="a", output_file="b", vocab_file="c", **values
    )


def test_the_default_is_the_papers():
    assert created().shares == pretraining_data_options.MaskShares(
        mask=0.8, same=0.1, random=0.1
    )
    # What the release draws of the pieces that are not masked; exactly, since its
    # records are to come out byte for byte.
    assert created().shares.same_of_rest == 0.5
    assert (
        pretraining_data_options.MaskShares(mask=1.0, same=0.0, random=0.0).same_of_rest
        == 0.0
    )


@pytest.mark.parametrize(
    "shares, said",
    [
        ({"mask_share": 1.0}, "add up to 1.2, expected 1; set all three"),
        ({"random_share": 0.0, "same_share": 0.1}, "add up to 0.9"),
        ({"random_share": -0.1, "same_share": 0.3}, "--random_share"),
    ],
)
def test_shares_that_do_not_add_up_are_refused(shares, said):
    with pytest.raises(options_module.OptionError, match=said):
        created(**shares)
