"""Sentences to masked records: what `create_pretraining_data` does.

How one record is made: `release_sampling` reads documents, `release_pairs` draws
sentences A and B, `data.packing` adds [CLS] and [SEP], `release_masks` masks, and
`features` lays out the columns. The default `vectorized_sampling` draws thousands of
records at a time with `vectorized_pairs` and `vectorized_masks`.

How the work is divided: `workflow` cuts the text into shards, `one_shard` samples one
of them, and `all_shards` distributes the shards to processes or machines. `casing`
checks that the vocabulary fits text in this casing.

`graph_sampling` does all of it with TensorFlow ops: `text_dataset` turns text files
into a `tf.data.Dataset` of examples, without record files. `graph_text` reads,
`graph_pairs` draws sentences A and B, `graph_rows` and `graph_spans` mask, and
`graph_pools` does this epoch after epoch.
"""

import importlib

__all__ = ["text_dataset"]


def __getattr__(name):
    if name == "text_dataset":  # Imported on first use, because it needs TensorFlow.
        module = importlib.import_module("bert_tf.pretraining_data.graph_sampling")
        return module.text_dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
