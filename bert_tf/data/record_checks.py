"""Checks that TFRecord files suit a run."""

import logging
from typing import Any

from bert_tf import files

logger = logging.getLogger(__name__)

# Records to check if no side file records the vocabulary.
_RECORDS_SAMPLED = 1000
# The column whose length an option of `create_pretraining_data` determines.
_COLUMN_OF = {
    "max_seq_length": "input_ids",
    "max_predictions_per_seq": "masked_lm_positions",
}


def check_length(record_files: Any, option: str, expected: int | None) -> None:
    """Checks the length of the column that an option determines.

    Args:
        record_files: `tfrecord.RecordFiles`.
        option: name of the option.
        expected: the expected length; None accepts any.

    Raises:
        ValueError: the column is missing or has a different length.
    """
    if expected is None:
        return
    path, schema = record_files.paths[0], record_files.schema
    column = _COLUMN_OF[option]
    if column not in schema:
        raise ValueError(
            f"{path}: expected a column {column}, but the records have only "
            f"{', '.join(schema.names)}."
        )
    got = schema[column].length
    if got != expected:
        raise ValueError(
            f"{path} was written with {option} {got}, expected {expected}; pass "
            f"--{option}={got}, or create the records again."
        )


def check_vocabulary(record_files: Any, vocabulary: Any) -> None:
    """Checks that the records were written with a vocabulary; warns if unknown.

    Args:
        record_files: `tfrecord.RecordFiles`.
        vocabulary: the expected `Vocabulary`; None accepts any.

    Raises:
        ValueError: the records were written with a different vocabulary.
    """
    metadata = record_files.metadata
    got = metadata.get("vocab_fingerprint")
    if vocabulary is None or got == vocabulary.fingerprint:
        return
    if got is None:
        logger.warning(
            "%s has no side file (%s), so it is not known whether it was written with "
            "this vocabulary of %d pieces; only the range of its ids is checked.",
            record_files.paths[0],
            record_files.paths[0] + files.SIDE_FILE_SUFFIX,
            len(vocabulary),
        )
        return
    raise ValueError(
        f"{record_files.paths[0]} was written with a different vocabulary "
        f"({metadata.get('vocab_file')}, {metadata.get('vocab_size')} pieces) than the "
        f"one given ({len(vocabulary)} pieces); pass that one, or create the records "
        "again."
    )


def check_ids(record_files: Any, vocab_size: int | None) -> None:
    """Checks that all ids are below `vocab_size`; None accepts any.

    Without a side file that records the size of the vocabulary, this checks the ids of
    a sample of records.

    Raises:
        ValueError: an id is too large.
    """
    if vocab_size is None:
        return
    got = record_files.metadata.get("vocab_size")
    if got is None:
        step = max(1, record_files.num_records // _RECORDS_SAMPLED)
        got = 1 + max(
            int(record_files.decoded(index)["input_ids"].max(initial=0))
            for index in range(0, record_files.num_records, step)
        )
    if got > vocab_size:
        raise ValueError(
            f"{record_files.paths[0]} was written with a vocabulary of at least {got} "
            f"pieces, expected at most {vocab_size} (vocab_size of the config); use "
            "the configuration for that vocabulary, or create the records again."
        )
