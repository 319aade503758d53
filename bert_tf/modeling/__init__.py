"""The encoder and every model built on it, written in `keras.ops`.

Read in this order: config, numerics, embeddings, attention, encoder, bert, heads. Then
one file per model: pretrainer, left_to_right, classifier, distilled_classifier,
span_predictor, token_classifier, multiple_choice, rankers.

Importing this package registers every model with Keras, so that
`keras.saving.load_model` needs no `custom_objects`. The file of a compiled model also
names its optimizer: import `bert_tf.optimization` too, or use `bert_tf.load_model`,
which reads the weights alone.
"""

# Keras finds a serialized class only if the module that registers it was imported.
from bert_tf.modeling import bert
from bert_tf.modeling import classifier
from bert_tf.modeling import distilled_classifier
from bert_tf.modeling import left_to_right
from bert_tf.modeling import multiple_choice
from bert_tf.modeling import pretrainer
from bert_tf.modeling import rankers
from bert_tf.modeling import span_predictor
from bert_tf.modeling import token_classifier

__all__ = [
    "bert",
    "classifier",
    "distilled_classifier",
    "left_to_right",
    "multiple_choice",
    "pretrainer",
    "rankers",
    "span_predictor",
    "token_classifier",
]
