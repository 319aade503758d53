"""The configuration of the tiny models that tests create."""

from bert_tf.modeling import config as config_module


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
