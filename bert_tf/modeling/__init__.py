"""The encoder and its heads in `keras.ops`: ids -> vectors.

Read in this order: config, numerics, embeddings, attention, encoder, bert, heads,
pooling, recurrent, vocabulary_losses.

Importing this package registers every model of `bert_tf` with Keras, so that
`keras.saving.load_model` needs no `custom_objects`.
"""

import importlib

# Keras looks serialized classes up among those that are registered, which happens
# where a class is defined; of modules that are not imported it knows nothing. The
# encoder knows no task, so these are names of modules and not imports: nothing here
# uses what is in them, and each of them imports nothing but keras and this package.
_MODULES_WITH_SERIALIZED_CLASSES = (
    "bert_tf.modeling.bert",
    "bert_tf.pretraining.model",
    "bert_tf.pretraining.left_to_right",
    "bert_tf.classification.model",
    "bert_tf.question_answering.model",
    "bert_tf.token_classification.model",
    "bert_tf.multiple_choice.model",
    "bert_tf.retrieval.model",
    # A compiled model's file names its optimizer and its schedule.
    "bert_tf.optimization.adam_weight_decay",
    "bert_tf.optimization.schedules",
)

for _name in _MODULES_WITH_SERIALIZED_CLASSES:
    importlib.import_module(_name)
