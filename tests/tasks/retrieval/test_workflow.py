"""Whole runs on a task that is learned in seconds, and refused options and files."""

import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.training import plots
from tests import runs

BEST = "eval_mrr"
PAIRS = (("the bee", "honey and wax"), ("the lamp", "light"), ("the river", "is cold"))


@pytest.fixture(scope="module")
def run_dir(trained):
    """Folder of a bi-encoder's run that has memorized its pairs."""
    return trained("retrieval")


@pytest.fixture(scope="module")
def cross_dir(tmp_path_factory, retrieval_options, run_dir):
    """Folder of a cross-encoder's run, which reranks the bi-encoder's passages."""
    folder = tmp_path_factory.mktemp("runs") / "cross"
    options = retrieval_options(
        folder,
        model="cross_encoder",
        do_eval=True,
        do_predict=True,
        retrieve_with=str(run_dir),
        num_candidates=6,
        num_negatives=7,
        num_train_epochs=2.0,
    )
    fine_tuning_run.run(options)
    return folder


def test_predictions_are_rankings_of_the_corpus(run_dir):
    first, second = runs.json_lines(run_dir / "predictions.jsonl")
    assert (first["id"], first["query"]) == ("test-1", "the bee")
    assert (second["id"], second["query"]) == ("test-3", "the river")
    assert len(first["passages"]) == 10
    # The fifth line of the corpus; the second one is blank.
    assert first["passages"][0]["id"] == "5"
    assert first["passages"][0]["text"] == "honey and wax"
    scores = [passage["score"] for passage in first["passages"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] <= 1.0001
    baseline = plots.read_data(str(run_dir))["baselines"]["eval_recall_at_5"]
    assert baseline == {"name": "random order", "value": 5 / 11}  # 11 passages.


def test_a_finished_run_ranks_and_embeds(run_dir, tmp_path):
    model = bert_tf.load(str(run_dir))
    [answer] = model.predict(["the lamp"], top_k=2)
    assert answer["query"] == "the lamp"
    assert answer["passages"][0]["text"] == "light at midnight"
    assert len(answer["passages"]) == 2
    with pytest.raises(ValueError, match=r"top_k is 1\.5; expected an integer"):
        model.predict(["the lamp"], top_k=1.5)
    vectors = model.embed(["honey and wax", "warm bread"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert model.embed([]).shape == (0, 16)
    run = shutil.copytree(run_dir, tmp_path / "run")
    (run / search_module.PASSAGES_FILE).unlink()
    with pytest.raises(ValueError, match="has no passages yet; start"):
        bert_tf.load(str(run)).predict(["the bee"])


def test_vectors_of_a_corpus_are_computed_once_per_step(
    run_dir, retrieval_options, monkeypatch
):
    embedded = []
    original = search_module.Retriever.corpus

    def watched(self, texts):
        embedded.append(len(texts))
        return original(self, texts)

    monkeypatch.setattr(search_module.Retriever, "corpus", watched)
    options = retrieval_options(run_dir, do_train=False, do_eval=True, do_predict=True)
    run = fine_tuning_run.Run(options)
    run.work()
    assert embedded == [11]
    run.trainer.step += 1
    run.evaluate()
    assert embedded == [11, 11]


def test_candidates_of_a_cross_encoder_are_found_once(
    tmp_path, run_dir, retrieval_options, monkeypatch
):
    embedded = []
    original = search_module.Retriever.queries

    def watched(self, texts):
        embedded.append(len(texts))
        return original(self, texts)

    monkeypatch.setattr(search_module.Retriever, "queries", watched)
    options = retrieval_options(
        tmp_path,
        model="cross_encoder",
        do_eval=True,
        retrieve_with=str(run_dir),
        num_candidates=2,
    )
    run = fine_tuning_run.Run(options)
    assert run.evaluate() == run.evaluate()
    assert len(embedded) == 1


def test_an_evaluation_writes_the_passages_and_plots_write_nothing(
    run_dir, retrieval_options, tmp_path
):
    copy = shutil.copytree(run_dir, tmp_path / "run")
    passages = (copy / search_module.PASSAGES_FILE).read_text()
    (copy / search_module.PASSAGES_FILE).unlink()
    run = fine_tuning_run.Run(retrieval_options(copy, do_train=False, do_eval=True))
    evaluation = run.task.evaluate(run.trainer.predict)
    assert (copy / search_module.PASSAGES_FILE).read_text() == passages
    (copy / search_module.PASSAGES_FILE).unlink()
    run.task.plot_data(evaluation)
    assert not (copy / search_module.PASSAGES_FILE).exists()


@pytest.mark.slow
def test_a_cross_encoder_ranks_again_what_was_found(cross_dir):
    assert 0 < runs.scores(cross_dir)["eval_mrr"] <= 1
    baselines = plots.read_data(str(cross_dir))["baselines"]  # Of six candidates.
    assert [*baselines] == ["eval_recall_at_1", "eval_recall_at_5", "eval_mrr"]
    first, _ = runs.json_lines(cross_dir / "predictions.jsonl")
    assert len(first["passages"]) == 6
    scores = {passage["text"]: passage["score"] for passage in first["passages"]}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert "pipeline_tag: text-ranking" in (cross_dir / "README.md").read_text()
    pair = ("the bee", "honey and wax")
    [answer] = bert_tf.load(str(cross_dir)).predict([pair])
    assert answer == {"score": pytest.approx(scores[pair[1]], abs=1e-5)}
    with pytest.raises(ValueError, match=r"Input 1 is .*; expected \(query, passage\)"):
        bert_tf.load(str(cross_dir)).predict([pair, ("the bee", ["wax"])])


def test_a_cross_encoder_learns_which_passage_is_right(
    tmp_path, retrieval_options, write
):
    rows = [
        {"query": query, "passage": passage, "negatives": ["ball ball", "wheel wheel"]}
        for query, passage in PAIRS
    ]
    options = retrieval_options(
        tmp_path,
        model="cross_encoder",
        train_file=write("train.jsonl", rows),
        num_negatives=2,
        train_batch_size=3,
        num_train_epochs=60.0,
    )
    fine_tuning_run.Run(options).train()
    losses = [line["loss"] for line in runs.json_lines(tmp_path / "metrics.jsonl")]
    assert losses[0] == pytest.approx(np.log(3), abs=0.1)  # Of three, nothing known.
    assert np.mean(losses[-3:]) < 0.6


@pytest.mark.parametrize(
    "values, candidates",
    [
        ({}, 1),  # The batch has enough.
        ({"num_negatives": 2}, 3),
        ({"train_file": "given"}, 2),  # The most that a row gives is one.
        ({"model": "cross_encoder"}, 5),
        ({"model": "cross_encoder", "num_negatives": 1}, 2),
    ],
)
def test_negatives_follow_flag_file_and_model(
    tmp_path, retrieval_options, write, values, candidates
):
    if "train_file" in values:
        rows = [{"query": "a", "passage": "b", "negatives": ["c"]}] * 8
        values = {"train_file": write("train.jsonl", rows)}
    task = fine_tuning_run.prepare(retrieval_options(tmp_path, **values))
    source = task.training_data().source
    assert source.candidates(0, [0, 1]).shape == (2, candidates)


def test_an_encoder_is_evaluated_as_it_is(tmp_path, retrieval_options, golden):
    prefix = str(golden / "model" / "bert_model.ckpt")
    options = retrieval_options(
        tmp_path,
        do_train=False,
        do_eval=True,
        init_checkpoint=prefix,
        bert_config_file=str(golden / "model" / "bert_config.json"),
    )
    assert 0 < fine_tuning_run.Run(options).evaluate()["eval_mrr"] < 1
    model = fine_tuning_run.Run(options).trainer.model
    name = "bert/encoder/layer_1/output/dense/kernel"
    np.testing.assert_array_equal(
        checkpoint_names.checkpoint_variables(model)[name],
        bundle.read(prefix, [name])[name],
    )


def test_pooling_and_casing_are_the_checkpoints(tmp_path, retrieval_options, run_dir):
    other = shutil.copytree(run_dir, tmp_path / "other")
    task = json.loads((other / "task.json").read_text())
    task |= {"pooling": "cls", "do_lower_case": False}
    (other / "task.json").write_text(json.dumps(task))
    values = {"init_checkpoint": str(other), "vocab_file": None}
    options = retrieval_options(tmp_path / "run", **values)
    record = fine_tuning_run.prepare(options).record
    assert (record.pooling, record.do_lower_case) == ("cls", False)
    options = retrieval_options(tmp_path / "run", pooling="max", **values)
    assert fine_tuning_run.prepare(options).record.pooling == "max"
    with pytest.raises(ValueError, match="pass --do_lower_case=False"):
        fine_tuning_run.run(
            retrieval_options(tmp_path / "run", do_lower_case=True, **values)
        )


@pytest.mark.parametrize(
    "values, message",
    [
        ({"max_query_length": 65}, "max_position_embeddings"),
        ({"corpus_file": "nowhere.txt"}, "nowhere.txt"),
        (
            {"num_negatives": 1, "corpus_file": None, "train_file": "one"},
            "All 1 passages answer one query",
        ),
        ({"eval_file": "one", "do_eval": True}, r"one\.jsonl:1: .* is not in .*txt"),
    ],
)
def test_what_does_not_fit_is_refused_before_training(
    tmp_path, retrieval_options, values, message, write
):
    one = write("one.jsonl", [{"query": "a", "passage": "b"}])
    values = {name: one if value == "one" else value for name, value in values.items()}
    options = retrieval_options(tmp_path / "run", train_batch_size=1, **values)
    with pytest.raises((ValueError, OSError), match=message):
        fine_tuning_run.run(options)
    assert not (tmp_path / "run").exists()


APPLIED = {"do_train": False, "do_eval": True}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"max_query_length": 9}, "max_query_length 8, but this one has 9"),
        ({"model": "cross_encoder"}, "model 'bi_encoder', but this one has"),
        (APPLIED | {"pooling": "cls"}, "--pooling=cls, but .* with mean; omit"),
        (APPLIED | {"model": "cross_encoder", "retrieve_with": "x"}, "bi_encoder; use"),
    ],
)
def test_a_run_is_neither_continued_nor_applied_as_another_one(
    run_dir, retrieval_options, values, message
):
    with pytest.raises(ValueError, match=message):
        fine_tuning_run.run(retrieval_options(run_dir, **values))


@pytest.fixture
def rank_with(retrieval_options, run_dir):
    """Returns options that rank the bi-encoder's passages with a checkpoint."""

    def create(init_checkpoint, output_dir, **values):
        given = APPLIED | {"model": "cross_encoder", "num_candidates": 6}
        given |= {"retrieve_with": str(run_dir), "init_checkpoint": init_checkpoint}
        return retrieval_options(output_dir, **given | values)

    return create


def test_a_head_that_gives_no_score_does_not_rank(tmp_path, golden, rank_with):
    options = rank_with(str(golden / "model" / "bert_model.ckpt"), tmp_path)
    with pytest.raises(ValueError, match="was not fine-tuned to rank"):
        fine_tuning_run.run(options)


@pytest.mark.slow
def test_a_finished_cross_encoder_ranks(tmp_path, cross_dir, rank_with):
    score = fine_tuning_run.Run(rank_with(cross_dir, tmp_path)).evaluate()[BEST]
    assert score == pytest.approx(runs.scores(cross_dir)[BEST])
    options = rank_with(None, cross_dir, retrieve_with=str(cross_dir))
    with pytest.raises(ValueError, match="expected the run of a bi_encoder"):
        fine_tuning_run.run(options)
