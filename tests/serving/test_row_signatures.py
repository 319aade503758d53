"""Answers of a SavedModel with one row per input are those of Python."""

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
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.retrieval import features
from tests import ring
from tests import runs
from tests.serving import rest_double

TEXTS = ["", "the rain", "crème brûlée, 中文", "rain in spain " * 5, "the bread " * 40]
LABELS = ("rain", "snow", "été")

SIZES = {"max_seq_length": 16, "do_lower_case": True}


@pytest.fixture(scope="module")
def checkpoint(golden):
    return {
        "init_checkpoint": str(golden / "model" / "bert_model.ckpt"),
        "vocab_file": str(golden / "vocab.txt"),
    }


def record(labels, label_kind="single_label", *, text_b_column=None):
    return classification_predictions.Record(
        labels=labels, label_kind=label_kind, text_b_column=text_b_column, **SIZES
    )


PAIRED = {"text_b_column": "text_b"}
ONE = {"text": TEXTS}
PAIRS = {"text": [a for a in TEXTS for _ in TEXTS], "text_b": TEXTS * len(TEXTS)}


# The client's tests ask models with one label per text.
@pytest.mark.parametrize(
    "task, inputs",
    [
        ring.slow(record(LABELS), ONE, id="texts"),
        ring.slow(record(LABELS, **PAIRED), PAIRS, id="pairs"),
        ring.slow(record(LABELS, "multi_label"), ONE, id="several labels of texts"),
        pytest.param(record((), "regression", **PAIRED), PAIRS, id="numbers of pairs"),
        ring.slow(
            record(LABELS, "multi_label", **PAIRED), PAIRS, id="several labels of pairs"
        ),
        ring.slow(
            record(("joy", "anger"), "regression"), ONE, id="two numbers of texts"
        ),
        ring.slow(
            features.Record(model="cross_encoder", max_query_length=8, **SIZES),
            PAIRS,
            id="a cross-encoder's scores",
        ),
    ],
)
def test_a_saved_model_answers_as_python(write_model, tmp_path, task, inputs):
    run_dir = write_model(str(tmp_path / "run"), task.create_model, task)
    items = list(zip(*inputs.values(), strict=True)) if len(inputs) > 1 else TEXTS
    expected = predictors.load(run_dir).predict(items)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    answers = client.open_saved_model(folder).ask(**inputs)
    runs.assert_close(answers, expected, absolute=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_saved_model_of_a_bi_encoder_gives_its_vectors(
    write_model, tmp_path, pooling
):
    task = features.Record(
        model="bi_encoder", pooling=pooling, max_query_length=8, **SIZES
    )
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


@pytest.mark.slow
def test_an_encoder_is_served_without_fine_tuning(checkpoint, golden, tmp_path):
    embeddings = {}
    for name, flags in {
        "mean": {},
        "rounded": {"dtype": "bfloat16"},
        "short": {"pooling": "max", "max_seq_length": 8, "do_lower_case": False},
    }.items():
        export.run(
            serving_options.ExportSavedModelOptions(
                export_dir=str(tmp_path / name),
                **{"max_seq_length": 16} | checkpoint | flags,
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
        bert_tf.BertConfig.from_json_file(golden / "model" / "bert_config.json")
    )
    bert_tf.load_checkpoint(model, checkpoint["init_checkpoint"])
    for name, kind, length in (("mean", "mean", 16), ("short", "max", 8)):
        tokenizer = bert_tf.FullTokenizer(
            checkpoint["vocab_file"], do_lower_case=name == "mean"
        )
        packed = bert_tf.pack(tokenizer, TEXTS, max_seq_length=length)
        vectors = pooling_module.pool(model(packed), packed["input_mask"], kind)
        expected = pooling_module.normalize(vectors)
        np.testing.assert_allclose(embeddings[name], expected, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def exported(checkpoint, tmp_path_factory):
    """Folder of the SavedModel of a released checkpoint, at most 12 pieces."""
    folder = str(tmp_path_factory.mktemp("exports") / "1")
    export.run(
        serving_options.ExportSavedModelOptions(
            export_dir=folder,
            head="masked_lm",
            top_k=3,
            max_seq_length=12,
            **checkpoint,
        )
    )
    return folder


@pytest.fixture(scope="module")
def serve(exported):
    """The signature of the SavedModel in memory."""
    return tf.saved_model.load(exported).signatures["serving_default"]


def test_every_mask_of_a_text_has_its_likeliest_words(exported, checkpoint):
    texts = ["the [MASK] of [MASK]", "[MASK]", "the\u00a0[MASK], [mask]"]
    answers = client.open_saved_model(exported).ask(text=texts)
    model = bert_tf.load(
        checkpoint["init_checkpoint"], vocab_file=checkpoint["vocab_file"]
    )
    assert [answer.pop("status") for answer in answers] == ["ok"] * 3
    runs.assert_close(answers, model.predict(texts, top_k=3))


@pytest.mark.parametrize(
    "text, num_masks, status",
    [
        ("no mask", 0, "no_mask"),
        ring.slow("", 0, "no_mask"),
        ring.slow("[mask]", 0, "no_mask"),
        # 12 pieces with [CLS] and [SEP].
        ring.slow("[MASK]" + " the" * 9, 1, "ok"),
        ("[MASK]" + " the" * 10, 1, "too_long"),  # Although the mask itself would fit.
        ring.slow("the " * 20 + "[MASK]", 1, "too_long"),
        ring.slow("the " * 20, 0, "too_long"),
    ],
)
def test_the_status_says_why_a_text_has_no_words(serve, text, num_masks, status):
    outputs = serve(text=tf.constant([text, "a [MASK] [MASK]"]))
    answers = {name: values.numpy() for name, values in outputs.items()}
    assert answers["status"].tolist() == [status.encode(), b"ok"]
    assert answers["num_masks"].tolist() == [num_masks, 2]
    assert answers["tokens"].shape == (2, 2, 3)
    for is_filled in (answers["tokens"] != b"", answers["probabilities"] > 0):
        assert is_filled.all(axis=2).tolist() == [[status == "ok", False], [True] * 2]


@pytest.mark.slow
def test_more_words_than_the_vocabulary_has_are_all_of_it(checkpoint, tmp_path):
    folder = str(tmp_path / "1")
    export.run(
        serving_options.ExportSavedModelOptions(
            export_dir=folder, head="masked_lm", top_k=10**6, **checkpoint
        )
    )
    [answer] = client.open_saved_model(folder).ask(text=["a [MASK]"])
    probabilities = [one["probability"] for one in answer["masks"][0]]
    assert sum(probabilities) == pytest.approx(1, abs=1e-4)


def test_top_k_is_only_for_models_that_fill_masks(single_run, tmp_path):
    with pytest.raises(ValueError, match=r"--top_k=3, but .* 'classification'"):
        export.export_saved_model(single_run, str(tmp_path / "1"), top_k=3)
    assert not (tmp_path / "1").exists()


def test_a_checkpoint_without_the_head_is_refused(single_run, tmp_path):
    with pytest.raises(ValueError, match=r"--head=masked_lm, but .* has no such head"):
        export.run(
            serving_options.ExportSavedModelOptions(
                export_dir=str(tmp_path / "1"),
                init_checkpoint=single_run,
                head="masked_lm",
            )
        )
