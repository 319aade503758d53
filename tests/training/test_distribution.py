import types
import urllib.error

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.training import distribution


@pytest.fixture
def tpu_calls(monkeypatch):
    """Replaces what needs a TPU by doubles; returns the list of calls made."""
    calls = []
    resolver = object()

    def resolve(tpu):
        calls.append(("resolver", tpu))
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


@pytest.mark.parametrize(
    "tpu_name, resolved",
    [
        ("my-tpu", "my-tpu"),
        (None, "local"),  # On a TPU VM there is nothing to name.
    ],
)
def test_tpu_is_resolved_connected_initialized_in_this_order(
    tpu_calls, tpu_name, resolved
):
    strategy = distribution.create_strategy("tpu", tpu_name=tpu_name)
    assert strategy == "the TPU"
    assert tpu_calls == [
        ("resolver", resolved),
        ("connect", True),
        ("initialize", True),
        ("strategy", True),
    ]


@pytest.mark.parametrize(
    "failure",
    [
        ValueError("Could not lookup TPU metadata"),
        urllib.error.URLError("Name or service not known"),  # Outside of a cloud.
    ],
)
def test_a_tpu_that_is_not_there_is_named(monkeypatch, failure):
    def fail(tpu):
        raise failure

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", fail)
    with pytest.raises(ValueError, match=r"No TPU named 'v9'.*--tpu_name"):
        distribution.create_strategy("tpu", tpu_name="v9")


def test_gpu_where_there_is_none_is_refused(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    with pytest.raises(ValueError, match=r"--device=gpu, but TensorFlow finds no GPU"):
        distribution.create_strategy("gpu")


def test_a_batch_that_does_not_divide_is_refused():
    strategy = types.SimpleNamespace(num_replicas_in_sync=4)
    with pytest.raises(ValueError, match=r"--train_batch_size=12 .* 8 .*choose"):
        distribution.check_batch_size("train_batch_size", 12, strategy, micro_batches=2)


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_replicas_get_contiguous_parts_of_the_global_batch(replicas):
    strategy = distribution.create_strategy("mirrored", num_replicas=replicas)
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
