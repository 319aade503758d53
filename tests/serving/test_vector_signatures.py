"""Vectors from a SavedModel are those of Python."""

import json

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.modeling import pooling as pooling_module
from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from bert_tf.tasks.retrieval import features
from tests.serving import rest_double

pytestmark = pytest.mark.slow

TEXTS = ["", "the rain", "crème brûlée, 中文", "rain in spain " * 5, "the bread " * 40]
SIZES = {"max_query_length": 8, "max_seq_length": 16, "do_lower_case": True}


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_saved_model_of_a_bi_encoder_gives_its_vectors(
    write_model, tmp_path, pooling
):
    task = features.Record(model="bi_encoder", pooling=pooling, **SIZES)
    run_dir = write_model(str(tmp_path / "run"), task.create_model, task)
    trained = predictors.load(run_dir)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    model = client.open_saved_model(folder)
    for signature, expected in (
        ("serving_default", trained.embed(TEXTS)),
        ("query", trained.retriever.queries(TEXTS)),
    ):
        answers = model.ask(signature=signature, text=TEXTS)
        vectors = [answer["embedding"] for answer in answers]
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    with rest_double.serving(rest_double.RestDouble(folder).reply) as address:
        server = client.open_server(f"{address}/v1/models/topics")
        served = server.ask(signature="query", text=TEXTS)
    assert [list(one) for one in served] == [["embedding"]] * len(TEXTS)
    with pytest.raises(ValueError, match="no signature search; it has ids, query, "):
        model.ask(signature="search", text=TEXTS)
    row = {"input_ids": [[2, 10**6, 3]], "input_mask": [[1] * 3]}
    row = {name: tf.constant(ids) for name, ids in row.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"got.*\[1000000\]"):
        tf.saved_model.load(folder).signatures["ids"](
            **row, segment_ids=tf.zeros([1, 3], tf.int32)
        )


def test_an_encoder_is_served_without_fine_tuning(golden, tmp_path):
    given = {
        "init_checkpoint": str(golden / "model" / "bert_model.ckpt"),
        "bert_config_file": str(golden / "model" / "bert_config.json"),
        "vocab_file": str(golden / "vocab.txt"),
    }
    embeddings = {}
    for name, flags in {
        "mean": {},
        "rounded": {"dtype": "bfloat16"},
        "short": {"pooling": "max", "max_seq_length": 8, "do_lower_case": False},
    }.items():
        export.run(
            serving_options.ExportSavedModelOptions(
                export_dir=str(tmp_path / name),
                **{"max_seq_length": 16} | given | flags,
            )
        )
        answers = client.open_saved_model(str(tmp_path / name)).ask(text=TEXTS)
        embeddings[name] = [answer["embedding"] for answer in answers]
    differences = np.subtract(embeddings["rounded"], embeddings["mean"])
    assert 0 < np.abs(differences).max() < 0.05
    task = json.loads((tmp_path / "short/1/assets.extra/task.json").read_text())
    assert (task["pooling"], task["max_seq_length"]) == ("max", 8)
    assert task["do_lower_case"] is False
    assert (tmp_path / "mean/1/assets.extra/vocab.txt").read_text() == (
        golden / "vocab.txt"
    ).read_text()

    model = bert_tf.BertModel(
        bert_tf.BertConfig.from_json_file(given["bert_config_file"])
    )
    bert_tf.load_checkpoint(model, given["init_checkpoint"])
    for name, kind, length in (("mean", "mean", 16), ("short", "max", 8)):
        tokenizer = bert_tf.FullTokenizer(
            given["vocab_file"], do_lower_case=name == "mean"
        )
        features = bert_tf.pack(tokenizer, TEXTS, max_seq_length=length)
        vectors = pooling_module.pool(model(features), features["input_mask"], kind)
        expected = pooling_module.normalize(vectors)
        np.testing.assert_allclose(embeddings[name], expected, atol=1e-5, err_msg=name)
