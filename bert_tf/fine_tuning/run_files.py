"""What every training run's folder holds beside its weights, and whether it fits."""

import os
from collections.abc import Mapping

from bert_tf.checkpoints import formats
from bert_tf.checkpoints.release import rotation
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


def check_same_task(
    run_dir: str,
    found: Mapping,
    wanted: Mapping,
    vocabulary: vocabulary_module.Vocabulary,
) -> None:
    """Refuses to go on training one task's checkpoint with another task's data.

    Args:
        run_dir: the run's folder.
        found: what its task.json says, by name.
        wanted: what the run that is about to go on says; it may leave names out.
        vocabulary: that of the run that is about to go on.

    Raises:
        OSError, ValueError: they differ, or the folder's vocabulary cannot be read.
    """
    for name, value in wanted.items():
        if found[name] != value:
            raise ValueError(
                f"{run_dir} holds a run with {name} {found[name]!r:.200}, but this one "
                f"has {value!r:.200}; choose another --output_dir."
            )
    if read_vocabulary(run_dir).fingerprint != vocabulary.fingerprint:
        raise ValueError(
            f"{run_dir} holds a run with another vocabulary than this one's; give "
            f"--vocab_file={os.path.join(run_dir, 'vocab.txt')}, or choose another "
            "--output_dir."
        )


def head_to_apply(options):
    """Returns the head of a checkpoint that is evaluated or applied as it came.

    Args:
        options: `TaskOptions`.

    Returns:
        The head of `init_checkpoint`, as `formats.open_source` tells it; None where
        output_dir has a checkpoint of its own.

    Raises:
        OSError, ValueError: there is no checkpoint, or it cannot be read.
    """
    if rotation.latest(options.output_dir) is not None:
        return None
    if options.init_checkpoint is None:
        raise ValueError(
            f"{options.output_dir} holds no checkpoint; train first (--do_train), or "
            "give a fine-tuned one as --init_checkpoint."
        )
    return formats.open_source(options.init_checkpoint).head
