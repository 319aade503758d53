"""Weights on disk: the release's format, and those of other libraries.

Every reader returns a `source.Source` and every writer takes one; weights have the
release's names in between. `formats` is the table of formats, with a module for each:
`release` (native), `hugging_face`, `keras_files`, `keras_hub`, `tf2`. `heads` is the
table of heads.

`starting_point.find` resolves `--init_checkpoint`, `loading` loads weights into a
model, `conversion` is convert_checkpoint, and `catalogue` downloads the released
models.
"""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    # Loaded on first use: importing this package must not import Keras.
    if name == "fetch":
        return importlib.import_module("bert_tf.checkpoints.catalogue.fetching").fetch
    raise AttributeError(f"module 'bert_tf.checkpoints' has no attribute {name!r}")
