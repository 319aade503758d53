import collections

import numpy as np
import pytest

from bert_tf.data import hold_out


def texts_of(count):
    return [(f"text {number}",) for number in range(count)]


def test_the_share_holds_for_every_stratum():
    strata = [0] * 100 + [1] * 40 + [2] * 10
    chosen = hold_out.held_out(texts_of(150), strata, share=0.2, seed=1)
    counts = collections.Counter(np.array(strata)[chosen].tolist())
    assert counts == {0: 20, 1: 8, 2: 2}


def test_the_choice_depends_on_the_seed_alone():
    def choose(seed):
        return hold_out.held_out(texts_of(60), [0] * 60, share=0.25, seed=seed).tolist()

    assert choose(1) == choose(1)
    assert choose(1) != choose(2)
    assert sum(choose(2)) == 15


@pytest.mark.parametrize(
    "texts, num_held",
    [
        (
            [(f"{text} {n}",) for text in ("text", "TEXT") for n in range(30)],
            6,
        ),
        (
            [(f"premise {n // 3}", f"hypothesis {n % 50}") for n in range(90)],
            6,
        ),
    ],
)
def test_a_first_text_is_never_on_both_sides(texts, num_held):
    chosen = hold_out.held_out(texts, [0] * len(texts), share=0.2, seed=1)
    held, kept = set(), set()
    for example, is_held in zip(texts, chosen, strict=True):
        (held if is_held else kept).add(example[0].casefold())
    assert len(held) == num_held
    assert not held & kept


def test_a_large_group_stays_in_training():
    texts = [*texts_of(50), *[("the same text",)] * 50]
    chosen = hold_out.held_out(texts, [0] * 100, share=0.1, seed=1)
    assert np.sum(chosen) == 10
    assert not np.any(chosen[50:])


@pytest.mark.parametrize(
    "texts, share",
    [
        (texts_of(3), 0.1),  # Too few.
        ([("question", f"answer {n}") for n in range(20)], 0.2),  # All share a text.
    ],
)
def test_an_empty_hold_out_is_refused(texts, share):
    with pytest.raises(ValueError, match=r"holds out none: .* separate examples"):
        hold_out.held_out(texts, [0] * len(texts), share=share, seed=1)
