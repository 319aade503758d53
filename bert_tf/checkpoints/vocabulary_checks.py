"""Checks that a vocabulary is the one that a checkpoint was trained with.

A different vocabulary gives different ids. No later step fails; the answers are just
wrong. A given vocabulary is compared with the one beside the checkpoint, in which new
words may have replaced [unused] pieces. If there is none, only the size is compared.
A run records a fingerprint of its vocabulary in task.json.
"""

import logging
import os
import re

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)

# The release's vocabularies have these rows for words that users add. Their embeddings
# are untrained, and replacing them changes no other id.
_UNUSED = re.compile(r"\[unused[^\]]*\]")
# Tables are often padded to a multiple of 8, 64 or 128 rows.
_MAX_PADDING = 128


def check_own(source: source_module.Source) -> None:
    """Checks the size of the vocabulary beside a checkpoint.

    A vocabulary that lost or gained lines shifts all following ids.

    Raises:
        ValueError: it does not have one piece for each row of the embedding table.
    """
    fault = _own_fault(source)
    if fault is not None:
        raise ValueError(
            f"{fault}, so ids would be wrong; pass the matching vocabulary as "
            "--vocab_file."
        )


def check_given(
    vocabulary: vocabulary_module.Vocabulary, path: str, source: source_module.Source
) -> str | None:
    """Compares a given vocabulary with that of a checkpoint.

    Args:
        vocabulary: the given vocabulary.
        path: its file, for messages.
        source: the checkpoint.

    Returns:
        A warning, which is also logged, or None.

    Raises:
        ValueError: it does not match the checkpoint.
    """
    own = source.vocabulary
    if own is None or _own_fault(source) is not None:
        return _check_without_own(vocabulary, path, source)
    wrong = [
        index
        for index, token in enumerate(own.tokens)
        if vocabulary.tokens[index : index + 1] != (token,)
        and not (index < len(vocabulary) and _UNUSED.fullmatch(token))
    ]
    if not wrong:
        return None
    first = wrong[0]
    found = f"id {first} is {own.tokens[first]!r} there and " + (
        f"{vocabulary.tokens[first]!r} here"
        if first < len(vocabulary)
        else f"missing here, among {len(vocabulary):,} pieces"
    )
    raise ValueError(
        f"{path} is not the vocabulary of {source.path}: {found} ({len(wrong):,} of "
        f"{len(own):,} ids differ); omit --vocab_file to use the one beside the "
        "checkpoint. Only [unused] pieces may be replaced."
    )


def _own_fault(source: source_module.Source) -> str | None:
    """Returns what is wrong with the size of the vocabulary beside a checkpoint."""
    if source.vocabulary is None or _is_run(source):
        return None
    num_pieces, num_rows = len(source.vocabulary), _num_rows(source)
    if num_rows in (None, num_pieces):
        return None
    # Padded tables are common with Hugging Face. Elsewhere a shorter vocabulary has
    # most likely lost lines.
    if source.format == "hugging_face" and _is_padded(num_pieces, num_rows):
        return None
    return (
        f"The vocabulary of {source.path} has {num_pieces} pieces, but its embedding "
        f"table has {num_rows} rows"
    )


def _check_without_own(
    vocabulary: vocabulary_module.Vocabulary, path: str, source: source_module.Source
) -> str | None:
    """Compares fingerprint and size for a checkpoint without a good vocab.txt."""
    folder = os.path.dirname(source.path)
    task = companion_files.read_task(folder) if _is_run(source) else {}
    if task.get(companion_files.FINGERPRINT) not in (None, vocabulary.fingerprint):
        raise ValueError(
            f"{path} is not the vocabulary that {source.path} was trained with; its "
            f"{companion_files.TASK_FILE} records another fingerprint."
        )
    num_pieces, num_rows = len(vocabulary), _num_rows(source)
    # `BertConfig.check_vocabulary_size` refuses more pieces.
    if num_rows is None or num_pieces >= num_rows:
        return None
    sizes = (
        f"{path} has {num_pieces:,} pieces, but the embedding table of {source.path} "
        f"has {num_rows:,} rows"
    )
    if not _is_padded(num_pieces, num_rows):
        raise ValueError(
            f"{sizes}, so it is not the vocabulary of this checkpoint; pass the "
            "matching one as --vocab_file. If the last rows are unused, add a line "
            "such as [unused1] to the vocabulary for each of them."
        )
    warning = (
        f"{sizes}. That is right only if the table was padded; there is no vocabulary "
        "beside the checkpoint to compare it with."
    )
    logger.warning("%s", warning)
    return warning


def _is_run(source: source_module.Source) -> bool:
    """Returns whether the checkpoint was written by a run or by a conversion.

    Its vocabulary was checked when it was written, and its table may be padded.
    """
    folder = os.path.dirname(source.path)
    task_file = os.path.join(folder, companion_files.TASK_FILE)
    return source.format == "bert" and files.exists(task_file)


def _num_rows(source: source_module.Source) -> int | None:
    shape = source.shapes.get(checkpoint_names.WORD_EMBEDDINGS)
    return None if shape is None else shape[0]


def _is_padded(num_pieces: int, num_rows: int) -> bool:
    """Returns whether the table may have been padded to suit an accelerator."""
    return num_rows % 8 == 0 and 0 < num_rows - num_pieces < _MAX_PADDING
