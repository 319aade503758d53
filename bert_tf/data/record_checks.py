"""Checks that TFRecord files suit a run."""

import logging
from typing import Any

import numpy as np

from bert_tf import files

logger = logging.getLogger(__name__)

# Records whose values are checked, spread over all files.
_RECORDS_SAMPLED = 1000
_REMOTE_RUN = 50
_UNKNOWN_SHARE = 0.05  # Of the pieces that are [UNK]; more is unusual in any language.


def check(
    record_files: Any,
    *,
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    vocab_size: int | None = None,
    vocabulary: Any = None,
    type_vocab_size: int | None = None,
    max_position_embeddings: int | None = None,
) -> None:
    """Checks that records suit a run, and warns of many [UNK]. None accepts any value.

    The values of the columns are checked in a sample of 1,000 records: on accelerators,
    ids beyond a table give wrong vectors or NaN, without an error.

    Args:
        record_files: `tfrecord.RecordFiles`.
        max_seq_length: the expected length of `input_ids`.
        max_predictions_per_seq: the expected length of `masked_lm_positions`.
        vocab_size: the size that all ids must be below.
        vocabulary: the expected `Vocabulary`.
        type_vocab_size: the number that all segment ids must be below.
        max_position_embeddings: the same for positions.

    Raises:
        ValueError: the records were written with a different value, or a column has a
            value out of range.
    """
    _check_length(record_files, "input_ids", "max_seq_length", max_seq_length)
    column, name = "masked_lm_positions", "max_predictions_per_seq"
    _check_length(record_files, column, name, max_predictions_per_seq)
    check_vocabulary(record_files, vocabulary, vocab_size)
    warn_about_unknown(
        record_files.metadata.get("unknown_share") or 0.0, record_files.paths[0]
    )
    if vocabulary is not None:
        vocab_size = min(vocab_size or len(vocabulary), len(vocabulary))
    sizes = {"segment_ids": type_vocab_size, "position_ids": max_position_embeddings}
    _check_values(record_files, sizes | _sizes(record_files.schema, vocab_size))


def _check_length(record_files, column, name, length):
    """Checks the length of the column that the option `name` determines."""
    path, schema = record_files.paths[0], record_files.schema
    if length is None:
        return
    if column not in schema:
        raise ValueError(
            f"{path}: expected a column {column}, but the records have only "
            f"{', '.join(schema.names)}."
        )
    got = schema[column].length
    if got != length:
        raise ValueError(
            f"{path} was written with {name} {got}, expected {length}; pass "
            f"--{name}={got}, or create the records again."
        )


def warn_about_unknown(share: float, path: str) -> None:
    """Warns if a large share of the pieces in records is [UNK]."""
    if share > _UNKNOWN_SHARE:
        logger.warning(
            "%s: %.1f %% of the pieces are [UNK]; the vocabulary does not suit the "
            "text, and little can be learned from such pieces.",
            path,
            100 * share,
        )


def check_vocabulary(
    record_files: Any, vocabulary: Any, vocab_size: int | None = None
) -> None:
    """Checks that the records were written with this vocabulary; warns if unknown.

    Args:
        record_files: `tfrecord.RecordFiles`.
        vocabulary: the expected `Vocabulary`; None accepts any.
        vocab_size: the size that all ids must be below; None accepts any.

    Raises:
        ValueError: the records were written with a different or larger vocabulary.
    """
    path, metadata = record_files.paths[0], record_files.metadata
    fingerprint, size = metadata.get("vocab_fingerprint"), metadata.get("vocab_size")
    if vocabulary is not None and fingerprint is None:
        logger.warning(
            "%s has no side file (%s), so it is not known whether it was written with "
            "this vocabulary of %d pieces; only the range of its ids is checked.",
            path,
            path + files.SIDE_FILE_SUFFIX,
            len(vocabulary),
        )
    elif vocabulary is not None and fingerprint != vocabulary.fingerprint:
        raise ValueError(
            f"{path} was written with a different vocabulary "
            f"({metadata.get('vocab_file')}, {size} pieces) than the one given "
            f"({len(vocabulary)} pieces); pass that one, or create the records again."
        )
    elif vocab_size is not None and size is not None and size > vocab_size:
        raise ValueError(
            f"{path} was written with a vocabulary of {size} pieces, expected at most "
            f"{vocab_size} (vocab_size of the config); use the configuration for that "
            "vocabulary, or create the records again."
        )


def _check_values(record_files, sizes):
    """Checks the smallest and largest value of each column in a sample of records."""
    sample = spread_sample(record_files, _RECORDS_SAMPLED)
    for index, record in zip(sample.tolist(), record_files.read(sample), strict=True):
        for name, values in record_files.decode(record, index).items():
            low = 0 if name in sizes else -np.inf
            high = np.inf if (size := sizes.get(name)) is None else size - 1
            wrong = values[~((values >= low) & (values <= high))]
            fault = None
            if wrong.size:
                end = "or more" if high == np.inf else f"to {high:g}"
                fault = f"has {name} {wrong[0]}, expected {low:g} {end}"
            elif name == "input_mask" and not values.any():
                fault = "has an empty input_mask, expected a 1 for each piece"
            if fault is not None:
                raise ValueError(
                    f"{record_files.place(index)} {fault}; create the records again, "
                    "or use the configuration and vocabulary that they were created "
                    "for."
                )


def spread_sample(record_files: Any, count: int) -> np.ndarray:
    """Returns up to `count` records of all files, as ascending indices, int64."""
    total = record_files.num_records
    # Records that follow each other are one request to a remote file.
    run = _REMOTE_RUN if record_files.is_remote else 1
    firsts = np.linspace(0, max(total - run, 0), min(total, count // run))
    sample = firsts.astype(np.int64)[:, None] + np.arange(min(run, total))
    return np.unique(sample)


def _sizes(schema, vocab_size):
    """Returns the number by column that all values must be below; None: any."""
    length = {column.name: column.length for column in schema.columns}.get
    num_sequences = length("cls_positions")
    flags = ("input_mask", "masked_lm_weights", "next_sentence_labels")
    return {
        **dict.fromkeys(("input_ids", "masked_lm_ids"), vocab_size),
        **dict.fromkeys(("masked_lm_positions", "cls_positions"), length("input_ids")),
        **dict.fromkeys(flags, 2),
        "sequence_ids": None if num_sequences is None else num_sequences + 1,
    }
