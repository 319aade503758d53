"""The encoder and every model built on it, written in `keras.ops`.

Read in this order: config, numerics, embeddings, bert, kernels/plain; then keras_model
and heads, which make it an ordinary Keras model with a loss. Then one file per model:
pretrainer, classifier, span_predictor, token_classifier, multiple_choice, rankers.

Importing this package registers every model with Keras, so that
`keras.saving.load_model` needs no `custom_objects`.
"""

import importlib
import pkgutil

# Keras finds a serialized class only if the module that registers it was imported. So
# every module of this folder is imported, and a new model needs no line here.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
