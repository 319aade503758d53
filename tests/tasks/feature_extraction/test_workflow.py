"""Every format contains the same vectors, complete or not at all."""

import functools
import json
import pathlib

import numpy as np
import pytest

from bert_tf.tasks.feature_extraction import extraction
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tasks.feature_extraction import workflow as feature_extraction_workflow
from tests import runs

TEXTS = ["the bee", ("the lamp", "is slow"), "", "a b c d e f g h"]


@pytest.fixture(scope="module")
def extract(released):
    """Returns the vocabulary, and what is extracted of the texts."""

    @functools.cache
    def extract_texts(**values):
        options = feature_extraction_options.ExtractionOptions(
            init_checkpoint=str(released / "bert_model.ckpt"),
            layers=(-1, 0),
            max_seq_length=16,
            **values,
        )
        extractor = extraction.Extractor(options)
        pairs = [(text, None) if isinstance(text, str) else text for text in TEXTS]
        lines = [extraction.TextLine(text_a=a, text_b=b) for a, b in pairs]
        return extractor.vocabulary, list(extractor.extract_each(lines))

    return extract_texts


@pytest.fixture
def write(extract, extraction_options):
    """Writes what is extracted; returns the path and what was written."""

    def write_texts(output_format, **values):
        vocabulary, texts = extract(**values)
        options = extraction_options(output_format=output_format, **values)
        feature_extraction_workflow.write(iter(texts), options, vocabulary)
        return options.output_file, texts

    return write_texts


def test_json_lines_are_the_releases(write):
    path, expected = write("jsonl")
    records = runs.json_lines(path)
    assert [list(record) for record in records] == [["linex_index", "features"]] * 4
    assert [record["linex_index"] for record in records] == [0, 1, 2, 3]
    tokens = [piece["token"] for piece in records[1]["features"]]
    assert tokens == ["[CLS]", "the", "lamp", "[SEP]", "is", "slow", "[SEP]"]
    for record, text in zip(records, expected, strict=True):
        for piece, vectors in zip(record["features"], text.vectors, strict=True):
            assert [layer["index"] for layer in piece["layers"]] == [-1, 0]
            values = [layer["values"] for layer in piece["layers"]]
            np.testing.assert_allclose(values, vectors, atol=2e-6)


def test_pooled_texts_have_one_vector(write):
    path, expected = write("jsonl", pooling="mean")
    records = runs.json_lines(path)
    assert list(records[0]) == ["linex_index", "values"]
    values = [record["values"] for record in records]
    np.testing.assert_allclose(values, [text.vector for text in expected], atol=2e-6)
    path, _ = write("npz", pooling="mean")
    with np.load(path) as file:
        np.testing.assert_allclose(file["vectors"], values, atol=2e-6)


def test_attention_weights_in_json_are_by_layer_head_from_and_to(write):
    path, expected = write("jsonl", attention_weights=True)
    record, *_ = runs.json_lines(path)
    layers = record["attention_weights"]
    assert [layer["index"] for layer in layers] == [-1, 0]
    heads = np.array([layer["heads"] for layer in layers])
    assert heads.shape == (2, 2, 4, 4)
    np.testing.assert_allclose(heads.sum(axis=-1), 1, atol=1e-5)
    by_piece = expected[0].attention_weights
    np.testing.assert_allclose(heads, by_piece.transpose(1, 2, 0, 3), atol=2e-6)


def test_arrays_of_all_lines_are_concatenated(write):
    path, expected = write("npz", attention_weights=True)
    with np.load(path) as file:
        arrays = {name: np.asarray(file[name]) for name in file}
    assert set(arrays) == {
        "vectors",
        "starts",
        "input_ids",
        "attention_weights",
        "layers",
    }
    assert arrays["layers"].tolist() == [-1, 0]
    assert arrays["starts"].tolist() == [0, 4, 11, 13, 23]
    assert arrays["vectors"].dtype == np.float32
    for index, text in enumerate(expected):
        part = slice(*arrays["starts"][index : index + 2])
        np.testing.assert_array_equal(arrays["input_ids"][part], text.input_ids)
        np.testing.assert_allclose(arrays["vectors"][part], text.vectors, atol=1e-6)
        weights = arrays["attention_weights"][part]  # [S, L, N, 16]
        size = len(text.input_ids)
        np.testing.assert_allclose(
            weights[..., :size], text.attention_weights, atol=1e-6
        )
        assert not weights[..., size:].any()


def test_two_runs_write_the_same_bytes(extraction_options):
    options = extraction_options(["the bee"], output_format="npz")
    written = []
    for _ in range(2):
        feature_extraction_workflow.run(options)
        written.append(pathlib.Path(options.output_file).read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("output_format", feature_extraction_options.FORMATS)
def test_a_run_that_stops_leaves_nothing(
    extract, extraction_options, tmp_path, output_format
):
    vocabulary, (first, *_) = extract()

    def texts():
        yield first
        raise KeyboardInterrupt

    options = extraction_options(output_format=output_format)
    with pytest.raises(KeyboardInterrupt):
        feature_extraction_workflow.write(texts(), options, vocabulary)
    assert list(tmp_path.iterdir()) == []


def test_rounding_is_pythons():
    some = np.array([0.5e-6, 1.5e-6, -2.5e-7, 1 / 3, -1e4 / 7, 0, 1e-30], np.float32)
    random = np.random.default_rng(1).normal(size=2000).astype("float32")
    halves = (np.arange(-999, 999, dtype="float32") / 2**7).astype("float32")
    for values in (some, random, halves):
        expected = [round(float(value), 6) for value in values]
        assert feature_extraction_workflow.rounded(values) == expected


def test_the_recorded_lines_of_2018(shared, extraction_options):
    folder = shared / "golden" / "extract_features"
    settings = json.loads((folder / "settings.json").read_text())
    chosen = extraction_options(
        input_file=str(folder / "input.txt"),
        init_checkpoint=str(shared / "golden" / "model_gelu" / "bert_model.ckpt"),
        vocab_file=str(shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"),
        layers=settings["layers"],
        max_seq_length=settings["max_seq_length"],
    )
    feature_extraction_workflow.run(chosen)
    records = runs.json_lines(chosen.output_file)
    recorded = runs.json_lines(folder / "output.jsonl")
    runs.assert_close(records, recorded, absolute=2e-6)
