"""What every training run's folder holds beside its weights."""

import os

from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module


def read_config(run_dir: str) -> config_module.BertConfig:
    """Returns the model's size of a training run's folder.

    Raises:
        OSError, ValueError: its bert_config.json cannot be read or understood.
    """
    path = os.path.join(run_dir, "bert_config.json")
    return config_module.BertConfig.from_json_file(path)


def read_vocabulary(run_dir: str) -> vocabulary_module.Vocabulary:
    """Returns the vocabulary of a training run's folder.

    Raises:
        OSError, ValueError: its vocab.txt cannot be read or is no vocabulary.
    """
    return vocabulary_module.Vocabulary.load(os.path.join(run_dir, "vocab.txt"))
