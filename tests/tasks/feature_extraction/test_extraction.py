"""Extracted vectors equal the encoder's outputs, for any batching."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import loading
from bert_tf.data import packing
from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module
from bert_tf.modeling import inspection
from bert_tf.tasks.feature_extraction import extraction
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tokenization import full
from tests import ring

LONG = "the bee dance its summer form and keep plan out of two clock wheel longer bend"
TEXTS = ["the bee", "", ("the lamp", "is slow"), LONG]


@pytest.fixture(scope="module")
def checkpoint(released):
    return str(released / "bert_model.ckpt")


@pytest.fixture(scope="module")
def model(released):
    encoder = bert.BertModel(
        config_module.BertConfig.from_json_file(released / "bert_config.json")
    )
    loading.load_checkpoint(encoder, str(released / "bert_model.ckpt"))
    return encoder


@pytest.fixture(scope="module")
def tokenizer(released):
    return full.FullTokenizer(str(released / "vocab.txt"))


@pytest.fixture(scope="module")
def outputs_of(model, tokenizer):
    """Returns the encoder's outputs for one text by itself, [1, S, ...]."""

    def run(text):
        texts = [text] if isinstance(text, str) else text
        first, second, *_ = [*packing.token_ids(tokenizer, texts), None]
        pieces = packing.pack_pair(
            first,
            second,
            max_seq_length=16,
            cls=tokenizer.vocabulary.cls_id,
            sep=tokenizer.vocabulary.sep_id,
        )
        features = packing.padded_features([pieces], len(pieces.pieces))
        outputs = model(features)
        weights = inspection.attention_weights(model, features, outputs)
        return features["input_ids"][0], outputs | {"attention_weights": weights}

    return run


def extract(checkpoint, texts, **values):
    values = {"max_seq_length": 16, "layers": (-1, 0)} | values
    options = feature_extraction_options.ExtractionOptions(
        init_checkpoint=checkpoint, **values
    )
    pairs = [(text, None) if isinstance(text, str) else text for text in texts]
    lines = [extraction.TextLine(text_a=a, text_b=b) for a, b in pairs]
    extractor = extraction.Extractor(options)
    if options.pooling == "none":
        return list(extractor.extract_each(lines))
    return extractor.embed(lines)


@pytest.mark.parametrize("batch_size", [ring.slow(1), 3])
def test_every_piece_has_the_encoders_vectors(checkpoint, outputs_of, batch_size):
    texts = extract(checkpoint, TEXTS, batch_size=batch_size)
    for text, extracted in zip(TEXTS, texts, strict=True):
        ids, outputs = outputs_of(text)
        assert extracted.input_ids.tolist() == ids.tolist()
        layers = outputs["all_encoder_layers"]
        expected = np.stack([layers[-1][0], layers[0][0]], axis=1)
        assert extracted.vectors.dtype == np.float32
        np.testing.assert_allclose(extracted.vectors, expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ring.quick("mean", of=("cls", "mean", "max")))
def test_pooling_makes_one_vector_of_the_pieces(checkpoint, pooling):
    vectors = extract(checkpoint, TEXTS, pooling=pooling)
    for vector, text in zip(vectors, extract(checkpoint, TEXTS), strict=True):
        layers = [text.vectors[:, 0], text.vectors[:, 1]]
        if pooling == "cls":
            expected = [layer[0] for layer in layers]
        else:
            expected = [getattr(layer, pooling)(axis=0) for layer in layers]
        np.testing.assert_allclose(vector, np.concatenate(expected), atol=1e-5)


@pytest.mark.slow
def test_normalized_vectors_have_length_1_and_their_direction(checkpoint):
    plain = extract(checkpoint, TEXTS, pooling="mean")
    unit = extract(checkpoint, TEXTS, pooling="mean", normalize=True)
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    assert np.abs(lengths - 1).max() > 0.1
    np.testing.assert_allclose(unit, plain / lengths, atol=1e-6)


@pytest.mark.slow
def test_attention_weights_are_the_encoders(checkpoint, outputs_of):
    texts = extract(checkpoint, TEXTS, attention_weights=True, layers=(1,))
    for text, extracted in zip(TEXTS, texts, strict=True):
        _, outputs = outputs_of(text)
        expected = outputs["attention_weights"][1][0]  # [N, S, S]
        size = len(extracted.input_ids)
        assert extracted.attention_weights.shape == (size, 1, 2, size)
        np.testing.assert_allclose(
            extracted.attention_weights[:, 0],
            np.transpose(expected, (1, 0, 2)),
            atol=1e-6,
        )


def test_texts_are_taken_as_they_are_needed_and_come_in_order(
    extraction_options, tokenizer
):
    options = extraction_options(["x"], batch_size=2, layers=(-1,))
    extractor = extraction.Extractor(options)
    taken = []

    def lines():
        for index in range(40):
            taken.append(index)
            yield extraction.TextLine(text_a="bee " * (1 + index * 7 % 11))

    lengths = []
    for extracted in extractor.extract_each(lines()):
        lengths.append(len(extracted.input_ids) - 2)
        assert len(taken) - len(lengths) < extraction.BATCHES_SORTED * 2
    assert lengths == [1 + index * 7 % 11 for index in range(40)]


