"""The files stored beside the weights: bert_config.json, vocab.txt, task.json.

The release puts the first two beside its checkpoints. task.json is ours: it says what
no variable name can, such as casing, the kind of head and the names of the labels.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import text_encoding
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

CONFIG_FILE = "bert_config.json"
VOCAB_FILE = "vocab.txt"
TASK_FILE = "task.json"
# Key of task.json: `Vocabulary.fingerprint` of the vocab.txt beside it.
FINGERPRINT = "vocab_fingerprint"
_LFS_POINTER = b"version https://git-lfs"
# Key of task.json: the folder is that of a conversion, not of a run.
CONVERTED = "converted"
# Fields of `BertConfig` that do not change what trained weights compute.
FREE_VALUES = (
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "initializer_range",
    "position_initializer",
)


def read_config(folder: str) -> config_module.BertConfig | None:
    """Returns the configuration in a folder, or None if it has none."""
    path = os.path.join(folder, CONFIG_FILE)
    if not files.exists(path):
        return None
    return config_module.BertConfig.from_json_file(path)


def read_vocabulary(folder: str) -> vocabulary_module.Vocabulary | None:
    """Returns the vocabulary in a folder, or None if it has none.

    Raises:
        ValueError: the file is not a valid vocabulary, or its fingerprint differs from
            the one in the folder's task.json.
    """
    path = os.path.join(folder, VOCAB_FILE)
    if not files.exists(path):
        return None
    vocabulary = vocabulary_module.Vocabulary.load(path)
    if read_task(folder).get(FINGERPRINT) not in (None, vocabulary.fingerprint):
        raise ValueError(
            f"{path} is not the vocabulary that the model was trained with: a line was "
            f"changed, lost or added since {TASK_FILE} recorded its fingerprint. "
            "Restore the file."
        )
    return vocabulary


def check_vocabulary_size(config: config_module.BertConfig, num_pieces: int) -> None:
    """Raises a ValueError if a vocabulary has more pieces than the model.

    On accelerators, ids beyond the table give NaN and no error.
    """
    if num_pieces > config.vocab_size:
        raise ValueError(
            f"The vocabulary has {num_pieces} pieces, but the model's vocab_size is "
            f"{config.vocab_size}. Use the model's own vocabulary, or increase "
            "vocab_size in the configuration of a new model."
        )


def read_text(folder: str) -> text_encoding.TextEncoding:
    """Returns how a folder's vocab.txt and task.json say that text becomes ids.

    The name of a released folder, such as uncased_L-12_H-768_A-12, shows the casing.

    Raises:
        ValueError: a file is damaged.
    """
    task = read_task(folder)
    casing = task.get("do_lower_case")
    if casing is None:
        casing = full.is_lower_cased(os.path.basename(os.path.abspath(folder)))
    return text_encoding.TextEncoding.from_dict(
        {**task, "do_lower_case": casing},
        path=os.path.join(folder, TASK_FILE),
        vocabulary=read_vocabulary(folder),
    )


def with_fingerprint(
    task: Mapping[str, Any], vocabulary: vocabulary_module.Vocabulary | None
) -> dict[str, Any]:
    """Returns the values of a task.json with the fingerprint of the vocabulary."""
    if vocabulary is None:
        return dict(task)
    return {**task, FINGERPRINT: vocabulary.fingerprint}


def read_task(folder: str) -> Mapping[str, Any]:
    """Returns the values of a folder's task.json, empty if it has none."""
    path = os.path.join(folder, TASK_FILE)
    if not files.exists(path):
        return {}
    return files.read_json(path, advice="restore the file, or train again")


@contextlib.contextmanager
def local_copy(path: str, suffix: str) -> Iterator[str]:
    """Yields the local path of a file for a library; a remote one is copied first."""
    if not files.is_remote(path):
        yield path
        return
    with tempfile.NamedTemporaryFile(suffix=suffix) as copy:
        with files.open_file(path, "rb") as file:
            shutil.copyfileobj(file, copy, 1 << 24)
        copy.flush()
        yield copy.name


def damaged(path: str, reason: object) -> ValueError:
    """Returns the error about a file of weights that cannot be read."""
    with files.open_file(path, "rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            return ValueError(
                f"{path} is a Git LFS pointer, not the weights; run `git lfs pull` in "
                "the cloned folder."
            )
    return ValueError(
        f"{path} cannot be read: it is truncated or damaged ({files.size(path)} bytes; "
        f"{reason}); copy or download it again."
    )


def write_json(path: str, values: Any) -> None:
    """Writes values as JSON, complete or not at all."""
    with files.complete_or_absent(path) as file:
        file.write(json.dumps(values, indent=2, ensure_ascii=False) + "\n")
