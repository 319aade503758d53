"""Learning-rate schedules and optimizers, as the release defined them."""

from bert_tf.optimization.create import create_optimizer

__all__ = ["create_optimizer"]
