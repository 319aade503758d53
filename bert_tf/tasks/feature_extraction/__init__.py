"""Vectors of texts and of their pieces, from any layer.

In the order that a line takes: `examples` reads it, `features` cuts it into windows,
`extraction` has the encoder compute and gives back a text's vectors, `predictions` and
`formats` write them, `workflow` tells the whole story. `extract` and `Extractor` are
for Python users; they are loaded on first use, because they need TensorFlow.
"""

import importlib

_MODULE_OF = {
    "Extracted": "bert_tf.tasks.feature_extraction.extraction",
    "Extractor": "bert_tf.tasks.feature_extraction.extraction",
    "extract": "bert_tf.tasks.feature_extraction.workflow",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name):
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(
        f"module 'bert_tf.tasks.feature_extraction' has no attribute {name!r}"
    )
