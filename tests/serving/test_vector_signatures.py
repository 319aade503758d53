"""Vectors and scores from a SavedModel are those of Python."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.retrieval import task as retrieval_task
from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import runs

TEXTS = ["", "the rain", "crème brûlée, 中文", "rain in spain " * 5, "the bread " * 40]
SIZES = {"max_query_length": 8, "max_seq_length": 16, "do_lower_case": True}


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_saved_model_of_a_bi_encoder_gives_its_vectors(
    write_model, tmp_path, pooling
):
    task = retrieval_task.Task(
        model="bi_encoder", pooling=pooling, temperature=0.05, **SIZES
    )
    run_dir = write_model(str(tmp_path / "run"), task.create_model, task)
    trained = runs.load(run_dir)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    found = client.open_saved_model(folder).ask(text=TEXTS)
    expected = trained.embed(TEXTS)
    np.testing.assert_allclose([one["embedding"] for one in found], expected, atol=1e-5)
    queries = tf.saved_model.load(folder).signatures["query"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(
        queries["embedding"], trained.encoder.queries(TEXTS), atol=1e-5
    )


def test_a_saved_model_of_a_cross_encoder_gives_its_scores(write_model, tmp_path):
    task = retrieval_task.Task(model="cross_encoder", **SIZES)
    run_dir = write_model(str(tmp_path / "run"), task.create_model, task)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    pairs = [(query, passage) for query in TEXTS for passage in TEXTS]
    queries, passages = ([pair[index] for pair in pairs] for index in (0, 1))
    found = client.open_saved_model(folder).ask(text=queries, text_b=passages)
    expected = runs.load(run_dir).scorer.scores(queries, passages)
    np.testing.assert_allclose([one["score"] for one in found], expected, atol=1e-5)
