"""A new model of a named size, for the vocabulary of the examples."""

import os

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module


def starting_point_of(options) -> starting_point.StartingPoint:
    """Returns what a run starts from that names its model's size.

    Args:
        options: `run_options.RunPretrainingOptions` with `model_size`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the size is given twice or is no size, or the vocabulary of the
            examples is not known.
    """
    for name in ("bert_config_file", "init_checkpoint"):
        if getattr(options, name) is not None:
            raise options_module.OptionError(
                f"--model_size={options.model_size} does not go with --{name}, which "
                "has a size of its own."
            )
    vocabulary = None
    if options.vocab_file is not None:
        vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    config = config_module.BertConfig.of_size(
        options.model_size,
        vocab_size=_vocab_size(options, vocabulary),
        max_position_embeddings=max(
            options.max_seq_length,
            config_module.BertConfig.max_position_embeddings,
        ),
    )
    return starting_point.StartingPoint(
        config=config, vocabulary=vocabulary, do_lower_case=True
    )


def _vocab_size(options, vocabulary):
    if vocabulary is not None:
        return len(vocabulary)
    records = tfrecord.RecordFiles(files.expand(options.input_file))
    found = records.metadata.get("vocab_size")
    if found is None:
        folder = os.path.dirname(records.paths[0])
        raise options_module.OptionError(
            f"--model_size needs --vocab_file: nothing in {folder} says how large the "
            "vocabulary of the examples is."
        )
    return found
