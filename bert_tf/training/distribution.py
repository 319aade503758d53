"""Devices: one tf.distribute strategy for every --device, and batches for it."""

import logging
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf.training import options as training_options
from bert_tf.training import workers

logger = logging.getLogger(__name__)


def create_strategy(options: training_options.DeviceOptions) -> tf.distribute.Strategy:
    """Returns the tf.distribute strategy of a run.

    --device=mirrored on a machine without GPUs divides the CPU into logical devices.
    That has to happen before TensorFlow first uses the CPU.

    Except for TPUs it sets TF_FORCE_GPU_ALLOW_GROWTH, if it is not set, for the rest
    of the process: TensorFlow then takes memory as it needs it, instead of the whole
    card at once, so several processes can share a card. It also sets up GPUs that it
    does not use.

    Raises:
        ValueError: the device does not exist.
        OSError: not all workers of --device=multi_worker connected.
    """
    if options.device == "tpu":
        return _tpu_strategy()
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    is_on_cpu = options.device == "cpu"
    gpus_found = [] if is_on_cpu else tf.config.list_physical_devices("GPU")
    if options.device == "multi_worker":
        return workers.create_strategy()
    if options.device == "mirrored":
        return _mirrored_strategy(options.num_replicas, gpus_found)
    if options.device == "gpu" and not gpus_found:
        raise ValueError(
            "--device=gpu, but TensorFlow finds no GPU on this machine. Use "
            "--device=cpu, or install tensorflow[and-cuda]."
        )
    if not gpus_found:
        return tf.distribute.OneDeviceStrategy("/cpu:0")
    if len(gpus_found) > 1 and options.device == "auto":
        return tf.distribute.MirroredStrategy()
    return tf.distribute.OneDeviceStrategy("/gpu:0")


def compiles_step(
    options: training_options.TrainerOptions, strategy: tf.distribute.Strategy
) -> bool:
    """Returns whether XLA compiles forward and backward pass.

    By default it does on GPUs, unless the batches have several lengths, because each
    length is compiled separately. Fused operations should save most of the time that is
    not spent in matrix products; this was not measured on a GPU. On CPUs oneDNN's
    matrix products are faster than XLA's.
    """
    if options.jit_compile is not None:
        return options.jit_compile
    is_default = not options.length_buckets and runs_on(strategy, "GPU")
    if is_default:
        logger.info("XLA compiles the step; --jit_compile=false turns it off.")
    return is_default


def _mirrored_strategy(num_replicas, gpus_found):
    if gpus_found:
        count = num_replicas or len(gpus_found)
        if count > len(gpus_found):
            raise ValueError(
                f"--num_replicas={count}, but this machine has {len(gpus_found)} GPUs."
            )
        return tf.distribute.MirroredStrategy([f"/gpu:{i}" for i in range(count)])
    count = num_replicas or 1
    logger.warning(
        "--device=mirrored: TensorFlow finds no GPU on this machine, so the run uses "
        "the CPU (replicas: %d).",
        count,
    )
    _divide_cpu(count)
    # Collective ops would tie the process to the first number of replicas it used.
    return tf.distribute.MirroredStrategy(
        [f"/cpu:{i}" for i in range(count)],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )


def _divide_cpu(count):
    """Makes `count` logical devices of the CPU."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    configured = tf.config.get_logical_device_configuration(cpu) or ()
    if count == 1 or len(configured) >= count:
        return
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * count
        )
    except RuntimeError as error:
        raise ValueError(
            f"--num_replicas={count}, but TensorFlow has already started with fewer "
            "CPU devices in this process. Start the run in a new process."
        ) from error


def _tpu_strategy():
    # TensorFlow requires this order: resolve, connect, initialize, create.
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, RuntimeError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"Cannot connect to the TPU of this machine ({reason}). Run the command on "
            "a TPU VM, with TensorFlow for TPUs."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def check_batch_size(
    name: str,
    batch_size: int,
    strategy: tf.distribute.Strategy,
    *,
    micro_batches: int = 1,
) -> None:
    """Raises ValueError if a global batch cannot be divided evenly.

    Args:
        name: flag of the batch size.
        batch_size: rows of a global batch.
        strategy: the devices.
        micro_batches: parts that each replica splits its batch into.
    """
    parts = strategy.num_replicas_in_sync * micro_batches
    if batch_size % parts:
        raise ValueError(
            f"--{name}={batch_size} is not divisible by {parts} "
            f"({strategy.num_replicas_in_sync} replicas × {micro_batches} "
            "micro-batches); choose a multiple."
        )


def distribute(dataset: tf.data.Dataset, strategy: tf.distribute.Strategy) -> Any:
    """Returns an iterator over a dataset of global batches for `strategy.run`.

    Every batch, a dict of tensors [B, ...], is cut into contiguous parts of equal
    size, one per replica. Example i of the global batch is therefore the same for any
    number of replicas. With several hosts each reads the whole batch and keeps its
    share.
    """

    def host_share(host, hosts):
        if hosts == 1:
            return dataset
        return dataset.map(
            lambda batch: {
                name: split(column, hosts)[host] for name, column in batch.items()
            }
        )

    return _iterator(strategy, host_share)


def distribute_shares(
    read_rows: Callable[[range], tf.data.Dataset],
    batch_size: int,
    strategy: tf.distribute.Strategy,
) -> Any:
    """Does the same as `distribute`, but each host reads only its own share.

    Args:
        read_rows: function from a range of rows of the global batch to the dataset of
            these rows.
        batch_size: rows of a global batch.
        strategy: the devices.
    """

    def host_share(host, hosts):
        size = batch_size // hosts
        return read_rows(range(host * size, (host + 1) * size))

    return _iterator(strategy, host_share)


def _iterator(strategy, host_share):
    """Returns the iterator, given a function (host, number of hosts) -> dataset."""
    on_cpus = runs_on(strategy, "CPU")
    if on_cpus and strategy.num_replicas_in_sync == 1:
        return iter(host_share(0, 1))

    def per_replica(context):
        hosts = context.num_input_pipelines
        dataset = host_share(context.input_pipeline_id, hosts)
        replicas = context.num_replicas_in_sync // hosts
        if replicas == 1:
            return dataset
        return dataset.flat_map(
            lambda batch: tf.data.Dataset.from_tensor_slices(
                {name: split(column, replicas) for name, column in batch.items()}
            )
        )

    # Prefetching to a device starts a tuner that cannot be switched off and can delay
    # the end of an iterator by up to a minute. A CPU gains nothing from prefetching.
    fetching = tf.distribute.InputOptions(experimental_fetch_to_device=not on_cpus)
    return iter(strategy.distribute_datasets_from_function(per_replica, fetching))


def runs_on(strategy: tf.distribute.Strategy, kind: str) -> bool:
    """Returns whether all devices of a strategy are of a kind: CPU, GPU or TPU."""
    return all(kind in device for device in _devices(strategy))


def _devices(strategy):
    try:
        return strategy.extended.worker_devices
    except RuntimeError:  # TensorFlow's default strategy has no list of devices.
        return ("/device:CPU:0",)


def split(column: tf.Tensor, parts: int) -> tf.Tensor:
    """Returns [B, ...] as [parts, B / parts, ...], static where possible."""
    shape = tf.shape(column)
    parted = tf.reshape(
        column, tf.concat([[parts, shape[0] // parts], shape[1:]], axis=0)
    )
    size = column.shape[0]
    parted.set_shape([parts, size // parts if size else None, *column.shape[1:]])
    return parted
