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


@pytest.mark.parametrize(
    "options, resolved",
    [
        (
            {"tpu_name": "my-tpu", "tpu_zone": "us-east1-d", "gcp_project": "p"},
            ("my-tpu", "us-east1-d", "p"),
        ),
        ({"tpu_name": "my-tpu"}, ("my-tpu", None, None)),
        # The release's scripts may pass empty values.
        ({"tpu_name": "my-tpu", "tpu_zone": ""}, ("my-tpu", None, None)),
        ({}, ("local", None, None)),  # A TPU VM needs no name.
    ],
)
def test_tpu_is_resolved_connected_initialized_in_this_order(
    tpu_calls, options, resolved
):
    strategy = create_strategy(device="tpu", **options)
    assert strategy == "the TPU"
    assert tpu_calls == [
        ("resolver", dict(zip(("tpu", "zone", "project"), resolved, strict=True))),
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
    told = r"Cannot connect to the TPU 'v9'.*--tpu_name.*--tpu_zone"
    with pytest.raises(ValueError, match=told):
        create_strategy(device="tpu", tpu_name="v9")


def test_gpu_where_there_is_none_is_refused(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    with pytest.raises(ValueError, match=r"--device=gpu, but TensorFlow finds no GPU"):
        create_strategy(device="gpu")


def test_a_batch_that_does_not_divide_is_refused():
    strategy = types.SimpleNamespace(num_replicas_in_sync=4)
    with pytest.raises(ValueError, match=r"--train_batch_size=12 .* 8 .*choose"):
        distribution.check_batch_size("train_batch_size", 12, strategy, micro_batches=2)


@pytest.mark.parametrize("distributed", [True, False])
def test_batches_are_not_fetched_ahead_to_cpus(distributed, monkeypatch):
    """Prefetching would start tf.data's tuner, which can delay the end of a run."""
    strategy = create_strategy(device="mirrored", num_replicas=2)
    if not distributed:
        strategy = create_strategy(device="cpu")
    fetched = []
    distributed_by = type(strategy).distribute_datasets_from_function

    def recorded(self, dataset_of, options):
        fetched.append(options)
        return distributed_by(self, dataset_of, options)

    monkeypatch.setattr(type(strategy), distributed_by.__name__, recorded)
    dataset = tf.data.Dataset.range(4).batch(2).map(lambda row: {"a": row})
    iterator = distribution.distribute(dataset, strategy)
    next(iterator)
    assert all(not options.experimental_fetch_to_device for options in fetched)
    assert len(fetched) == distributed


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
    tpu_calls, golden, tmp_path, run_tool, monkeypatch
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

    def call_and_see(self, features, **arguments):
        shapes.add(tuple(features["input_ids"].shape))
        return call(self, features, **arguments)

    model, optimizer = pretrainer.BertPretrainer, adam_weight_decay
    monkeypatch.setattr(model, "build", watch("model", build_model))
    monkeypatch.setattr(
        optimizer.AdamWeightDecay, "build", watch("optimizer", build_optimizer)
    )
    monkeypatch.setattr(model, "call", call_and_see)
    # 48 is not a multiple of 5, but no batch may be smaller.
    recorded = golden / "model"
    done = run_tool(
        "run_pretraining",
        f"--input_file={recorded / 'examples.tfrecord'}",
        f"--output_dir={tmp_path / 'run'}",
        f"--bert_config_file={recorded / 'bert_config.json'}",
        "--device=tpu",
        "--do_train",
        "--do_eval",
        "--max_seq_length=64",
        "--max_predictions_per_seq=10",
        "--train_batch_size=5",
        "--eval_batch_size=7",
        "--num_train_steps=11",
    )
    assert done.exit_code == 0, done.stderr
    assert [name for name, _ in tpu_calls] == ["resolver", "connect", "initialize"]
    assert made == [("model", True), ("optimizer", True)]
    assert shapes == {(5, 64), (7, 64)}


class HostParts(list):
    """The batches of each host, with an iterator that can be weakly referenced."""

    def __iter__(self):
        for index in range(len(self)):
            yield self[index]


class PodSlice:
    """Two hosts with two replicas each; every host has its own dataset."""

    num_replicas_in_sync = 4
    extended = types.SimpleNamespace(worker_devices=("/device:TPU:0",))

    def distribute_datasets_from_function(self, dataset_of, options):
        assert options.experimental_fetch_to_device
        contexts = [
            tf.distribute.InputContext(
                num_input_pipelines=2, input_pipeline_id=host, num_replicas_in_sync=4
            )
            for host in range(2)
        ]
        # `distribute` returns an iterator over this list.
        return HostParts([list(dataset_of(context)) for context in contexts])


def local_name():
    return "localhost"


def watched_datasets(monkeypatch):
    """Returns a list that collects the datasets served to hosts."""
    fetched, served = [], distribution.BatchServer.serve

    def watched(self, dataset):
        fetched.append(dataset)
        return served(self, dataset)

    monkeypatch.setattr(distribution.BatchServer, "serve", watched)
    return fetched


@pytest.mark.parametrize("reads", ["shares", "everything"])
def test_every_host_of_a_pod_slice_takes_its_share(reads, monkeypatch):
    monkeypatch.setattr(distribution.socket, "getfqdn", local_name)
    fetched = watched_datasets(monkeypatch)
    read = []

    def rows_of(share):
        read.append(share)

        def rows(step):
            # Our sources read in Python too, which other hosts do not run.
            return np.arange(share.start, share.stop) + 10 * step

        return tf.data.Dataset.range(3).map(
            lambda step: {
                "example": tf.ensure_shape(
                    tf.numpy_function(rows, [step], tf.int64), [len(share)]
                )
            }
        )

    strategy = PodSlice()
    if reads == "shares":
        hosts = distribution.distribute_shares(rows_of, 8, strategy)
        assert read == [range(4), range(4, 8)]
    else:
        hosts = distribution.distribute(rows_of(range(8)), strategy)
    # Python ran in this process, and the hosts fetched its results.
    assert len(fetched) == 2
    for host, parts in enumerate(hosts):
        assert [part["example"].numpy().tolist() for part in parts] == [
            [10 * step + first, 10 * step + first + 1]
            for step in range(3)
            for first in (4 * host, 4 * host + 2)
        ]


@pytest.mark.parametrize(
    "num_replicas, said", [(None, "(1 replica)"), (2, "(2 replicas)")]
)
def test_mirrored_without_gpus_says_that_the_cpu_computes(
    monkeypatch, caplog, num_replicas, said
):
    list_devices = tf.config.list_physical_devices
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind: [] if kind == "GPU" else list_devices(kind),
    )
    create_strategy(device="mirrored", num_replicas=num_replicas)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "no GPU" in record.getMessage()
    assert said in record.getMessage()
