"""Tells Keras the classes of this package without importing them.

`keras.saving.load_model` finds a class only if its module was imported. `import
bert_tf` must stay fast and work without Keras, so Keras gets stand-ins as soon as it is
imported, before or after this package. A stand-in imports the class when it is needed.
"""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from bert_tf import import_hooks

# Every class that is registered with Keras -> the module that defines it.
MODULE_OF = {
    "AdamWeightDecay": "bert_tf.optimization.adam_weight_decay",
    "BertBiEncoder": "bert_tf.modeling.rankers",
    "BertClassifier": "bert_tf.modeling.classifier",
    "BertCrossEncoder": "bert_tf.modeling.rankers",
    "BertLeftToRight": "bert_tf.modeling.left_to_right",
    "BertModel": "bert_tf.modeling.bert",
    "BertMultiLabelClassifier": "bert_tf.modeling.classifier",
    "BertMultipleChoice": "bert_tf.modeling.multiple_choice",
    "BertPretrainer": "bert_tf.modeling.pretrainer",
    "BertRegressor": "bert_tf.modeling.classifier",
    "BertSpanPredictor": "bert_tf.modeling.span_predictor",
    "BertTokenClassifier": "bert_tf.modeling.token_classifier",
    "DistilledClassifier": "bert_tf.modeling.distilled_classifier",
    "Lamb": "bert_tf.optimization.lamb",
    "TextPreprocessor": "bert_tf.preprocessing.text_preprocessor",
    "TruncatedNormal": "bert_tf.modeling.initial_values",
    "WarmupLinearDecay": "bert_tf.optimization.schedules",
    "WarmupLinearDecayOfTime": "bert_tf.optimization.schedules",
}


class _StandIn:
    """Creates objects of a class that may not be imported yet."""

    def __init__(self, name: str, module: str):
        self._name = name
        self._module = module

    def from_config(self, config: dict[str, Any]) -> Any:
        """Returns what the class's own `from_config` returns."""
        module = importlib.import_module(self._module)
        return getattr(module, self._name).from_config(config)


def register() -> None:
    """Registers all classes: now if Keras is imported, else as soon as it is."""
    if "keras" in sys.modules:
        _register(sys.modules["keras"])
    else:
        sys.meta_path.insert(0, import_hooks.Finder("keras", _registering))


@contextlib.contextmanager
def _registering() -> Iterator[None]:
    """Registers all classes after the block, which imports Keras."""
    yield
    _register(sys.modules["keras"])


def _register(keras: ModuleType) -> None:
    objects = keras.saving.get_custom_objects()
    for name, module in MODULE_OF.items():
        objects.setdefault(f"bert_tf>{name}", _StandIn(name, module))
