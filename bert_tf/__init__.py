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
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # What editors and type checkers read.
    from bert_tf import fine_tune as fine_tune
    from bert_tf.checkpoints.loading import load_checkpoint as load_checkpoint
    from bert_tf.checkpoints.loading import load_model as load_model
    from bert_tf.data.packing import pack as pack
    from bert_tf.modeling.bert import BertModel as BertModel
    from bert_tf.modeling.classifier import BertClassifier as BertClassifier
    from bert_tf.modeling.classifier import (
        BertMultiLabelClassifier as BertMultiLabelClassifier,
    )
    from bert_tf.modeling.classifier import BertRegressor as BertRegressor
    from bert_tf.modeling.config import BertConfig as BertConfig
    from bert_tf.modeling.multiple_choice import (
        BertMultipleChoice as BertMultipleChoice,
    )
    from bert_tf.modeling.pooling import Pooling as Pooling
    from bert_tf.modeling.pretrainer import BertPretrainer as BertPretrainer
    from bert_tf.modeling.rankers import BertBiEncoder as BertBiEncoder
    from bert_tf.modeling.rankers import BertCrossEncoder as BertCrossEncoder
    from bert_tf.modeling.span_predictor import BertSpanPredictor as BertSpanPredictor
    from bert_tf.modeling.token_classifier import (
        BertTokenClassifier as BertTokenClassifier,
    )
    from bert_tf.optimization.adam_weight_decay import (
        AdamWeightDecay as AdamWeightDecay,
    )
    from bert_tf.optimization.schedules import WarmupLinearDecay as WarmupLinearDecay
    from bert_tf.optimization.schedules import (
        WarmupLinearDecayOfTime as WarmupLinearDecayOfTime,
    )
    from bert_tf.preprocessing.pretrained import from_pretrained as from_pretrained
    from bert_tf.preprocessing.text_preprocessor import (
        TextPreprocessor as TextPreprocessor,
    )
    from bert_tf.preprocessing.tokenizer import FullTokenizer as FullTokenizer
    from bert_tf.progress import ProgressBar as ProgressBar
    from bert_tf.serving.one_call import embed as embed
    from bert_tf.serving.one_call import fill_masks as fill_masks
    from bert_tf.serving.one_call import score_texts as score_texts
    from bert_tf.serving.predictors import load as load
    from bert_tf.tokenization.basic import BasicTokenizer as BasicTokenizer
    from bert_tf.tokenization.in_graph import InGraphTokenizer as InGraphTokenizer
    from bert_tf.tokenization.vocabulary import Vocabulary as Vocabulary
    from bert_tf.tokenization.wordpiece import WordpieceTokenizer as WordpieceTokenizer

__version__ = "0.1.0"

_MODULE_OF = {
    "AdamWeightDecay": "bert_tf.optimization.adam_weight_decay",
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
    "Pooling": "bert_tf.modeling.pooling",
    "ProgressBar": "bert_tf.progress",
    "TextPreprocessor": "bert_tf.preprocessing.text_preprocessor",
    "Vocabulary": "bert_tf.tokenization.vocabulary",
    "WarmupLinearDecay": "bert_tf.optimization.schedules",
    "WarmupLinearDecayOfTime": "bert_tf.optimization.schedules",
    "WordpieceTokenizer": "bert_tf.tokenization.wordpiece",
    "embed": "bert_tf.serving.one_call",
    "from_pretrained": "bert_tf.preprocessing.pretrained",
    "fill_masks": "bert_tf.serving.one_call",
    "load": "bert_tf.serving.predictors",
    "load_checkpoint": "bert_tf.checkpoints.loading",
    "load_model": "bert_tf.checkpoints.loading",
    "pack": "bert_tf.data.packing",
    "score_texts": "bert_tf.serving.one_call",
}
_SUBPACKAGES = frozenset(
    ("fine_tune", *(one.name for one in pkgutil.iter_modules(__path__) if one.ispkg))
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
