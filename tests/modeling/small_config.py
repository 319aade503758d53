"""The configuration of the tiny models that tests create, and two texts for them."""

import numpy as np

from bert_tf.modeling import config as config_module

IDS = np.array([[2, 7, 9, 3], [2, 5, 3, 0]], "int32")
FEATURES = {
    "input_ids": IDS,
    "input_mask": np.minimum(IDS, 1),
    "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 0]], "int32"),
}


def create(**changes):
    """Returns the configuration of a tiny model; keywords replace or add values."""
    values = {
        "vocab_size": 30,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "max_position_embeddings": 16,
    }
    return config_module.BertConfig(**values | changes)
