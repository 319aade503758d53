"""Extracted vectors equal the encoder's, and each format has them completely."""

import dataclasses
import json
import pathlib
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints import loading
from bert_tf.data import packing
from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tasks.feature_extraction import workflow
from bert_tf.tokenization import full
from tests import ring
from tests import runs
from tests.checkpoints.foreign import sentence_transformers_folders as folders

LONG = "the bee dance its summer form and keep plan out of two clock wheel longer bend"
TEXTS = ["the bee", ("the lamp", "is slow"), "", LONG]


@pytest.fixture(scope="module")
def released(copy_release, tmp_path_factory):
    """Folder with checkpoint, configuration and vocabulary beside each other."""
    return copy_release(tmp_path_factory.mktemp("release") / "released")


@pytest.fixture
def extraction_options(released, tmp_path):
    """Returns options for lines of text; keywords replace or add."""

    def create(lines=(), **values):
        (tmp_path / "input.txt").write_text("".join(f"{line}\n" for line in lines))
        defaults = {
            "input_file": str(tmp_path / "input.txt"),
            "output_file": str(tmp_path / "output"),
            "init_checkpoint": str(released / "bert_model.ckpt"),
            "max_seq_length": 16,
            "layers": (-1, 0),
        }
        return feature_extraction_options.ExtractFeaturesOptions(**defaults | values)

    return create


@pytest.fixture(scope="module")
def tokenizer(released):
    return full.FullTokenizer(str(released / "vocab.txt"))


@pytest.fixture(scope="module")
def outputs_of(released, tokenizer):
    """Returns the ids of one text, and the encoder's outputs for it by itself."""
    model = bert.BertModel(
        config_module.BertConfig.from_json_file(released / "bert_config.json")
    )
    loading.load_checkpoint(model, str(released / "bert_model.ckpt"))

    def run(text):
        first, second = (text, None) if isinstance(text, str) else text
        seconds = None if second is None else [second]
        features = packing.pack(tokenizer, [first], texts_b=seconds, max_seq_length=16)
        size = int(features["input_mask"].sum())
        features = {name: column[:, :size] for name, column in features.items()}
        return features["input_ids"][0], model(features)

    return run


@pytest.fixture
def extract(extraction_options):
    """Returns what is extracted from texts."""

    def extract_texts(texts, **values):
        extractor = workflow.Extractor(extraction_options(**values))
        pairs = [(text, None) if isinstance(text, str) else text for text in texts]
        lines = [workflow.TextLine(text_a=a, text_b=b) for a, b in pairs]
        return list(extractor.extract_each(lines))

    return extract_texts


@pytest.fixture
def write(extract, extraction_options, tokenizer):
    """Writes what is extracted; returns the path and what was written."""

    def write_texts(output_format, **values):
        texts = extract(TEXTS, **values)
        options = extraction_options(output_format=output_format, **values)
        workflow.write(iter(texts), options, tokenizer.vocabulary)
        return options.output_file, texts

    return write_texts


@pytest.mark.parametrize("batch_size", [ring.slow(1), 3])
def test_every_piece_has_the_encoders_vectors(extract, outputs_of, batch_size):
    texts = extract(TEXTS, batch_size=batch_size)
    for text, extracted in zip(TEXTS, texts, strict=True):
        ids, outputs = outputs_of(text)
        assert extracted.input_ids.tolist() == ids.tolist()
        layers = outputs["all_encoder_layers"]
        expected = np.stack([layers[-1][0], layers[0][0]], axis=1)
        assert extracted.vectors.dtype == np.float32
        np.testing.assert_allclose(extracted.vectors, expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ring.quick("mean", of=("cls", "mean", "max")))
def test_pooling_makes_one_vector_of_the_pieces(extract, pooling):
    pooled = extract(TEXTS, pooling=pooling)
    for one, text in zip(pooled, extract(TEXTS), strict=True):
        layers = [text.vectors[:, 0], text.vectors[:, 1]]
        if pooling == "cls":
            expected = [layer[0] for layer in layers]
        else:
            expected = [getattr(layer, pooling)(axis=0) for layer in layers]
        np.testing.assert_allclose(one.vectors, np.concatenate(expected), atol=1e-5)


def test_texts_are_taken_as_they_are_needed_and_come_in_order(
    extraction_options, tokenizer
):
    options = extraction_options(["x"], batch_size=2, layers=(-1,))
    extractor = workflow.Extractor(options)
    taken = []

    def lines():
        for index in range(40):
            taken.append(index)
            yield workflow.TextLine(text_a="bee " * (1 + index * 7 % 11))

    lengths = []
    for extracted in extractor.extract_each(lines()):
        lengths.append(len(extracted.input_ids) - 2)
        assert len(taken) - len(lengths) < workflow.BATCHES_SORTED * 2
    assert lengths == [1 + index * 7 % 11 for index in range(40)]


