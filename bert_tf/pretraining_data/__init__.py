"""Sentences to masked records: what `create_pretraining_data` does.

How the work is divided: `workflow` cuts the text into shards. `shard_tasks` samples
them in processes or on machines, and keeps a journal so that a killed run can resume.

How records are made: the default `vectorized_sampling` draws thousands at a time, with
`tokenized_text`, `pairs` and `rows`. `release_sampling` makes the
records of 2018 one by one and gives the reason for each draw. `graph_sampling` uses
TensorFlow ops: `text_dataset` turns text files into a `tf.data.Dataset` of examples,
without record files. `graph_pools` reads text and makes examples epoch after epoch,
also with `pairs` and `rows`.
"""

import importlib

__all__ = ["text_dataset"]


def __getattr__(name):
    if name == "text_dataset":  # Imported on first use, because it needs TensorFlow.
        module = importlib.import_module("bert_tf.pretraining_data.graph_sampling")
        return module.text_dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
