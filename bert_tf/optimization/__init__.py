"""Learning-rate schedules and optimizers, as the release defined them.

Importing this package registers its classes with Keras. A `.keras` file of a compiled
model names its optimizer and schedule, so `keras.saving.load_model` opens such a file
after `import bert_tf.modeling, bert_tf.optimization`.
"""

# Keras finds a serialized class only if the module that registers it was imported.
from bert_tf.optimization import adam_weight_decay
from bert_tf.optimization import schedules

__all__ = ["adam_weight_decay", "schedules"]
