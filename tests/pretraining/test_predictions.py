"""fill_mask: the words behind [MASK], and where it finds what it needs."""

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import predictor as mask_predictor
from bert_tf.tokenization import full

TEXT = "the [MASK] of [MASK]"


@pytest.fixture
def released(copy_release, tmp_path):
    """Folder with checkpoint, configuration and vocabulary beside each other."""
    return copy_release(tmp_path / "released")


@pytest.fixture(scope="module")
def predictor(copy_release, tmp_path_factory):
    folder = copy_release(tmp_path_factory.mktemp("release") / "released")
    settings = fine_tuning_predictor.LoadSettings(
        start=starting_point.find(str(folder)), batch_size=4
    )
    return mask_predictor.load(str(folder), settings)


def test_pairs_get_the_probability_that_the_second_text_follows(predictor, golden):
    vocabulary = predictor.vocabulary
    words = ["[CLS]", "the", "of", "[SEP]", "and", "[SEP]"]
    outputs = predictor.model(
        {
            "input_ids": np.array([[vocabulary[word] for word in words]], "int32"),
            "segment_ids": np.array([[0, 0, 0, 0, 1, 1]], "int32"),
            "masked_lm_positions": np.array([[0]], "int32"),
        }
    )
    logits = np.asarray(outputs["next_sentence_logits"][0], "float64")
    expected = np.exp(logits[0]) / np.exp(logits).sum()  # Class 0 follows.
    pair = ("the of", "and")
    answers = predictor.predict([TEXT, pair, ("and", "the"), TEXT, list(pair)])
    keys = [next(iter(answer)) for answer in answers]
    follows = "next_sentence_probability"
    assert keys == ["masks", follows, follows, "masks", follows]
    for answer in (answers[1], answers[4]):
        assert answer[follows] == pytest.approx(expected, abs=1e-6)


def test_a_model_without_a_next_sentence_head_refuses_pairs(released):
    predictor = bert_tf.load(released, head="masked_lm")
    with pytest.raises(ValueError, match="Input 1: The model has no next-sentence"):
        predictor.predict([TEXT, ("the", "of")])


def as_table(mask):
    return {one["token"]: one["probability"] for one in mask}


def test_the_probabilities_are_those_of_the_model(predictor, golden):
    folder = golden / "model"
    model = pretrainer.BertPretrainer(
        config_module.BertConfig.from_json_file(folder / "bert_config.json")
    )
    model.build()
    loading.load_checkpoint(model, str(folder / "bert_model.ckpt"))
    vocabulary = full.FullTokenizer(golden / "vocab.txt").vocabulary
    words = ["[CLS]", "the", "[MASK]", "of", "[MASK]", "[SEP]"]
    outputs = model(
        {
            "input_ids": np.array([[vocabulary[word] for word in words]], "int32"),
            "masked_lm_positions": np.array([[2, 4]], "int32"),
        }
    )
    logits = np.asarray(outputs["masked_lm_logits"][0], "float64")
    expected = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)

    size = len(vocabulary)
    [answer] = predictor.predict([TEXT], top_k=size)
    assert len(answer["masks"]) == 2
    for row, mask in zip(expected, answer["masks"], strict=True):
        by_token = as_table(mask)
        by_id = [by_token[token] for token in vocabulary.tokens]
        np.testing.assert_allclose(by_id, row, rtol=1e-5)
        assert list(by_token.values()) == sorted(by_token.values(), reverse=True)
        assert sum(by_token.values()) == pytest.approx(1.0)


def test_the_texts_of_the_flag_are_filled(run_tool, released):
    flags = ["--text=a [MASK]", "--text=[MASK] b"]
    done = run_tool(
        "fill_mask", f"--init_checkpoint={released}/bert_model.ckpt", *flags
    )
    assert done.stdout.splitlines()[::2] == ["a [MASK]", "[MASK] b"]
    flags = [f"--init_checkpoint={released}", "--pseudo_log_likelihood", "--text=a b"]
    report = run_tool("fill_mask", *flags).stdout.splitlines()
    assert report[0] == "a b"
    assert "per piece" in report[1]
    done = run_tool("fill_mask", *flags, "--text=a [MASK]", exit_code=1)
    assert "Input 1: Cannot score a text with [MASK]" in done.refusal


def test_the_likelihood_is_the_sum_over_pieces_masked_in_turn(predictor):
    texts = ["the lighthouse", "bee", "the bee and honey is warm"]
    for text, answer in zip(texts, predictor.score(texts), strict=True):
        pieces = predictor.tokenizer.tokenize(text)
        assert [one["token"] for one in answer["pieces"]] == pieces
        expected = []
        for index, piece in enumerate(pieces):
            tokens = ["[CLS]", *pieces, "[SEP]"]
            tokens[index + 1] = "[MASK]"
            ids = predictor.tokenizer.convert_tokens_to_ids(tokens)
            size = predictor.model.config.vocab_size
            row = mask_predictor.Row(
                pieces=ids, segment_ids=[0] * len(ids), positions=[index + 1]
            )
            [filled] = predictor._predictions([row], size)
            expected.append(np.log(as_table(filled["masks"][0])[piece]))
        found = [one["log_probability"] for one in answer["pieces"]]
        np.testing.assert_allclose(found, expected, atol=1e-4)
        assert answer["pseudo_log_likelihood"] == pytest.approx(sum(expected), abs=1e-3)
        num_words = len(text.split())
        assert answer["per_word"] == pytest.approx(sum(expected) / num_words, abs=1e-3)
