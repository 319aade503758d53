"""Loss scaling in float16: all replicas skip a step together."""

import contextlib
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.release import bundle
from bert_tf.optimization import adam_weight_decay
from bert_tf.training import distribution
from bert_tf.training import options as training_options
from bert_tf.training import steps
from tests import ring
from tests import runs


class OneWeight:
    """A model whose gradient is the sum of its inputs."""

    loss_names = ("loss_of_x",)
    loss_epsilons = types.MappingProxyType({})
    gathered_outputs = ()

    def __init__(self):
        self.weight = keras.Variable(1.0, name="kernel")
        self.trainable_variables = [self.weight]

    def training_outputs(self, features, dropout_keys):
        return {"product": features["x"] * self.weight.value}

    def dropout_keys(self, seed, step, example_index):
        return None

    def cpu_step(self, num_examples):
        return contextlib.nullcontext()

    def loss_weights(self, features):
        return {"loss_of_x": tf.reduce_sum(tf.ones_like(features["x"]))}

    def loss_sums(self, features, outputs):
        return {"loss_of_x": tf.reduce_sum(outputs["product"])}


@pytest.mark.parametrize(
    "name, is_asked, corrects",
    [("adamw", False, False), ("adamw", True, True), ("lamb", False, True)],
)
def test_the_bias_is_corrected_if_asked_and_always_by_lamb(name, is_asked, corrects):
    optimizer = adam_weight_decay.create_optimizer(
        1e-3, 9, 0, name=name, bias_correction=is_asked
    )
    assert optimizer.bias_correction is corrects


@pytest.mark.parametrize("replicas", ring.quick(2, of=(1, 2, 4)))
@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_all_replicas_leave_a_step_out_where_one_overflows(replicas, name, monkeypatch):
    monkeypatch.setattr(steps, "STEPS_TO_GROW", 3)
    # In step 1 the gradient of the third example, and only that, is inf.
    x = np.ones([7, 4], "float32")
    x[1, 2] = 1e36
    devices = training_options.DeviceOptions(device="mirrored", num_replicas=replicas)
    strategy = distribution.create_strategy(devices)
    with strategy.scope():
        model = OneWeight()
        optimizer = adam_weight_decay.create_optimizer(0.1, 1000, 0, name=name)
        optimizer.build(model.trainable_variables)
        optimizer.loss_scale = steps.LossScale()
    take = steps.build_train_steps(model, optimizer, strategy, random_seed=1)
    columns = {
        "x": x,
        "example_index": np.tile(np.arange(4, dtype="int32"), (7, 1)),
        "step": np.tile(np.arange(7, dtype="int32")[:, None], (1, 4)),
    }
    batches = tf.data.Dataset.from_tensor_slices(columns)
    iterator = distribution.distribute(batches, strategy)
    seen = []
    for _ in range(7):
        history = take(iterator, tf.constant(1))
        parts = strategy.experimental_local_results(model.weight.value)
        assert len({float(part) for part in parts}) == 1
        seen.append((float(history["loss_scale"][0]), float(parts[0])))
    scales, weights = zip(*seen, strict=True)
    start = steps.INITIAL_LOSS_SCALE
    # Halved after step 1, doubled again after three good steps.
    assert scales == (start, start, *[start / 2] * 3, start, start)
    assert weights[1] == weights[0]
    assert len(set(weights)) == 6
    assert all(np.isfinite(weights))


@pytest.mark.slow
def test_a_float16_run_goes_on_with_its_scale(pretrain, tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "STEPS_TO_GROW", 2)

    def run(folder):
        pretrain(
            output_dir=folder,
            num_train_steps=6,
            num_warmup_steps=0,
            save_checkpoints_steps=3,
            dtype="mixed_float16",
            optimizer="lamb",
            gradient_accumulation_steps=2,
        )
        return runs.metrics(folder)

    lines = run(tmp_path / "whole")
    scales = [line["loss_scale"] / steps.INITIAL_LOSS_SCALE for line in lines]
    assert scales == [1, 1, 2, 2, 4, 4]
    prefix = tmp_path / "whole" / "model.ckpt-6"
    shapes = bundle.read_names_and_shapes(prefix)
    kernel = "bert/encoder/layer_0/attention/self/query/kernel"
    assert {f"{kernel}/lamb_m", f"{kernel}/lamb_v", "loss_scale"} <= set(shapes)

    # A run that resumes after step 3 repeats steps 4 to 6 exactly.
    runs.copy_stopped(tmp_path / "whole", tmp_path / "parts", step=3, last_step=6)
    again = run(tmp_path / "parts")
    for name in ("loss", "loss_scale", "global_grad_norm"):
        assert [line[name] for line in again] == [line[name] for line in lines]
    runs.assert_same_tensors(tmp_path / "parts", tmp_path / "whole")

    # AdamW cannot resume from LAMB's slots.
    done = pretrain(output_dir=tmp_path / "parts", num_train_steps=8, exit_code=1)
    assert "it lacks" in done.stderr
    assert "adam_m" in done.stderr
