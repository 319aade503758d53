"""Devices: one tf.distribute strategy for every --device."""

import weakref

import tensorflow as tf

from bert_tf.training import served_batches
from bert_tf.training import workers


def of_options(options):
    """Returns the strategy that `TrainingOptions` ask for; see `create_strategy`."""
    if options.device == "multi_worker":
        return workers.create_strategy(options.worker_hosts, options.worker_index)
    return create_strategy(
        options.device, num_replicas=options.num_replicas, tpu_name=options.tpu_name
    )


def create_strategy(device="auto", *, num_replicas=None, tpu_name=None):
    """Returns the tf.distribute strategy that a run of one process is spread with.

    Args:
        device: "auto", "cpu", "gpu", "mirrored" or "tpu".
        num_replicas: int or None; replicas of "mirrored". Where there is no GPU the
            CPU is divided into as many logical devices, which has to happen before
            TensorFlow has used it.
        tpu_name: str or None; as `tf.distribute.cluster_resolver.TPUClusterResolver`
            takes it. None means the TPU of this machine.

    Raises:
        ValueError: the device is not there.
    """
    if device == "tpu":
        return _tpu_strategy(tpu_name or "local")
    gpus = tf.config.list_physical_devices("GPU")
    if device == "mirrored":
        return _mirrored_strategy(num_replicas, gpus)
    if device == "gpu" and not gpus:
        raise ValueError(
            "--device=gpu, but TensorFlow finds no GPU on this machine; expected a "
            "CUDA device. Use --device=cpu, or install tensorflow[and-cuda]."
        )
    if device == "cpu" or not gpus:
        return tf.distribute.OneDeviceStrategy("/cpu:0")
    if len(gpus) > 1 and device == "auto":
        return tf.distribute.MirroredStrategy()
    return tf.distribute.OneDeviceStrategy("/gpu:0")


def _mirrored_strategy(num_replicas, gpus):
    if gpus:
        count = num_replicas or len(gpus)
        if count > len(gpus):
            raise ValueError(
                f"--num_replicas={count}, but this machine has {len(gpus)} GPUs."
            )
        return tf.distribute.MirroredStrategy([f"/gpu:{i}" for i in range(count)])
    count = num_replicas or 1
    _divide_cpu(count)
    # Collective ops would tie the process to the first number of replicas it used.
    return tf.distribute.MirroredStrategy(
        [f"/cpu:{i}" for i in range(count)],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )


def _divide_cpu(count):
    """Makes `count` logical devices of the CPU."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    configured = tf.config.get_logical_device_configuration(cpu)
    if configured is not None and len(configured) >= count:
        return
    if count == 1:
        return
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * count
        )
    except RuntimeError as error:
        raise ValueError(
            f"{count} replicas asked for, but TensorFlow has already started with "
            "fewer CPU devices; start the run in a new process."
        ) from error


def _tpu_strategy(tpu_name):
    # The order is TensorFlow's: resolve, connect, initialize, then the strategy.
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu_name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, RuntimeError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"No TPU named {tpu_name!r} could be reached ({reason}). Give its name or "
            "grpc:// address as --tpu_name, or 'local' on a TPU VM."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def check_batch_size(name, batch_size, strategy, *, micro_batches=1):
    """Raises ValueError when a batch cannot be divided evenly."""
    parts = strategy.num_replicas_in_sync * micro_batches
    if batch_size % parts:
        raise ValueError(
            f"--{name}={batch_size} is not divisible by {parts} "
            f"({strategy.num_replicas_in_sync} replicas × {micro_batches} "
            "micro-batches); choose a multiple."
        )


def distribute(dataset, strategy):
    """Returns an iterator over a dataset of global batches for `strategy.run`.

    Every batch, a dict of tensors [B, ...], is cut into contiguous parts of equal
    size, one a replica, so that example i of the global batch is the same whatever the
    number of replicas. On several hosts each reads all and keeps its share.
    """

    def share_of(host, hosts):
        if hosts == 1:
            return dataset
        return dataset.map(
            lambda batch: {
                name: _split(column, hosts)[host] for name, column in batch.items()
            }
        )

    return _iterator(strategy, share_of)


def distribute_shares(batches_of, batch_size, strategy):
    """Returns what `distribute` does; each host reads only its share of the examples.

    Args:
        batches_of: function from a range of rows of the global batch to the dataset of
            these rows.
        batch_size: int, rows of a global batch.
        strategy: `tf.distribute.Strategy`.
    """

    def share_of(host, hosts):
        size = batch_size // hosts
        return batches_of(range(host * size, (host + 1) * size))

    return _iterator(strategy, share_of)


def _iterator(strategy, share_of):
    """Returns the iterator over parts of what each host gets: share_of(host, hosts)."""
    on_cpus = _is_on_cpus(strategy)
    if on_cpus and strategy.num_replicas_in_sync == 1:
        return iter(share_of(0, 1))
    runs_on_hosts = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    servers = []

    def per_replica(context):
        hosts = context.num_input_pipelines
        dataset = share_of(context.input_pipeline_id, hosts)
        if hosts > 1 and not runs_on_hosts:
            if not servers:
                servers.append(served_batches.BatchServer())
            dataset = servers[0].served(dataset)
        replicas = context.num_replicas_in_sync // hosts
        if replicas == 1:
            return dataset
        return dataset.flat_map(
            lambda batch: tf.data.Dataset.from_tensor_slices(
                {name: _split(column, replicas) for name, column in batch.items()}
            )
        )

    # Fetching ahead to a device brings a tuner that cannot be switched off and can keep
    # an iterator from ending for up to a minute; a CPU has no use for it.
    fetching = tf.distribute.InputOptions(experimental_fetch_to_device=not on_cpus)
    iterator = iter(strategy.distribute_datasets_from_function(per_replica, fetching))
    if servers:
        # It serves as long as it is read.
        weakref.finalize(iterator, servers.clear)
    return iterator


def _is_on_cpus(strategy):
    try:
        return all("CPU" in device for device in strategy.extended.worker_devices)
    except RuntimeError:  # TensorFlow's default: it fetches nothing ahead either.
        return True


def _split(column, parts):
    """[B, ...] -> [parts, B / parts, ...], static where it can be."""
    shape = tf.shape(column)
    split = tf.reshape(
        column, tf.concat([[parts, shape[0] // parts], shape[1:]], axis=0)
    )
    size = column.shape[0]
    split.set_shape([parts, size // parts if size else None, *column.shape[1:]])
    return split
