"""Sentence encoders and rankers of sentence-transformers, applied without training."""

import json
import os
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.tasks.retrieval import options as retrieval_options
from tests import ring
from tests.checkpoints.foreign import sentence_transformers_folders as folders

# Pairs that are cut in every way: see PAIRS in make_sentence_transformers.py.
RANKERS = ("ranker_sigmoid", "ranker_identity", "ranker_short", "ranker_shorter")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns the path of a folder that sentence-transformers wrote."""

    def create(name, version=folders.NEW):
        parent = tmp_path_factory.mktemp("sentence_transformers")
        return folders.create(parent / name, name, version)

    return create


@pytest.fixture
def search_options(folder, write, tmp_path):
    """Returns options that search passages with an encoder or a ranker."""

    def create(name, query, passages, **values):
        return retrieval_options.RunRetrievalOptions(
            init_checkpoint=folder(name),
            do_predict=True,
            predict_file=write("queries.txt", query),
            corpus_file=write("corpus.txt", "\n".join(passages)),
            output_dir=str(tmp_path / "run"),
            **values,
        )

    return create


@pytest.mark.parametrize(
    "name", ring.quick("ranker_sigmoid", "ranker_shorter", of=RANKERS)
)
def test_the_scores_of_a_ranker_are_those_of_the_library(folder, name):
    model = bert_tf.load(folder(name))
    for (query, passage), expected in zip(
        folders.texts()["pairs"], folders.expected(name), strict=True
    ):
        [answer] = model.predict([(query, passage)])
        assert answer["score"] == pytest.approx(float(expected), rel=1e-5, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranker_short", "ranker_shorter"])
def test_an_exported_ranker_gives_the_scores_of_the_library(folder, tmp_path, name):
    tf = pytest.importorskip("tensorflow")
    options = serving_options.ExportSavedModelOptions(
        init_checkpoint=folder(name), export_dir=str(tmp_path / "1")
    )
    export.run(options)
    function = tf.saved_model.load(options.export_dir).signatures["serving_default"]
    queries, passages = zip(*folders.texts()["pairs"], strict=True)
    scores = function(text=tf.constant(queries), text_b=tf.constant(passages))["score"]
    np.testing.assert_allclose(scores, folders.expected(name), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cls_9", "prompts", "default_prompt"])
def test_an_exported_encoder_gives_the_vectors_of_the_library(folder, tmp_path, name):
    tf = pytest.importorskip("tensorflow")
    # Version 6 adds the prompt `document`, which comes before `passage`.
    version = folders.OLD
    options = serving_options.ExportSavedModelOptions(
        init_checkpoint=folder(name, version), export_dir=str(tmp_path / "1")
    )
    export.run(options)
    signatures = tf.saved_model.load(options.export_dir).signatures
    texts = tf.constant(folders.texts(version)["texts"])
    places = {"serving_default": name, "query": name}
    if name == "prompts":
        places = {"serving_default": f"{name}/passage", "query": f"{name}/query"}
    if name == "default_prompt":
        del places["serving_default"]  # Passages have their own prompt.
    for signature, place in places.items():
        vectors = signatures[signature](text=texts)["embedding"].numpy()
        expected = folders.expected(place, version)
        assert folders.least_cosine(vectors, expected) > 0.999999
        assert abs(vectors - expected).max() < 1e-5 * abs(expected).max()


def test_an_encoder_and_a_ranker_of_the_library_search_together(
    folder, search_options, tmp_path
):
    queries, passages = zip(*folders.texts()["pairs"], strict=True)
    values = {"model": "cross_encoder", "retrieve_with": folder("mean_unit_24")}
    options = search_options("ranker_shorter", queries[0], passages, **values)
    fine_tuning_run.run(options)
    with open(tmp_path / "run" / "predictions.jsonl") as file:
        ranked = json.loads(file.readline())["passages"]
    scores = {one["text"]: one["score"] for one in ranked}
    expected = float(folders.expected("ranker_shorter")[0])
    assert scores[passages[0]] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "name, normalize, length", [("max_24", True, 24), ("default_prompt", False, 16)]
)
def test_a_search_compares_as_the_encoder_says(search_options, name, normalize, length):
    options = search_options(name, "the cat", ["a dog ran far", "the cat sat"])
    task = fine_tuning_run.prepare(options).record
    assert task.normalize is normalize
    assert (task.max_seq_length, task.max_query_length) == (length, length)


def test_a_ranker_is_not_an_encoder(search_options):
    options = search_options("ranker_short", "the cat", ["a dog ran far"])
    with pytest.raises(ValueError, match="scores pairs of texts and has no vectors"):
        fine_tuning_run.run(options)


def test_a_plain_encoder_embeds_with_the_mean_at_length_1(folder):
    path = folder("mean_9")
    expected = bert_tf.load(path).embed(["the cat sat"])
    expected /= np.linalg.norm(expected)
    os.remove(os.path.join(path, "modules.json"))
    shutil.rmtree(os.path.join(path, "1_Pooling"))
    vectors = bert_tf.load(path).embed(["the cat sat"])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