@pytest.mark.parametrize(
    "values, message",
    [
        ({"layers": (2,)}, "layer 2 does not exist.*expected -2 to 1"),
        ({"max_seq_length": 65}, "max_position_embeddings"),
    ],
)
def test_what_does_not_fit_is_refused(checkpoint, values, message):
    with pytest.raises(ValueError, match=message):
        extract(checkpoint, ["a"], **values)


def test_a_pair_is_refused_by_a_model_with_one_segment(checkpoint):
    options = feature_extraction_options.ExtractionOptions(
        init_checkpoint=checkpoint, max_seq_length=64, layers=(-1,)
    )
    extractor = extraction.Extractor(options)
    extractor.config = dataclasses.replace(extractor.config, type_vocab_size=1)
    pair = extraction.TextLine(text_a="the bee", text_b="the lamp", place="line 1")
    with pytest.raises(ValueError, match=r"line 1: .*two segments.*type_vocab_size 1"):
        list(extractor.extract_each([pair]))


def test_cls_of_a_left_to_right_model_is_refused(released, tmp_path):
    shutil.copytree(released, tmp_path / "causal")
    path = tmp_path / "causal" / "bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"attention": "causal"}))
    checkpoint = str(tmp_path / "causal" / "bert_model.ckpt")
    with pytest.raises(ValueError, match="\\[CLS\\] attends only to itself"):
        extract(checkpoint, ["the bee"], pooling="cls")
    assert extract(checkpoint, ["the bee"], pooling="mean").shape == (1, 32)


def test_embed_gives_normalized_means_in_the_order_of_the_texts(
    checkpoint, reported, caplog
):
    texts = [LONG, "the bee", *["the lamp is slow"] * 3, ("the lamp", "is slow")]
    values = {"layers": (-1,), "pooling": "mean", "max_seq_length": 64}
    expected = extract(checkpoint, texts, normalize=True, **values)
    vectors = bert_tf.embed(checkpoint, iter(texts), batch_size=2)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert reported[-1] == ("predict", 6, 6)
    unscaled = bert_tf.embed(checkpoint, texts, normalize=False)
    np.testing.assert_allclose(
        unscaled, extract(checkpoint, texts, **values), atol=1e-5
    )
    half = bert_tf.embed(checkpoint, texts, dtype="mixed_bfloat16")
    assert half.dtype == np.float32
    np.testing.assert_allclose((half * expected).sum(axis=1), 1, atol=0.02)
    same = bert_tf.embed(checkpoint, texts, dtype="bfloat16")
    np.testing.assert_array_equal(same, half)
    assert bert_tf.embed(checkpoint, []).shape == (0, 16)
    assert "truncated" not in caplog.text
    bert_tf.embed(checkpoint, [LONG, "the " * 99])
    assert "1 of 2 inputs are longer than max_seq_length=64 and" in caplog.text


def test_embed_and_load_compute_with_openvino(checkpoint):
    pytest.importorskip("openvino", reason="pip install openvino")
    texts = [LONG, "the bee", ("the lamp", "is slow"), "is slow"]
    expected = bert_tf.embed(checkpoint, texts)
    vectors = bert_tf.embed(checkpoint, texts, backend="openvino")
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    encoder = bert_tf.load(checkpoint, head="encoder", backend="openvino")
    np.testing.assert_allclose(
        encoder.embed([texts[1], texts[3]]), expected[[1, 3]], atol=1e-4
    )
    half = bert_tf.embed(checkpoint, texts, backend="openvino", dtype="bfloat16")
    np.testing.assert_allclose((half * expected).sum(axis=1), 1, atol=0.02)


@pytest.mark.parametrize(
    "texts, message",
    [
        ("one text", "Expected a list of texts, got one string"),
        ({"text": ["a"]}, r"got a dict, .* pass a column, such as table\['text'\]"),
        (["a", 7], "Text 1 is 7; expected a string"),
        (["a", ("a", "b", "c")], "Text 1 is .* expected a string, or .text, second te"),
    ],
)
def test_embed_refuses_what_is_no_list_of_texts(checkpoint, texts, message):
    with pytest.raises(ValueError, match=message):
        bert_tf.embed(checkpoint, texts)


@pytest.mark.parametrize(
    "line, divided",
    [
        ("the bee", ("the bee", None)),
        ("the bee ||| is slow", ("the bee", "is slow")),
        ("a ||| b ||| c", ("a ||| b", "c")),  # The last one divides, as in 2018.
        ("a |||b", ("a |||b", None)),  # Without spaces it is text.
        ("  a \t", ("a", None)),
        ("", ("", None)),
    ],
)
def test_a_line_is_a_text_or_two(line, divided):
    assert extraction.divided(line) == divided
