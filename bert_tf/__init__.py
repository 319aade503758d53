"""BERT for TensorFlow 2 and Keras 3, from raw text to a served model.

Read in this order, which is the order in which text flows through the package:

1. `preparation`: raw text of any kind to one sentence per line.
2. `tokenization`: text to word pieces to ids, and learning a vocabulary.
3. `pretraining_data`: sentences to masked TFRecord examples.
4. `data`: TFRecord files and tables to batches.
5. `modeling`: ids to vectors to outputs; the encoder and every model, in `keras.ops`.
6. `optimization`: the learning rate schedule and the optimizers.
7. `checkpoints`: weights in the release's format and in those of other libraries.
8. `preprocessing`: strings to features with the tokenizer of a checkpoint.
9. `training`: the loop, distribution, evaluation and the run folder.
10. `pretraining`: training and using the pretraining model.
11. `fine_tuning`: what all fine-tuning tasks share; `tasks`: one folder per task.
12. `serving`: a run folder to a SavedModel to an answer.

Names below are loaded on first use, so `import bert_tf` is fast and works without
TensorFlow.
"""

import importlib

__version__ = "0.1.0"

_MODULE_OF = {
    "BasicTokenizer": "bert_tf.tokenization.basic",
    "BertBiEncoder": "bert_tf.modeling.rankers",
    "BertClassifier": "bert_tf.modeling.classifier",
    "BertConfig": "bert_tf.modeling.config",
    "BertCrossEncoder": "bert_tf.modeling.rankers",
    "BertModel": "bert_tf.modeling.bert",
    "BertMultiLabelClassifier": "bert_tf.modeling.classifier",
    "BertMultipleChoice": "bert_tf.modeling.multiple_choice",
    "BertPretrainer": "bert_tf.modeling.pretrainer",
    "BertRegressor": "bert_tf.modeling.classifier",
    "BertSpanPredictor": "bert_tf.modeling.span_predictor",
    "BertTokenClassifier": "bert_tf.modeling.token_classifier",
    "FullTokenizer": "bert_tf.preprocessing.tokenizer",
    "InGraphTokenizer": "bert_tf.tokenization.in_graph",
    "ProgressBar": "bert_tf.progress",
    "TextPreprocessor": "bert_tf.preprocessing.text_preprocessor",
    "Vocabulary": "bert_tf.tokenization.vocabulary",
    "WordpieceTokenizer": "bert_tf.tokenization.wordpiece",
    "add_words": "bert_tf.checkpoints.added_words",
    "embed": "bert_tf.tasks.feature_extraction.workflow",
    "from_pretrained": "bert_tf.preprocessing.pretrained",
    "fill_masks": "bert_tf.serving.masked_words",
    "load": "bert_tf.serving.predictors",
    "load_checkpoint": "bert_tf.checkpoints.loading",
    "load_model": "bert_tf.checkpoints.loading",
    "pack": "bert_tf.data.packing",
    "score_texts": "bert_tf.serving.masked_words",
}
_SUBPACKAGES = (
    "checkpoints",
    "data",
    "fine_tune",
    "fine_tuning",
    "modeling",
    "optimization",
    "preparation",
    "preprocessing",
    "pretraining",
    "pretraining_data",
    "serving",
    "tasks",
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
