"""Raw text to word pieces to ids.

Read in this order:

- `unicode_14`, `characters`, `basic`, `wordpiece`, `vocabulary`, `full`: the release's
  tokenizers in plain Python, which are the reference.
- `in_graph_words`, `in_graph`: the same ids from TensorFlow ops.
- `words`: words of plain text, for tasks that give every word a tag.
- `learning`, `workflow`: learning a vocabulary from text.

The classes are loaded on first use, because `in_graph` needs TensorFlow.
"""

import importlib

_MODULE_OF = {
    "BasicTokenizer": "bert_tf.tokenization.basic",
    "FullTokenizer": "bert_tf.tokenization.full",
    "InGraphTokenizer": "bert_tf.tokenization.in_graph",
    "Vocabulary": "bert_tf.tokenization.vocabulary",
    "WordpieceTokenizer": "bert_tf.tokenization.wordpiece",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'bert_tf.tokenization' has no attribute {name!r}")
