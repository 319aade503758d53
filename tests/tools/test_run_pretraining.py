"""run_pretraining as its user sees it: files, scores, resuming, mistakes."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.data import batching
from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import scores
from tests import runs


@pytest.fixture
def pretrain(pretrain):
    """Runs the tool on the recorded examples; it trains only if told to."""
    return functools.partial(
        pretrain,
        do_train=None,
        num_train_steps=6,
        num_warmup_steps=2,
        learning_rate=1e-3,
    )


def test_training_and_evaluating_leave_a_whole_run_folder(pretrain, golden, tmp_path):
    done = pretrain(
        do_train=True,
        do_eval=True,
        save_checkpoints_steps=2,
        keep_checkpoint_max=2,
        vocab_file=golden / "vocab.txt",
    )
    assert "The evaluation uses the training data" in done.stderr
    run = tmp_path / "run"
    names = {path.name for path in run.iterdir()}
    assert {
        "bert_config.json",
        "checkpoint",
        "eval_results.txt",
        "metrics.jsonl",
        "run.json",
        "task.json",
        "vocab.txt",
        "model.ckpt-4.index",
        "model.ckpt-6.index",
        "model.ckpt-6.data-00000-of-00001",
    } <= names
    assert "model.ckpt-2.index" not in names
    assert [line["step"] for line in runs.metrics(run)] == [1, 2, 3, 4, 5, 6]
    assert tf.train.latest_checkpoint(str(run)) == str(run / "model.ckpt-6")
    assert sorted(runs.scores(run)) == [
        "global_step",
        "loss",
        "masked_lm_accuracy",
        "masked_lm_loss",
        "next_sentence_accuracy",
        "next_sentence_loss",
    ]


@pytest.fixture(scope="module")
def initial_scores(golden):
    """Scores of the recorded initial weights, all 48 examples in one batch."""
    folder = golden / "model"
    model = pretrainer.BertPretrainer(
        config_module.BertConfig.from_json_file(folder / "bert_config.json")
    )
    model.build()
    loading.load_checkpoint(model, str(folder / "bert_model.ckpt"))
    source = batching.TFRecordSource(
        tfrecord.RecordFiles([folder / "examples.tfrecord"])
    )
    [batch] = batching.evaluation_batches(source, batch_size=48)
    sums = model.loss_sums(batch, model(batch))
    weights = model.loss_weights(batch)
    return {name: float(sums[name] / weights[name]) for name in sums}


# 48 examples: a part of a batch is left over, or one batch is not filled.
@pytest.mark.parametrize("batch_size", [5, 64])
def test_evaluation_counts_every_example_once(
    pretrain, golden, tmp_path, initial_scores, batch_size
):
    pretrain(
        do_eval=True,
        init_checkpoint=golden / "model" / "bert_model.ckpt",
        eval_batch_size=batch_size,
    )
    results = runs.scores(tmp_path / "run")
    for name, value in initial_scores.items():
        assert results[name] == pytest.approx(value, rel=1e-5)


@pytest.mark.slow
def test_best_checkpoint_is_kept_and_training_stops_early(pretrain, tmp_path):
    # With such a high rate, the loss only rises after the first evaluation.
    pretrain(
        do_train=True,
        learning_rate=3.0,
        num_train_steps=30,
        num_warmup_steps=0,
        eval_every_steps=2,
        early_stopping_evals=2,
        best_metric="eval_masked_lm_loss",
    )
    lines = runs.metrics(tmp_path / "run")
    evaluations = [line for line in lines if "eval_masked_lm_loss" in line]
    losses = [line["eval_masked_lm_loss"] for line in evaluations]
    best = int(np.argmin(losses))
    assert len(losses) == best + 3
    assert evaluations[-1]["step"] < 30
    assert "learning_rate" not in evaluations[0]
    perplexity = scores.perplexity(losses[0])
    written = perplexity if np.isfinite(perplexity) else None
    assert evaluations[0]["eval_perplexity"] == written
    assert 0 <= evaluations[0]["eval_masked_lm_accuracy"] <= 1
    kept = tf.train.latest_checkpoint(str(tmp_path / "run" / "best"))
    assert kept.endswith(f"model.ckpt-{evaluations[best]['step']}")


@pytest.mark.slow
def test_a_run_of_another_model_is_not_continued(pretrain, golden, tmp_path):
    pretrain(do_train=True, num_train_steps=2)
    config = json.loads((golden / "model" / "bert_config.json").read_text())
    other = tmp_path / "other.json"
    # No weight's shape shows the number of heads.
    other.write_text(json.dumps(config | {"num_attention_heads": 4}))
    done = pretrain(
        do_train=True, num_train_steps=4, bert_config_file=other, exit_code=1
    )
    assert "num_attention_heads is 2 there, 4" in done.refusal

    other.write_text(json.dumps(config | {"hidden_dropout_prob": 0.0}))
    changed = {"num_train_steps": 4, "bert_config_file": other}
    done = pretrain(do_train=True, **changed)
    assert "hidden_dropout_prob was 0.1, now 0.0" in done.stderr
    done = pretrain(do_train=True, **changed | {"random_seed": 7}, exit_code=1)
    assert "random_seed 12345; this command has random_seed 7" in done.stderr


def amount(done, name):
    """Returns the number behind a name in a dry run's report."""
    [line] = [line for line in done.stdout.splitlines() if line.startswith(name)]
    return float(line.removeprefix(name).split()[0])


def test_a_dry_run_measures_steps_and_writes_nothing(pretrain, golden, tmp_path):
    checkpoint = tf.train.load_checkpoint(str(golden / "model" / "bert_model.ckpt"))
    shapes = checkpoint.get_variable_to_shape_map()
    del shapes["global_step"]
    num_parameters = sum(int(np.prod(shape)) for shape in shapes.values())
    done = pretrain(dry_run=True, num_train_steps=1000)
    assert f"parameters        {num_parameters:,}" in done.stdout
    assert "steps             1,000" in done.stdout
    assert 0 < amount(done, "memory") < 100
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_order_and_seed_follow_their_flags(pretrain, tmp_path):
    def first_losses(name, **flags):
        output_dir = tmp_path / name
        pretrain(do_train=True, num_train_steps=2, output_dir=output_dir, **flags)
        return [line["loss"] for line in runs.metrics(output_dir)]

    shuffled = first_losses("shuffled")
    assert first_losses("in_order", shuffle_buffer_size=1) != shuffled
    assert first_losses("other_seed", random_seed=1) != shuffled


@pytest.mark.parametrize(
    "flags, code, said",
    [
        ({}, 2, "--do_train, --do_eval or --dry_run"),
        ({"bert_config_file": None}, 2, "A new run needs --bert_config"),
        ({"input_file": "/no/*.tfrecord"}, 1, "/no/*.tfrecord"),
        ({"max_seq_length": 32}, 1, "max_seq_length 64, expected 32"),
        ({"max_seq_length": 65}, 1, "max_position_embeddings"),
        ({"gradient_accumulation_steps": 3}, 1, "not divisible by 3"),
        ({"output_dir": "/proc/run"}, 1, "/proc/run"),
        (
            {"best_metric": "eval_f9", "eval_every_steps": 2},
            1,
            "of this run: eval_loss, eval_masked_lm_accuracy, eval_masked_lm_loss, ev",
        ),
    ],
)
def test_a_mistake_ends_in_one_clear_line(pretrain, flags, code, said):
    done = pretrain(do_train=True if flags else None, **flags, exit_code=code)
    assert said in done.refusal
