import logging
import os
import types
import urllib.error

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.modeling import pretrainer
from bert_tf.optimization import adam_weight_decay
from bert_tf.training import distribution
from bert_tf.training import options as training_options


def create_strategy(**options):
    return distribution.create_strategy(training_options.DeviceOptions(**options))


@pytest.fixture
def tpu_calls(monkeypatch):
    """Replaces the calls that need a TPU; returns the list of calls made."""
    calls = []
    resolver = object()

    def resolve(**arguments):
        calls.append(("resolver", arguments))
        return resolver

    def record(name, result=None):
        def call(argument):
            calls.append((name, argument is resolver))
            return result

        return call

    cluster = tf.distribute.cluster_resolver
    monkeypatch.setattr(cluster, "TPUClusterResolver", resolve)
    monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", record("connect"))
    monkeypatch.setattr(
        tf.tpu.experimental, "initialize_tpu_system", record("initialize")
    )
    monkeypatch.setattr(tf.distribute, "TPUStrategy", record("strategy", "the TPU"))
    return calls


@pytest.mark.parametrize("tpu_name", [None, "local"])
def test_tpu_is_resolved_connected_initialized_in_this_order(tpu_calls, tpu_name):
    strategy = create_strategy(device="tpu", tpu_name=tpu_name)
    assert strategy == "the TPU"
    assert tpu_calls == [
        ("resolver", {"tpu": "local"}),
        ("connect", True),
        ("initialize", True),
        ("strategy", True),
    ]


@pytest.mark.parametrize(
    "failure",
    [
        ValueError("Could not lookup TPU metadata"),
        urllib.error.URLError("Name or service not known"),  # Outside a cloud.
    ],
)
def test_a_tpu_that_is_not_there_is_named(monkeypatch, failure):
    def fail(**arguments):
        raise failure

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", fail)
    with pytest.raises(ValueError, match=r"TPU of this machine.*on a TPU VM"):
        create_strategy(device="tpu")


def test_gpu_where_there_is_none_is_refused(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    with pytest.raises(ValueError, match=r"--device=gpu, but TensorFlow finds no GPU"):
        create_strategy(device="gpu")


def test_memory_grows_unless_the_user_decides(monkeypatch):
    for chosen, expected in ((None, "true"), ("false", "false")):
        with monkeypatch.context() as patch:
            patch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
            if chosen:
                patch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", chosen)
            create_strategy(device="cpu")
            assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == expected


@pytest.mark.parametrize(
    "device, buckets, given, is_compiled",
    [
        ("GPU", (), None, True),
        ("GPU", (64, 128), None, False),  # Each length would be compiled.
        ("GPU", (64, 128), True, True),
        ("GPU", (), False, False),
        ("CPU", (), None, False),
        ("CPU", (), True, True),
    ],
)
def test_xla_is_the_default_on_gpus(device, buckets, given, is_compiled, caplog):
    extended = types.SimpleNamespace(worker_devices=(f"/device:{device}:0",))
    strategy = types.SimpleNamespace(extended=extended)
    options = types.SimpleNamespace(length_buckets=buckets, jit_compile=given)
    with caplog.at_level(logging.INFO):
        assert distribution.compiles_step(options, strategy) == is_compiled
    is_logged = "--jit_compile=false turns it off" in caplog.text
    assert is_logged == (is_compiled and given is None)


def test_a_batch_that_does_not_divide_is_refused():
    strategy = types.SimpleNamespace(num_replicas_in_sync=4)
    with pytest.raises(ValueError, match=r"--train_batch_size=12 .* 8 .*choose"):
        distribution.check_batch_size("train_batch_size", 12, strategy, micro_batches=2)


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_replicas_get_contiguous_parts_of_the_global_batch(replicas):
    strategy = create_strategy(device="mirrored", num_replicas=replicas)
    batches = tf.data.Dataset.range(3).map(
        lambda step: {"example": tf.range(4) + 4 * tf.cast(step, tf.int32)}
    )
    iterator = distribution.distribute(batches, strategy)
    for step in range(3):
        parts = strategy.experimental_local_results(next(iterator)["example"])
        assert len(parts) == replicas
        assert all(part.shape == (4 // replicas,) for part in parts)
        np.testing.assert_array_equal(
            np.concatenate(parts), np.arange(4 * step, 4 * step + 4)
        )


def test_on_a_tpu_model_and_optimizer_are_made_in_scope_and_shapes_are_static(
    tpu_calls, pretrain, monkeypatch
):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    monkeypatch.setattr(tf.distribute, "TPUStrategy", lambda resolver: strategy)
    made, shapes = [], set()
    build_model = pretrainer.BertPretrainer.build
    build_optimizer = adam_weight_decay.AdamWeightDecay.build
    call = pretrainer.BertPretrainer.call

    def watch(name, build):
        def watched(*arguments):
            made.append((name, tf.distribute.get_strategy() is strategy))
            return build(*arguments)

        return watched

    # With the signature of `call`, which Keras inspects.
    def call_and_see(
        self, features, training=False, dropout_keys=None, heads_only=False
    ):
        shapes.add(tuple(features["input_ids"].shape))
        return call(self, features, training, dropout_keys, heads_only)

    model, optimizer = pretrainer.BertPretrainer, adam_weight_decay
    monkeypatch.setattr(model, "build", watch("model", build_model))
    monkeypatch.setattr(
        optimizer.AdamWeightDecay, "build", watch("optimizer", build_optimizer)
    )
    monkeypatch.setattr(model, "call", call_and_see)
    # 48 is not a multiple of 5, but no batch may be smaller.
    flags = {"train_batch_size": 5, "eval_batch_size": 7, "num_train_steps": 11}
    pretrain(device="tpu", do_eval=True, **flags)
    assert [name for name, _ in tpu_calls] == ["resolver", "connect", "initialize"]
    assert made == [("model", True), ("optimizer", True)]
    assert shapes == {(5, 64), (7, 64)}
