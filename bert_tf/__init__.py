"""BERT of 2018 for TensorFlow 2 and Keras 3, from raw text to a served answer.

Read in this order; it is the way the text flows:

1. `preparation`: raw text of any kind to a sentence a line.
2. `tokenization`: raw text to word pieces to ids, and learning a vocabulary.
3. `data`: text to packed rows to TFRecord files to batches.
4. `modeling`: ids to vectors; the encoder and its heads, in `keras.ops`.
5. `optimization`: the schedule and the optimizers.
6. `checkpoints`: weights on disk, in the release's own format.
7. `training`: the loop, distribution, evaluation and the run folder.
8. `pretraining`, `classification`, `question_answering`, `token_classification`,
   `multiple_choice`, `retrieval`, `feature_extraction`: one folder a task, each with
   the same files.
9. `serving`: a run folder to a SavedModel to an answer.

`files`, `options`, `progress` and `command_line` belong to all of them. Names below
are loaded on first use, so that `import bert_tf` is quick and works where TensorFlow
is not installed.
"""

import importlib

__version__ = "0.1.0"

_MODULE_OF = {
    "BasicTokenizer": "bert_tf.tokenization.basic",
    "BertBiEncoder": "bert_tf.retrieval.model",
    "BertClassifier": "bert_tf.classification.model",
    "BertConfig": "bert_tf.modeling.config",
    "BertCrossEncoder": "bert_tf.retrieval.model",
    "BertModel": "bert_tf.modeling.bert",
    "BertMultiLabelClassifier": "bert_tf.classification.model",
    "BertMultipleChoice": "bert_tf.multiple_choice.model",
    "BertPretrainer": "bert_tf.pretraining.model",
    "BertRegressor": "bert_tf.classification.model",
    "BertSpanPredictor": "bert_tf.question_answering.model",
    "BertTokenClassifier": "bert_tf.token_classification.model",
    "FullTokenizer": "bert_tf.tokenization.full",
    "InGraphTokenizer": "bert_tf.tokenization.in_graph",
    "Vocabulary": "bert_tf.tokenization.vocabulary",
    "WordpieceTokenizer": "bert_tf.tokenization.wordpiece",
    "load": "bert_tf.serving.runs",
    "load_checkpoint": "bert_tf.checkpoints.loading",
    "load_model": "bert_tf.checkpoints.loading",
    "pack": "bert_tf.data.packing",
}
_SUBPACKAGES = (
    "checkpoints",
    "classification",
    "data",
    "feature_extraction",
    "modeling",
    "multiple_choice",
    "optimization",
    "pretraining",
    "question_answering",
    "retrieval",
    "serving",
    "token_classification",
    "tokenization",
    "training",
)

__all__ = sorted([*_MODULE_OF, "__version__"])


def __getattr__(name):
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    if name in _SUBPACKAGES:
        return importlib.import_module(f"bert_tf.{name}")
    raise AttributeError(f"module 'bert_tf' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_MODULE_OF, *_SUBPACKAGES])
