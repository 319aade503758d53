import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.release import bundle
from bert_tf.data import packing
from bert_tf.fine_tuning import backends


def test_a_run_answers_texts_with_names_and_probabilities(single_run):
    classifier = bert_tf.load(single_run)
    texts = ["the rain", "été " * 30, ""]
    answers = classifier.predict(texts)
    features = packing.pack(classifier.tokenizer, texts, max_seq_length=16)
    expected = np.asarray(classifier.model(features)["probabilities"])
    assert [list(a["probabilities"]) for a in answers] == [["rain", "snow", "été"]] * 3
    probabilities = [list(answer["probabilities"].values()) for answer in answers]
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)
    for answer in answers:
        best = max(answer["probabilities"], key=answer["probabilities"].get)
        assert answer["label"] == best


def test_texts_that_the_vocabulary_does_not_suit_are_named(single_run, caplog):
    classifier = bert_tf.load(single_run)
    classifier.predict(["the rain"])
    assert "[UNK]" not in caplog.text
    classifier.predict(["the rain", "Ωμέγα " * 9])
    assert "of the word pieces of the texts are [UNK]" in caplog.text


_CLASSES = {
    "task": "classification",
    "max_seq_length": 24,
    "do_lower_case": True,
    "labels": ["a", "b"],
}


