"""Passage vectors on disk, and the search for the nearest ones."""

import json
from unittest import mock

import keras
import numpy as np
import pytest
import safetensors

from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import search as search_module

MADE_BY = {
    "checkpoint": "step 3",
    "weights_sha256": "1",
    "corpus_sha256": "2",
    "vocabulary": "3",
    "task": "{}",
    "dtype": "float32",
    "backend": "tensorflow",
}


def unit(rows, width, seed):
    vectors = np.random.default_rng(seed).normal(size=(rows, width)).astype("float32")
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def corpus_of(*texts):
    ids = tuple(str(number) for number in range(1, len(texts) + 1))
    return examples_module.Corpus(path="corpus.txt", ids=ids, passages=texts)


@pytest.fixture
def index(tmp_path):
    """Stored vectors of 50 passages."""
    vectors = unit(50, 8, 0)
    corpus = corpus_of(*(f"passage {number}" for number in range(50)))
    search_module.write(str(tmp_path), corpus, vectors, MADE_BY)
    return vectors


def test_the_safetensors_file_records_what_made_it(index, tmp_path):
    path = tmp_path / "passage_embeddings.safetensors"
    with safetensors.safe_open(path, framework="numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("embeddings"), index)
        assert file.metadata() == MADE_BY
    vectors = search_module.find(str(tmp_path), MADE_BY)
    np.testing.assert_array_equal(vectors, index)
    lines = (tmp_path / "passages.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {"id": "2", "passage": "passage 1"}


@pytest.mark.parametrize(
    "changed", ["weights_sha256", "corpus_sha256", "task", "dtype", "backend"]
)
def test_vectors_of_another_model_or_corpus_are_not_used(index, tmp_path, changed):
    made_by = MADE_BY | {"checkpoint": "there"}
    assert search_module.find(str(tmp_path), made_by) is not None
    assert search_module.find(str(tmp_path), MADE_BY | {changed: "other"}) is None
    assert search_module.find(str(tmp_path / "none"), MADE_BY) is None


def test_the_fingerprint_says_in_what_precision_vectors_are_computed():
    vocabulary = mock.Mock(vocabulary=mock.Mock(fingerprint="3"))
    record = mock.Mock(to_dict=dict)
    for dtype in ("float32", "mixed_bfloat16"):
        model = keras.layers.Identity(dtype=dtype)
        retriever = search_module.Retriever(
            model, np.asarray, vocabulary, record, checkpoint="step 3"
        )
        fingerprint = retriever.fingerprint(corpus_of("a passage"))
        assert fingerprint.keys() == {*MADE_BY, "corpus"}
        assert (fingerprint["dtype"], fingerprint["backend"]) == (dtype, "tensorflow")


@pytest.mark.parametrize("size", [4, 100, 1000, -1])
def test_a_truncated_file_is_recomputed(index, tmp_path, size):
    path = tmp_path / "passage_embeddings.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    assert search_module.find(str(tmp_path), MADE_BY) is None


class KilledError(Exception):
    """Simulates a process that is killed."""


@pytest.mark.parametrize("place", ["vectors removed", "passages written"])
def test_vectors_are_never_stored_beside_other_passages(
    index, tmp_path, monkeypatch, place
):
    whole = search_module.files.complete_or_absent

    def killed(path, mode="w"):
        if mode == {"vectors removed": "w", "passages written": "wb"}.get(place):
            raise KilledError
        return whole(path, mode)

    corpus = corpus_of("one", "two")
    made_by = MADE_BY | {"corpus_sha256": "other"}
    monkeypatch.setattr(search_module.files, "complete_or_absent", killed)
    with pytest.raises(KilledError):
        search_module.write(str(tmp_path), corpus, unit(2, 8, 1), made_by)
    monkeypatch.undo()
    # The vectors match neither the new passages nor the old ones: both recompute.
    assert search_module.find(str(tmp_path), made_by) is None
    assert search_module.find(str(tmp_path), MADE_BY) is None
    passages = examples_module.read_corpus(str(tmp_path / search_module.PASSAGES_FILE))
    assert len(passages) == (50 if place == "vectors removed" else 2)


@pytest.mark.parametrize("top_k", [1, 3, 7, 20, 50, 80])
def test_exact_search_equals_sorting_all_scores(monkeypatch, reported, top_k):
    monkeypatch.setattr(search_module, "QUERIES_PER_BLOCK", 4)
    monkeypatch.setattr(search_module, "ROWS_PER_BLOCK", 7)
    # Products of whole numbers are exact and often equal; the first passage wins.
    random = np.random.default_rng(0)
    vectors = random.integers(-2, 3, size=(50, 8)).astype("float32")
    queries = random.integers(-2, 3, size=(9, 8)).astype("float32")
    scores = queries @ vectors.T
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    best = search_module.search(queries, vectors, top_k)
    np.testing.assert_array_equal(best.numbers, expected)
    np.testing.assert_allclose(
        best.scores, np.take_along_axis(scores, expected, axis=1), rtol=1e-5
    )
    assert reported[-1] == ("search", 50, 50)
    assert len(reported) == 8
