"""What the flags of a training run change."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import progress
from bert_tf.data import batching
from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.training import loop
from bert_tf.training import options as training_options
from tests import runs


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags, shape, calls, evaluations, rates",
    [
        # Calls of 1, 2, 3 steps; 48 examples, 8 per batch.
        ({}, [2, 64], [1, 3, 6], 6, [0.8333, 0.6667, 0.5, 0.3333, 0.1667, 0.0]),
        (
            {
                "train_batch_size": 4,
                "eval_batch_size": 16,
                "eval_input_file": "default.tfrecord",  # 146 examples.
                "max_eval_steps": 0,
                "iterations_per_loop": 1,
                "num_warmup_steps": 4,
            },
            [4, 64],
            [1, 2, 3, 4, 5, 6],
            10,
            [0.25, 0.5, 0.75, 0.3333, 0.1667, 0.0],
        ),
    ],
)
def test_sizes_of_batches_and_of_calls_follow_their_flags(
    golden, tmp_path, monkeypatch, flags, shape, calls, evaluations, rates
):
    done = {"train": [], "evaluate": []}
    shapes = []
    training_batches = batching.TFRecordSource.training_batches

    def watched(*args, **kwargs):
        dataset = training_batches(*args, **kwargs)
        shapes.append(dataset.element_spec["input_ids"].shape.as_list())
        return dataset

    monkeypatch.setattr(batching.TFRecordSource, "training_batches", watched)
    # Calls become longer, also on a busy machine.
    monkeypatch.setattr(loop, "SECONDS_PER_CALL", 1e6)
    monkeypatch.chdir(golden)
    defaults = {
        "input_file": "model/examples.tfrecord",
        "bert_config_file": "model/bert_config.json",
        "output_dir": str(tmp_path),
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "do_train": True,
        "do_eval": True,
        "learning_rate": 1.0,
        "num_train_steps": 6,
        "num_warmup_steps": 0,
        "train_batch_size": 2,
    }
    with progress.reporting_to(
        lambda stage, steps, *_, **unused: done.setdefault(stage, []).append(steps)
    ):
        pretraining_workflow.run(
            pretraining_options.RunPretrainingOptions(**defaults | flags)
        )
    assert shapes == [shape]
    assert done["train"] == calls
    assert done["evaluate"] == list(range(1, evaluations + 1))
    assert [round(one["learning_rate"], 4) for one in runs.metrics(tmp_path)] == rates


@pytest.fixture
def small(golden):
    path = golden / "model" / "bert_config.json"
    return config_module.BertConfig.from_json_file(path)


def traced_graph(small, output_dir, **flags):
    """Returns the graph of the training steps for batches of 4 short examples."""
    trainer = loop.Trainer(
        lambda: pretrainer.BertPretrainer(small, next_sentence=False),
        pretraining_options.RunPretrainingOptions(
            input_file="unused",
            output_dir=str(output_dir),
            device="cpu",
            train_batch_size=4,
            **flags,
        ),
        num_train_steps=9,
    )
    columns = {
        "input_ids": np.ones([4, 6], "int32"),
        "masked_lm_positions": np.ones([4, 1], "int32"),
        "masked_lm_ids": np.ones([4, 1], "int32"),
        "masked_lm_weights": np.ones([4, 1], "float32"),
    }
    train_steps, iterator = trainer.prepare_steps(batching.ArraySource(columns))
    return train_steps.get_concrete_function(iterator, tf.constant(1)).graph


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_jit_compile_has_xla_compile_the_gradients(small, tmp_path, jit_compile):
    graph = traced_graph(small, tmp_path, jit_compile=jit_compile)
    compiled = [
        function
        for function in graph.as_graph_def().library.function
        if function.attr["_XlaMustCompile"].b
    ]
    assert bool(compiled) == jit_compile


@pytest.mark.slow
@pytest.mark.parametrize("gradient_accumulation_steps, rows", [(1, 4), (2, 2), (4, 1)])
def test_the_model_sees_one_micro_batch_at_a_time(
    small, tmp_path, monkeypatch, gradient_accumulation_steps, rows
):
    seen = set()
    call = pretrainer.BertPretrainer.call

    # With the signature of `call`, which Keras inspects.
    def watched(self, features, training=False, dropout_keys=None, heads_only=False):
        seen.add(features["input_ids"].shape[0])
        return call(self, features, training, dropout_keys, heads_only)

    monkeypatch.setattr(pretrainer.BertPretrainer, "call", watched)
    traced_graph(
        small, tmp_path, gradient_accumulation_steps=gradient_accumulation_steps
    )
    assert seen == {rows}


@pytest.mark.parametrize(
    "learning_rate, num_warmup_steps, warnings",
    [
        (1e-4, 9, []),  # As long as the run: the rate comes close to its peak.
        (
            1e-4,
            90,
            [
                "The warm-up (90 steps) is longer than the run (9 steps), so the "
                "learning rate reaches only 1e-05 instead of 0.0001."
            ],
        ),
        (0.0, 90, ["--learning_rate=0: training does not change the weights."]),
        (
            1e-3,
            3,
            [
                "Without --bias_correction, the learning rate of 0.001 acts like one "
                "of up to 0.0033 (in step 3)."
            ],
        ),
    ],
)
def test_a_schedule_that_trains_unlike_expected_is_named_before_training(
    small, tmp_path, caplog, learning_rate, num_warmup_steps, warnings
):
    caplog.set_level("INFO", "bert_tf")
    loop.Trainer(
        lambda: pretrainer.BertPretrainer(small, next_sentence=False),
        training_options.TrainerOptions(
            output_dir=str(tmp_path), device="cpu", learning_rate=learning_rate
        ),
        num_train_steps=9,
        num_warmup_steps=num_warmup_steps,
    )
    assert [text for text in caplog.messages if "rate" in text] == warnings


def test_predictions_that_are_nan_are_refused(small, tmp_path):
    trainer = loop.Trainer(
        lambda: classifier.BertClassifier(small, num_labels=2),
        training_options.TrainerOptions(output_dir=str(tmp_path), device="cpu"),
    )
    kernel = trainer.model.bert.pooler.dense.kernel
    kernel.assign(np.full(kernel.shape, np.nan))
    columns = {
        name: np.ones([3, 8], np.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    with pytest.raises(ValueError, match="logits are NaN for 3 of 3 examples"):
        trainer.predict(batching.ArraySource(columns), keys=("logits",))


def test_calls_take_twice_as_many_steps_until_they_last_a_second():
    pace = loop.Pace(batch_size=8)
    lengths = []
    for _ in range(6):
        lengths.append(pace.num_steps)
        pace.record_call(pace.num_steps, seconds=0.1 * pace.num_steps)
    assert lengths == [1, 2, 4, 8, 8, 8]


@pytest.mark.parametrize(
    "num_steps, logged",
    [
        (3, [1, 2, 3]),  # All of a short run.
        (250, range(5, 251, 5)),
        (10**6, range(100, 10**6 + 1, 100)),  # As in the release.
    ],
)
def test_every_curve_has_fifty_points(num_steps, logged):
    found = [s for s in range(1, num_steps + 1) if loop.is_logged(s, num_steps)]
    assert found == list(logged)
