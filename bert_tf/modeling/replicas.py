"""The replicas of a `tf.distribute` strategy; on other backends there is one."""

import sys

import keras

from bert_tf.modeling import numerics


def number() -> int | numerics.Tensor:
    """Returns the number of the replica in which this is called, from 0."""
    context = _context()
    return 0 if context is None else context.replica_id_in_sync_group


def count() -> int:
    """Returns the number of replicas if this is called in one of them, else 1."""
    context = _context()
    return 1 if context is None else context.num_replicas_in_sync


def summed(values: numerics.Outputs) -> numerics.Outputs:
    """Returns {name: sum of a scalar over all replicas}."""
    return values if count() == 1 else _context().all_reduce("SUM", values)


def _context():
    # On other backends a call sees the whole global batch.
    if keras.backend.backend() != "tensorflow":
        return None
    # Keras has no name for it, and models import no backend. This one is loaded.
    return sys.modules["tensorflow"].distribute.get_replica_context()
