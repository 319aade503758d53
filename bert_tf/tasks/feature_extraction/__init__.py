"""Vectors of texts and of their word pieces, from any layer of an encoder.

`extraction` reads lines and runs the encoder, and `workflow` writes the vectors. Python
programs use `bert_tf.embed` or `extract`, which is loaded on first use, because it
needs TensorFlow.
"""

import importlib

__all__ = ["extract"]


def __getattr__(name):
    if name == "extract":
        return importlib.import_module(f"{__name__}.workflow").extract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