@pytest.mark.parametrize(
    "files, message",
    [
        ({}, "is a folder of an unknown format"),
        (
            {"task.json": {"task": "classification"}, "run.json": {}},
            "task.json lacks max_seq_length; train again",
        ),
        (
            {"task.json": {**_CLASSES, "max_seq_length": "24"}},
            "max_seq_length is '24', expected int; restore",
        ),
        ({"task.json": {**_CLASSES, "labels": "ab"}}, "labels is 'ab', expected tuple"),
        ({"task.json": []}, "contains a JSON list, expected an object"),
        ({"task.json": {"task": ["a"]}}, "does not name the run's task"),
        ({"task.json": {"task": "chess"}}, "run of the task 'chess'; expected one of"),
    ],
)
def test_a_folder_without_a_run_is_refused(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        bert_tf.load(str(tmp_path))


def test_an_export_is_no_checkpoint(single_export):
    with pytest.raises(ValueError, match="written by bert_tf export, and no check"):
        bert_tf.load(single_export)


def test_a_run_without_a_checkpoint_is_refused(single_run, tmp_path):
    copy_files(single_run, tmp_path, "task.json", "vocab.txt", "bert_config.json")
    with pytest.raises(ValueError, match="contains no checkpoint; train there first"):
        bert_tf.load(str(tmp_path))


@pytest.mark.parametrize(
    "name, message",
    [
        ("max_position_embeddings", r"_embeddings has shape \[64, 16\] in the"),
        ("num_hidden_layers", "layers, expected 1000000000"),
    ],
)
def test_sizes_are_compared_before_they_take_memory(
    single_run, tmp_path, name, message
):
    copied = pathlib.Path(shutil.copytree(single_run, tmp_path / "run"))
    config = json.loads((copied / "bert_config.json").read_text())
    (copied / "bert_config.json").write_text(json.dumps({**config, name: 10**9}))
    with pytest.raises(ValueError, match=message):
        bert_tf.load(copied)


def test_a_checkpoint_without_the_class_head_is_refused(single_run, tmp_path, golden):
    copy_files(single_run, tmp_path, "task.json", "vocab.txt", "bert_config.json")
    prefix = str(golden / "model" / "bert_model.ckpt")
    names = bundle.read_names_and_shapes(prefix)
    bundle.save(str(tmp_path / "model.ckpt-1"), bundle.read(prefix, list(names)))
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\n')
    with pytest.raises(ValueError, match="lacks 2 of the model's weights"):
        bert_tf.load(str(tmp_path))


FOREIGN = pathlib.Path(__file__).parents[1] / "checkpoints" / "foreign"


@pytest.mark.parametrize(
    "path, item, keys",
    [
        ("hugging_face/classification", "rain", ["label", "probabilities"]),
        ("hugging_face/classification", ("a", "b"), ["label", "probabilities"]),
        ("hugging_face/encoder", "rain", ["embedding"]),
        ("hugging_face/masked_lm", "a [MASK]", ["masks"]),
        ("hugging_face/pretraining", "a [MASK]", ["masks"]),
        (
            "hugging_face/question_answering",
            ("who", "the rain in spain"),
            ["answer", "start", "end", "score", "no_answer_score"],
        ),
        (
            "hugging_face/token_classification",
            "the rain",
            ["words", "tags", "starts", "ends"],
        ),
        (
            "hugging_face/multiple_choice",
            ("the", ["rain", "snow"]),
            ["label", "ending", "probabilities"],
        ),
        ("keras_hub/encoder", "rain", ["embedding"]),
        ("sentence_transformers/6.2.0/shared", "rain", ["embedding"]),
        ("sentence_transformers/6.2.0/shared_ranker", ("a", "b"), ["score"]),
    ],
)
def test_a_checkpoint_answers_as_its_head_can(path, item, keys):
    predictor = bert_tf.load(FOREIGN / path)
    assert [list(answer) for answer in predictor.predict([item])] == [keys]
    assert predictor.predict(iter([])) == []


def test_a_head_that_cannot_be_read_is_not_passed_over():
    preset = FOREIGN / "keras_hub" / "masked_lm"
    message = r"cannot read \(BertMaskedLM\); pass head=enc"
    with pytest.raises(ValueError, match=message):
        bert_tf.load(preset)
    assert bert_tf.load(preset, head="encoder").embed(["rain"]).shape[0] == 1


def test_a_checkpoint_of_a_run_uses_the_settings_of_its_run(single_run):
    texts = ["the rain", "snow " * 40]
    expected = bert_tf.load(single_run).predict(texts)
    assert bert_tf.load(f"{single_run}/model.ckpt-7").predict(texts) == expected


@pytest.fixture(scope="module")
def pretrained(golden):
    return {
        "path": golden / "model" / "bert_model.ckpt",
        "vocab_file": str(golden / "vocab.txt"),
    }


def test_an_encoder_embeds_any_iterable_in_its_order(pretrained):
    texts = ["the rain", "a", "the snow of a rain in spain " * 4, "été"]
    encoder = bert_tf.load(**pretrained, head="encoder", batch_size=2)
    one_by_one = np.concatenate([encoder.embed([text]) for text in texts])
    np.testing.assert_allclose(np.linalg.norm(one_by_one, axis=1), 1, rtol=1e-5)
    for inputs in (
        texts,
        iter(texts),
        np.array(texts),
        np.array(texts, dtype=object),
        tf.constant(texts),
        tf.data.Dataset.from_tensor_slices(texts),
    ):
        np.testing.assert_allclose(encoder.embed(inputs), one_by_one, atol=1e-5)
    assert encoder.embed([]).shape == (0, one_by_one.shape[1])
    [answer] = encoder.predict(texts[:1])
    np.testing.assert_allclose(answer["embedding"], one_by_one[0], atol=1e-5)


@pytest.mark.slow
def test_a_model_computes_in_the_dtype_asked_for(pretrained):
    exact = bert_tf.load(**pretrained, head="encoder")
    rounded = bert_tf.load(**pretrained, head="encoder", dtype="bfloat16")
    assert rounded.model.compute_dtype == "bfloat16"
    vectors = rounded.embed(["the rain"])
    assert vectors.dtype == np.float32
    assert not np.array_equal(vectors, exact.embed(["the rain"]))
    np.testing.assert_allclose(vectors, exact.embed(["the rain"]), atol=0.05)


@pytest.fixture
def backend_of_arrays(monkeypatch):
    """Makes compiled functions return arrays, as with OpenVINO."""
    compiled = backends.compiled

    def returning_arrays(*arguments, **settings):
        graph = compiled(*arguments, **settings)
        return lambda features: tf.nest.map_structure(np.asarray, graph(features))

    monkeypatch.setattr(backends, "compiled", returning_arrays)


def test_tags_of_batches_by_length_are_those_of_each_sentence(tags_run):
    # Rows have at most 16 pieces, so one batch has 8 of them or more.
    tagger = bert_tf.load(tags_run, batch_size=1)
    sentences = ["the rain in spain " * length for length in (1, 9, 2, 0, 15, 3, 1)]
    alone = [tagger.predict([sentence])[0] for sentence in sentences]
    assert tagger.predict(sentences) == alone


@pytest.mark.slow
@pytest.mark.parametrize(
    "run, item",
    [
        ("single_run", "the rain"),
        ("squad_run", ("who?", "the rain in spain")),
        ("tags_run", "the rain"),
        ("choice_run", ("the", ["rain", "snow", "a"])),
    ],
)
def test_predictors_take_the_arrays_of_other_backends(run, item, request):
    run_dir = request.getfixturevalue(run)
    expected = bert_tf.load(run_dir).predict([item])
    request.getfixturevalue("backend_of_arrays")
    assert bert_tf.load(run_dir).predict([item]) == expected


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"dtype": "int4"}, "dtype is 'int4'; expected one of float32"),
        ({"batch_size": 0}, "batch_size is 0; expected at least 1"),
        ({"batch_size": 2.5}, "batch_size is 2.5; expected an integer"),
        ({"head": "tagger"}, "head is 'tagger'; expected one of encoder"),
        (
            {"head": "classification"},
            r"^head=classification, but .* \(output_weights is .*\); its head is pretr",
        ),
        ({"pooling": "cls"}, "is not an encoder; omit pooling"),
        ({"max_seq_length": 0}, "max_seq_length is 0; expected at least 3"),
        ({"max_seq_length": "12"}, "max_seq_length is '12'; expected an integer"),
        ({"max_seq_length": 1000}, "max_seq_length is 1000, but the model has at most"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(pretrained, arguments, message):
    with pytest.raises(ValueError, match=message):
        bert_tf.load(**pretrained, **arguments)


def test_a_run_refuses_settings_of_its_own(single_run):
    with pytest.raises(ValueError, match=r"max_seq_length is 9, but .* training run"):
        bert_tf.load(single_run, max_seq_length=9)


@pytest.fixture(scope="module")
def predictor_of(request, pretrained):
    """Returns a function from the name of a run or a head to its predictor."""

    def load(name):
        if name.endswith("_run"):
            return bert_tf.load(request.getfixturevalue(name))
        return bert_tf.load(**pretrained, head=name)

    return load


@pytest.mark.parametrize(
    "name, inputs, message",
    [
        ("single_run", ["a", ("a", "b")], "Input 1 is .* single texts"),
        ("pair_run", ["a"], "Input 0 is 'a'.* trained on pairs"),
        ("pair_run", [("a", "b", "c")], "Input 0 is .* trained on pairs"),
        ("pair_run", [("a", None)], "Input 0 is .* trained on pairs"),
        ("encoder", b"one text", "got one string"),
        ("encoder", {"text": ["a"]}, "got a dict"),
        ("encoder", 7, "type int"),
        ("encoder", ["a", float("nan")], "Input 1 is nan"),
        ("encoder", ["a", None], "Input 1 is None"),
        ("masked_lm", ["[MASK]", "none"], r"Input 1: .*\[MASK\]"),
        ("masked_lm", ["[MASK]", "[MASK] " * 70], "Input 1: .* 72 word pieces"),
    ],
)
def test_inputs_that_cannot_be_answered_are_refused(
    predictor_of, name, inputs, message
):
    with pytest.raises(ValueError, match=message):
        predictor_of(name).predict(inputs)


@pytest.mark.parametrize("top_k", ["3", 1.5, 0])
def test_a_number_of_candidates_is_checked(predictor_of, top_k):
    with pytest.raises(ValueError, match=f"top_k is {top_k!r}"):
        predictor_of("masked_lm").predict(["[MASK]"], top_k=top_k)


def test_an_output_layer_of_an_unknown_kind_needs_a_head(
    single_run, pretrained, tmp_path
):
    names = bundle.read_names_and_shapes(f"{single_run}/model.ckpt-7")
    weights = bundle.read(f"{single_run}/model.ckpt-7", list(names))
    bundle.save(str(tmp_path / "model.ckpt"), weights)
    copy_files(single_run, tmp_path, "vocab.txt", "bert_config.json")
    with pytest.raises(ValueError, match="does not say what it is for; pass head"):
        bert_tf.load(tmp_path)
    [answer] = bert_tf.load(tmp_path, head="token_classification").predict(["rain"])
    assert answer["tags"][0] in ("0", "1", "2")
    [answer] = bert_tf.load(tmp_path, head="classification").predict(["rain"])
    assert list(answer["probabilities"]) == ["0", "1", "2"]


def copy_files(run_dir, target, *names):
    for name in names:
        shutil.copy(f"{run_dir}/{name}", target)
