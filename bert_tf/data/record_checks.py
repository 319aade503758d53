"""Whether TFRecord files are of the kind that a run expects."""

# Records looked at where no side file says which vocabulary made them.
_RECORDS_SAMPLED = 1000
# The column whose length an option of `create_pretraining_data` gives.
_COLUMN_OF = {
    "max_seq_length": "input_ids",
    "max_predictions_per_seq": "masked_lm_positions",
}


def check_length(record_files, option: str, expected: int | None) -> None:
    """Checks the length of the column that an option stands for; None: any.

    Raises:
        ValueError: there is no such column, or it has another length.
    """
    if expected is None:
        return
    path, schema = record_files.paths[0], record_files.schema
    column = _COLUMN_OF[option]
    if column not in schema:
        raise ValueError(
            f"{path}: its records have no column {column}; they have "
            f"{', '.join(schema.names)}."
        )
    got = schema[column].length
    if got != expected:
        raise ValueError(
            f"{path} was written with {option} {got}, expected {expected}; give "
            f"--{option}={got}, or make the records again."
        )


def check_vocabulary(record_files, vocabulary) -> None:
    """Checks that the records' vocabulary, where it is known, is the one given.

    Raises:
        ValueError: it is another one.
    """
    metadata = record_files.metadata
    got = metadata.get("vocab_fingerprint")
    if vocabulary is None or got in (None, vocabulary.fingerprint):
        return
    raise ValueError(
        f"{record_files.paths[0]} was written with another vocabulary "
        f"({metadata.get('vocab_file')}, {metadata.get('vocab_size')} pieces) than "
        f"the one given ({len(vocabulary)} pieces); give that one, or make the "
        f"records again."
    )


def check_ids(record_files, vocab_size: int | None) -> None:
    """Checks that ids are below `vocab_size`; None: any.

    Where no side file tells the size of the vocabulary, ids of some records are
    looked at.

    Raises:
        ValueError: an id is not.
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
            f"pieces, expected at most {vocab_size} (vocab_size of the config); take "
            f"the config of that vocabulary, or make the records again."
        )
