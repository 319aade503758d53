"""Masks and scores of texts in one call, on the recorded model."""

import pytest

import bert_tf

TEXTS = ["the [MASK] dance", "the bee and the lamp keep [MASK] [MASK] form", "[MASK]"]
WHOLE = ["the bee", "the lamp is slow and keep form", "summer form"]


@pytest.fixture(scope="module")
def released(copy_release, tmp_path_factory):
    return str(copy_release(tmp_path_factory.mktemp("release") / "released"))


@pytest.fixture(scope="module")
def model(released):
    return bert_tf.load(released, head="masked_lm")


def test_masks_are_filled_as_by_the_loaded_model(released, model, reported):
    answers = bert_tf.fill_masks(released, iter(TEXTS), 2, batch_size=2)
    assert [len(answer["masks"]) for answer in answers] == [1, 2, 1]
    for answer, text in zip(answers, TEXTS, strict=True):
        [expected] = model.predict([text], top_k=2)
        for mask, other in zip(answer["masks"], expected["masks"], strict=True):
            for one, same in zip(mask, other, strict=True):
                probability = pytest.approx(same["probability"], rel=1e-3)
                assert one["probability"] == probability
    assert ("predict", 3, 3) in reported


def test_scores_are_in_the_order_of_the_texts(released, model):
    answers = bert_tf.score_texts(released, iter(WHOLE), batch_size=3)
    for answer, text in zip(answers, WHOLE, strict=True):
        [expected] = model.score([text])
        assert answer["pieces"][0]["token"] == expected["pieces"][0]["token"]
        for name in ("pseudo_log_likelihood", "per_piece"):
            assert answer[name] == pytest.approx(expected[name], rel=1e-4)
    assert bert_tf.score_texts(released, []) == []


def test_all_texts_are_checked_before_any_is_computed(released, reported):
    with pytest.raises(ValueError, match="Input 1: The text '' has no word pieces"):
        bert_tf.score_texts(released, ["the bee", ""], batch_size=1)
    assert not reported


@pytest.mark.parametrize(
    "function, texts, message",
    [
        (bert_tf.fill_masks, "the [MASK]", "Expected a list of texts.*got one string"),
        (bert_tf.score_texts, ["the [MASK]"], r"Cannot score a text with \[MASK\]"),
        (bert_tf.score_texts, ["a", "the " * 99], "Input 1: The text has 101 word p"),
        (bert_tf.score_texts, ["a", 7], "Input 1 is 7; expected a text"),
    ],
)
def test_unsuitable_texts_are_refused(released, function, texts, message):
    with pytest.raises(ValueError, match=message):
        function(released, texts)
