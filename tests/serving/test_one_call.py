"""Vectors, masks and scores of texts in one call, on the recorded model."""

import numpy as np
import pytest

import bert_tf
from bert_tf.data import packing
from bert_tf.modeling import pooling
from tests.checkpoints.foreign import sentence_transformers_folders as folders

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
        (bert_tf.embed, "one text", "Expected a list of texts, got one string"),
        (bert_tf.embed, {"text": ["a"]}, r"got a dict, .* such as table\['text'\]"),
        (bert_tf.embed, ["a", 7], "Input 1 is 7; expected a text"),
    ],
)
def test_unsuitable_texts_are_refused(released, function, texts, message):
    with pytest.raises(ValueError, match=message):
        function(released, texts)


def test_embed_gives_normalized_means_in_the_order_of_the_texts(
    released, reported, caplog
):
    long = "the bee dance its summer form and keep plan out of two clock wheel"
    texts = [long, "the bee", *["the lamp is slow"] * 3]
    config = bert_tf.BertConfig.from_json_file(f"{released}/bert_config.json")
    encoder = bert_tf.BertModel(config)
    bert_tf.load_checkpoint(encoder, released)
    tokenizer = bert_tf.FullTokenizer(f"{released}/vocab.txt")
    features = packing.pack(tokenizer, texts, max_seq_length=32)
    means = pooling.pool(encoder(features), features["input_mask"], "mean")
    expected = np.asarray(pooling.normalize(means))
    vectors = bert_tf.embed(released, iter(texts), batch_size=2)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert reported[-1] == ("embed texts", 5, 5)
    half = bert_tf.embed(released, texts, dtype="mixed_bfloat16")
    assert half.dtype == np.float32
    np.testing.assert_allclose((half * expected).sum(axis=1), 1, atol=0.02)
    same = bert_tf.embed(released, texts, dtype="bfloat16")
    np.testing.assert_array_equal(same, half)
    assert bert_tf.embed(released, []).shape == (0, 16)
    assert "truncated" not in caplog.text
    bert_tf.embed(released, [long, "the " * 99])
    assert "1 of 2 texts" in caplog.text


def test_embed_and_load_compute_with_openvino(released):
    pytest.importorskip("openvino", reason="pip install openvino")
    expected = bert_tf.embed(released, WHOLE)
    vectors = bert_tf.embed(released, WHOLE, backend="openvino")
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    encoder = bert_tf.load(released, head="encoder", backend="openvino")
    np.testing.assert_allclose(encoder.embed(WHOLE[1:]), expected[1:], atol=1e-4)
    half = bert_tf.embed(released, WHOLE, backend="openvino", dtype="bfloat16")
    np.testing.assert_allclose((half * expected).sum(axis=1), 1, atol=0.02)


@pytest.mark.parametrize("name", ["default_prompt", "prompts"])
def test_embed_puts_the_default_prompt_before_a_text(tmp_path, name):
    folder = folders.create(tmp_path / name, name, folders.OLD)
    vectors = bert_tf.embed(folder, folders.texts(folders.OLD)["texts"])
    expected = folders.expected(name, folders.OLD)
    assert folders.least_cosine(vectors, expected) > 0.999999


def test_embed_refuses_a_ranker(tmp_path):
    folder = folders.create(tmp_path / "ranker", "ranker_short", folders.NEW)
    with pytest.raises(ValueError, match="scores pairs of texts and has no vectors"):
        bert_tf.embed(folder, ["the cat"])