@pytest.mark.parametrize(
    "values, message",
    [
        ({"layers": (2,)}, "layer 2 does not exist.*expected -2 to 1"),
        ({"max_seq_length": 65}, "max_position_embeddings"),
    ],
)
def test_what_does_not_fit_is_refused(extract, values, message):
    with pytest.raises(ValueError, match=message):
        extract(["a"], **values)


def test_a_pair_is_refused_by_a_model_with_one_segment(extraction_options):
    extractor = workflow.Extractor(extraction_options())
    extractor.config = dataclasses.replace(extractor.config, type_vocab_size=1)
    pair = workflow.TextLine(text_a="the bee", text_b="the lamp", place="line 1")
    with pytest.raises(ValueError, match=r"line 1: .*two segments.*type_vocab_size 1"):
        list(extractor.extract_each([pair]))


def test_cls_of_a_left_to_right_model_is_refused(extract, released, tmp_path):
    shutil.copytree(released, tmp_path / "causal")
    path = tmp_path / "causal" / "bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"attention": "causal"}))
    checkpoint = str(tmp_path / "causal" / "bert_model.ckpt")
    with pytest.raises(ValueError, match="\\[CLS\\] attends only to itself"):
        extract(["the bee"], init_checkpoint=checkpoint, pooling="cls")
    [mean] = extract(["the bee"], init_checkpoint=checkpoint, pooling="mean")
    assert mean.vectors.shape == (32,)


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
    assert workflow.divided(line) == divided


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
    np.testing.assert_allclose(values, [text.vectors for text in expected], atol=2e-6)
    path, _ = write("npz", pooling="mean")
    with np.load(path) as file:
        np.testing.assert_allclose(file["vectors"], values, atol=2e-6)


def test_arrays_of_all_lines_are_concatenated(write):
    path, expected = write("npz")
    with np.load(path) as file:
        arrays = {name: np.asarray(file[name]) for name in file}
    assert set(arrays) == {"vectors", "starts", "input_ids", "layers"}
    assert arrays["layers"].tolist() == [-1, 0]
    assert arrays["starts"].tolist() == [0, 4, 11, 13, 29]
    assert arrays["vectors"].dtype == np.float32
    for index, text in enumerate(expected):
        part = slice(*arrays["starts"][index : index + 2])
        np.testing.assert_array_equal(arrays["input_ids"][part], text.input_ids)
        np.testing.assert_allclose(arrays["vectors"][part], text.vectors, atol=1e-6)


def test_two_runs_write_the_same_bytes(extraction_options):
    options = extraction_options(["the bee"], output_format="npz")
    written = []
    for _ in range(2):
        workflow.run(options)
        written.append(pathlib.Path(options.output_file).read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("output_format", feature_extraction_options.FORMATS)
def test_a_run_that_stops_leaves_nothing(
    extract, extraction_options, tokenizer, tmp_path, output_format
):
    first, *_ = extract(TEXTS)

    def texts():
        yield first
        raise KeyboardInterrupt

    options = extraction_options(output_format=output_format)
    with pytest.raises(KeyboardInterrupt):
        workflow.write(texts(), options, tokenizer.vocabulary)
    assert [path.name for path in tmp_path.iterdir()] == ["input.txt"]


def test_rounding_is_pythons():
    some = np.array([0.5e-6, 1.5e-6, -2.5e-7, 1 / 3, -1e4 / 7, 0, 1e-30], np.float32)
    random = np.random.default_rng(1).normal(size=2000).astype("float32")
    halves = (np.arange(-999, 999, dtype="float32") / 2**7).astype("float32")
    for values in (some, random, halves):
        expected = [round(float(value), 6) for value in values]
        assert workflow.rounded(values) == expected


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
    workflow.run(chosen)
    records = runs.json_lines(chosen.output_file)
    recorded = runs.json_lines(folder / "output.jsonl")
    runs.assert_close(records, recorded, absolute=2e-6)


def test_layers_of_a_sentence_encoder_are_not_its_vectors(
    extraction_options, tmp_path, caplog
):
    folder = folders.create(tmp_path / "encoder", "max_24")
    options = extraction_options(init_checkpoint=folder)
    list(
        workflow.Extractor(options).extract_each([workflow.TextLine(text_a="Ωμ 雨 雨")])
    )
    assert "is a sentence encoder. These are the outputs of its layers" in caplog.text
    assert "of the word pieces of the texts are [UNK]" in caplog.text
