import random

from bert_tf.pretraining_data import release_sampling

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
