"""Vectors of texts and of their word pieces, from any layer of an encoder.

`extraction` reads lines and runs the encoder, `formats` writes the vectors, and
`workflow` connects them.
Python programs use `embed`, `extract` or `Extractor`; they are loaded on first use,
because they need TensorFlow.
"""

import importlib

_MODULE_OF = {
    "Extracted": "bert_tf.tasks.feature_extraction.extraction",
    "Extractor": "bert_tf.tasks.feature_extraction.extraction",
    "embed": "bert_tf.tasks.feature_extraction.workflow",
    "extract": "bert_tf.tasks.feature_extraction.workflow",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name):
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(
        f"module 'bert_tf.tasks.feature_extraction' has no attribute {name!r}"
    )
